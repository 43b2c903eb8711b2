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
	$(BIN)/python -m pytest -n auto --dist loadgroup

TRADES := -s examples/trades/schema.sql -q examples/trades/queries.sql

demo: $(READY) ## match example events against example queries, and ask why one did not match
	@# exit code 1 says that there were findings, as there are in the examples
	$(BIN)/headgate match $(TRADES) --stream trades examples/trades/events.jsonl || [ $$? -eq 1 ]
	$(BIN)/headgate explain $(TRADES) night_desk \
		--event '{"trader": {"desk": "night"}, "qty": 3, "price": 99.5}' || [ $$? -eq 1 ]

bench: $(READY) ## the benchmarks: tables, JSON and plots in bench-results/
	$(BIN)/headgate bench load
	$(BIN)/headgate bench scan

soak: $(READY) ## the property tests with fifty times the cases
	$(BIN)/python -m pytest -n auto --hypothesis-profile=soak tests/property

fix: $(READY) ## format and mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY) ## pin what is installed now
	$(BIN)/python -m pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt

clean: ## forget the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
