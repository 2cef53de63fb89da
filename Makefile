PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable
LOG := examples/thermostat/log.csv

.PHONY: demo test lint docs bench clean

demo: .venv/demo
	$(BIN)/pastwise validate $(LOG) --state room --action did --episode day --time hour
	$(BIN)/pastwise learn $(LOG) --state room --action did --episode day --time hour \
		--goal examples/thermostat/goal.toml --no-verdict --output thermostat.safetensors
	$(BIN)/pastwise explain thermostat.safetensors cool heat
	$(BIN)/pastwise evaluate thermostat.safetensors $(LOG)
	$(BIN)/pastwise reproduce

test: lint
	$(BIN)/pytest -n 2 --cov --cov-report=term

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/ready
	$(BIN)/python -m sphinx -q --fail-on-warning --keep-going docs docs/_build
	@echo "Open docs/_build/index.html"

bench: .venv/ready
	$(INSTALL) '.[bench]'
	$(BIN)/python -m benchmarks

# The demo needs the runtime and figures only; everything else needs the tools as well.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[plot]'
	@touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[dev]'
	@touch $@ .venv/demo

clean:
	rm -rf .venv docs/_build docs/reference/api reproduction thermostat.safetensors
