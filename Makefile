PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup test lint types imports units demo bench soak fix constraints clean

help: ## list the everyday commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## create .venv with everything pinned, and the command .venv/bin/headgate

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Headgate needs Python 3.11 or newer; try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

test: lint types imports units ## all that CI runs

lint: $(READY) ## ruff: style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy --strict
	$(BIN)/mypy

imports: $(READY) ## import-linter: data flows one way
	$(BIN)/lint-imports

units: $(READY) ## unit, property and doctest tests
	$(BIN)/python -m pytest -n auto --dist worksteal

FLIGHTS := examples/flights

demo: $(READY) ## stream a year of flights through Spark against 10,000 standing queries
	$(BIN)/python $(FLIGHTS)/prepare.py
	@rm -rf $(FLIGHTS)/data/output
	$(BIN)/headgate run $(FLIGHTS)/pipeline.toml --format table

NAME ?= matching

bench: $(READY) ## experiments: make bench NAME=asc; tables, JSON and plots in bench-results/
	$(BIN)/python -m benchmarks $(NAME)

soak: $(READY) ## the property tests with fifty times the cases
	$(BIN)/python -m pytest -n auto --hypothesis-profile=soak tests/property tests/stateful tests/sharing tests/spark/job/test_sharing.py tests/spark/test_bench_synopsis.py tests/spark/test_modes.py tests/spark/test_bench_route.py tests/matching/test_plain_kernels.py tests/matching/test_million.py tests/benchmarks/be_tree tests/benchmarks/asc tests/benchmarks/implication

fix: $(READY) ## format and mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY) ## pin what is installed now
	$(BIN)/python -m pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt

clean: ## forget the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
