PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/ready
	$(BIN)/pastwise learn examples/thermostat/log.csv --state room --action did --episode day --time hour \
		--goal examples/thermostat/goal.toml --output thermostat.safetensors
	$(BIN)/pastwise explain thermostat.safetensors cool heat
	$(BIN)/pastwise reproduce

test: lint
	$(BIN)/pytest -n 2 --cov --cov-report=term

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv reproduction thermostat.safetensors
