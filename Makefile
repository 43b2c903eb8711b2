PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup test lint types imports units demo bench bench-be-tree bench-asc bench-implication bench-synopsis bench-sharing soak fix constraints clean

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

bench: $(READY) ## the benchmarks: tables, JSON and plots in bench-results/
	$(BIN)/headgate bench load
	$(BIN)/headgate bench scan
	$(BIN)/headgate bench route
	$(BIN)/headgate bench match
	for one in zipf rare boxes ranges patterns updates; do $(BIN)/headgate bench match-$$one; done

bench-be-tree: $(READY) ## the experiments of the BE-Tree paper, at a fifth of their size, as a page
	for one in $$($(BIN)/python -m headgate.bench.be_tree.report --names); do \
		$(BIN)/headgate bench $$one --scale 0.2 || exit 1; done
	$(BIN)/python -m headgate.bench.be_tree.report bench-results > bench-results/be-tree.md

bench-asc: $(READY) ## the experiments of the ASC paper, as a page
	for one in $$($(BIN)/python -m headgate.bench.asc.report --names); do \
		$(BIN)/headgate bench $$one || exit 1; done
	$(BIN)/python -m headgate.bench.asc.report bench-results > bench-results/asc.md

bench-implication: $(READY) ## the experiments of the stream-sharing paper, as a page
	for one in $$($(BIN)/python -m headgate.bench.implication.report --names); do \
		$(BIN)/headgate bench $$one || exit 1; done
	$(BIN)/python -m headgate.bench.implication.report bench-results > bench-results/implication.md

bench-synopsis: $(READY) ## bounded queries beside Spark's own join: state, and events a second
	for one in synopsis-process synopsis-q3 synopsis-batches synopsis-count synopsis-q4 synopsis-q6 synopsis-q7 \
		synopsis-sum synopsis-max synopsis; do $(BIN)/headgate bench $$one || exit 1; done

bench-sharing: $(READY) ## what streams move in random networks, by strategy; planning at scale
	for one in queries overlap interests orders optimum scale; do \
		$(BIN)/headgate bench sharing-$$one || exit 1; done

soak: $(READY) ## the property tests with fifty times the cases
	$(BIN)/python -m pytest -n auto --hypothesis-profile=soak tests/property tests/bounded tests/sharing tests/spark/test_sharing.py tests/spark/test_bench_synopsis.py tests/spark/test_modes.py tests/spark/test_bench_route.py tests/matching/test_plain_kernels.py tests/matching/test_million.py tests/bench/be_tree tests/bench/asc tests/bench/implication

fix: $(READY) ## format and mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY) ## pin what is installed now
	$(BIN)/python -m pip freeze --exclude-editable | grep -v ' @ ' > constraints.txt

clean: ## forget the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
