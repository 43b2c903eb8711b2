PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MINUTES ?= 60
DEVELOPED_ON := 4.2.0# of Spark: the newest for which the connectors exist
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup test test-slow test-spark coverage lint types imports docs demo bench soak fix update clean

help: ## list the everyday commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## create .venv with everything pinned, and the command .venv/bin/headgate

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Headgate needs Python 3.11 or newer; try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

test: lint types imports ## what to run before a commit
	$(PYTEST)

test-slow: $(READY) ## what is left: slow tests, and all random cases instead of a fifth
	$(PYTEST) --level full

test-spark: ## the tests on Spark with another version of it: make test-spark SPARK=4.1.4
	test -n "$(SPARK)"
	$(PYTHON) -m venv $(VENV)-spark-$(SPARK)
	grep -v '^pyspark==' constraints.txt > $(VENV)-spark-$(SPARK)/constraints.txt
	$(VENV)-spark-$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c $(VENV)-spark-$(SPARK)/constraints.txt -e '.[dev]' 'pyspark[connect]==$(SPARK)'
	@# other versions of PySpark leave sockets open, which is not ours to test
	$(VENV)-spark-$(SPARK)/bin/python -m pytest -n 2 --dist loadgroup tests/spark \
		-W ignore::pytest.PytestUnraisableExceptionWarning -W ignore::ResourceWarning

coverage: $(READY) ## how much of the product `make test` runs, as a table
	$(PYTEST) --cov=headgate --cov-report=term:skip-covered

lint: $(READY) ## ruff: style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy --strict
	$(BIN)/mypy

imports: $(READY) ## import-linter: data flows one way
	$(BIN)/lint-imports

FLIGHTS := examples/flights

docs: $(READY) ## build the documentation site into docs/_build/html; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

demo: $(READY) ## stream a year of flights through Spark against 10,000 standing queries
	$(BIN)/python $(FLIGHTS)/prepare.py
	@rm -rf $(FLIGHTS)/data/output
	$(BIN)/headgate run $(FLIGHTS)/pipeline.toml --format table

NAME ?= matching

bench: $(READY) ## experiments: make bench NAME=asc; tables, JSON and plots in bench-results/
	$(BIN)/python -m benchmarks $(NAME)

soak: $(READY) ## random cases from new seeds for as long as you say: make soak MINUTES=60
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

fix: $(READY) ## format and mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

update: ## pin the newest of everything, once a month: then make test test-slow, and commit
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' 'pyspark==$(DEVELOPED_ON)'
	$(BIN)/python -m pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt
	@touch $(READY)

clean: ## forget the virtual environment and all caches
	rm -rf $(VENV) $(VENV)-spark-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
