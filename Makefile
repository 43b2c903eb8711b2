PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MINUTES ?= 60
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup test test-slow test-spark coverage lint types imports demo bench bench-be-tree bench-asc bench-implication bench-synopsis bench-sharing soak fix constraints clean

help: ## list the everyday commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## create .venv with everything pinned, and the command .venv/bin/headgate

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Headgate needs Python 3.11 or newer; try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

test: lint types imports ## what to run before a commit: at most six minutes on two cores
	$(PYTEST)

test-slow: $(READY) ## what is left: slow tests, and all random cases instead of a fifth
	$(PYTEST) --level full

test-spark: ## the tests on Spark with another version of it: make test-spark SPARK=4.1.4
	test -n "$(SPARK)"
	$(PYTHON) -m venv $(VENV)-spark-$(SPARK)
	grep -v '^pyspark==' constraints.txt > $(VENV)-spark-$(SPARK)/constraints.txt
	$(VENV)-spark-$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c $(VENV)-spark-$(SPARK)/constraints.txt -e '.[dev]' 'pyspark[connect]==$(SPARK)'
	$(VENV)-spark-$(SPARK)/bin/python -m pytest -n 2 --dist loadgroup tests/spark

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

demo: $(READY) ## stream a year of flights through Spark against 10,000 standing queries
	$(BIN)/python $(FLIGHTS)/prepare.py
	@rm -rf $(FLIGHTS)/data/output
	$(BIN)/headgate run $(FLIGHTS)/pipeline.toml --format table

bench: $(READY) ## the benchmarks: tables, JSON and plots in bench-results/
	$(BIN)/python -m benchmarks load
	$(BIN)/python -m benchmarks scan
	$(BIN)/python -m benchmarks route
	$(BIN)/python -m benchmarks match
	for one in zipf rare boxes ranges patterns updates; do $(BIN)/python -m benchmarks match-$$one; done

bench-be-tree: $(READY) ## the experiments of the BE-Tree paper, at a fifth of their size, as a page
	for one in $$($(BIN)/python -m benchmarks.be_tree.report --names); do \
		$(BIN)/python -m benchmarks $$one --scale 0.2 || exit 1; done
	$(BIN)/python -m benchmarks.be_tree.report bench-results > bench-results/be-tree.md

bench-asc: $(READY) ## the experiments of the ASC paper, as a page
	for one in $$($(BIN)/python -m benchmarks.asc.report --names); do \
		$(BIN)/python -m benchmarks $$one || exit 1; done
	$(BIN)/python -m benchmarks.asc.report bench-results > bench-results/asc.md

bench-implication: $(READY) ## the experiments of the stream-sharing paper, as a page
	for one in $$($(BIN)/python -m benchmarks.implication.report --names); do \
		$(BIN)/python -m benchmarks $$one || exit 1; done
	$(BIN)/python -m benchmarks.implication.report bench-results > bench-results/implication.md

bench-synopsis: $(READY) ## bounded queries beside Spark's own join: state, and events a second
	for one in synopsis-process synopsis-q3 synopsis-batches synopsis-count synopsis-q4 synopsis-q6 synopsis-q7 \
		synopsis-sum synopsis-max synopsis; do $(BIN)/python -m benchmarks $$one || exit 1; done

bench-sharing: $(READY) ## what streams move in random networks, by strategy; planning at scale
	for one in queries overlap interests orders optimum scale; do \
		$(BIN)/python -m benchmarks sharing-$$one || exit 1; done

soak: $(READY) ## random cases from new seeds for as long as you say: make soak MINUTES=60
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

fix: $(READY) ## format and mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY) ## pin what is installed now
	$(BIN)/python -m pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt

clean: ## forget the virtual environment and all caches
	rm -rf $(VENV) $(VENV)-spark-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
