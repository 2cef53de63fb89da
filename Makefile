PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable
LOG := examples/thermostat/log.csv

# The page of the workbench. Node is needed to build it, not to use it.
PAGE := src/pastwise/workbench/static/index.html
PAGE_SOURCES := $(shell find frontend -name node_modules -prune -o -type f -print)
NPM := $(shell command -v npm)
NO_NODE := Node is missing, so the page of the workbench is neither built nor tested: install Node 20.19

# Tests start hundreds of processes; without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo frontend test-frontend test test-python coverage test-minimum fuzz lint docs screenshots bench clean

demo: .venv/demo
	$(BIN)/pastwise validate $(LOG) --state room --action did --episode day --time hour
	$(BIN)/pastwise learn $(LOG) --state room --action did --episode day --time hour \
		--goal examples/thermostat/goal.toml --no-verdict --output thermostat.safetensors
	$(BIN)/pastwise explain thermostat.safetensors cool heat
	$(BIN)/pastwise evaluate thermostat.safetensors $(LOG)
	$(BIN)/pastwise reproduce
ifeq ($(NPM),)
	@echo "$(NO_NODE) or later."
else
	@echo "Open the workbench on this log: $(BIN)/pastwise workbench $(LOG)"
endif

test: lint test-frontend test-python

test-python: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# The same tests with the share of code that they run; measuring it takes several times as long.
coverage: .venv/ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=term

# Random input with a new seed in each round, until something fails or Ctrl-C. A failure is repeated
# with: make fuzz SEED=..., the seed that was printed.
fuzz: .venv/ready
	@for seed in $(or $(SEED),$$(seq $$(date +%s) 9999999999)); do \
		echo "make fuzz SEED=$$seed"; \
		$(BIN)/pytest -q tests/fuzz --hypothesis-profile=fuzz --hypothesis-seed=$$seed || exit 1; \
	done

# The tests of logs, command line and policies with the oldest libraries that pyproject.toml allows,
# in an environment of their own. Files that need other optional libraries are left out.
MINIMUM := .venv-minimum
NEEDS_MORE := ^(import|from) (ibis|onnxruntime|pyspark|pastwise.workbench|tests.helpers.java)

test-minimum: $(MINIMUM)/ready
	$(MINIMUM)/bin/python -m pytest -p no:cacheprovider \
		$$(grep -LE '$(NEEDS_MORE)' tests/logs/test_*.py tests/cli/test_*.py tests/policy/test_*.py)

$(MINIMUM)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --constraint constraints.txt uv
	$(MINIMUM)/bin/uv pip install --quiet --python $(MINIMUM)/bin/python \
		--resolution lowest-direct --editable '.[minimum]'
	@touch $@

ifeq ($(NPM),)
frontend test-frontend:
	@echo "$(NO_NODE) or later." >&2
else
frontend: $(PAGE)

demo: $(PAGE)

test-python: $(PAGE)

test-frontend: $(PAGE) .venv/ready
	cd frontend && npm run --silent check
	cd frontend && npm run --silent test
endif

$(PAGE): frontend/node_modules/ready $(PAGE_SOURCES)
	cd frontend && npm run --silent build -- --logLevel warn

frontend/node_modules/ready: frontend/package.json frontend/package-lock.json
	cd frontend && npm ci --silent
	@touch $@

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/ready
	$(BIN)/python -m sphinx -q --fail-on-warning --keep-going docs docs/_build
	@echo "Open docs/_build/index.html"

# Pictures of all screens of the workbench for the documentation. They need Chromium.
screenshots: .venv/ready $(PAGE)
	$(BIN)/python -m tests.helpers.pictures

bench: .venv/ready
	$(INSTALL) '.[bench]'
	$(BIN)/python -m benchmarks

# The demo needs the runtime, figures and the workbench only; everything else needs the tools as well.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[plot,workbench]'
	@touch $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[dev]'
	@touch $@ .venv/demo

clean:
	rm -rf frontend/node_modules src/pastwise/workbench/static
	rm -rf .venv .venv-minimum docs/_build docs/reference/api reproduction thermostat.safetensors
