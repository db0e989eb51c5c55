# Everything runs from .venv, which the first target that needs it creates.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed-for-tests
OUT ?= out
CASES ?= 10000
SEED ?= 0
BENCHES := $(sort $(wildcard benchmarks/bench_*.py))
TABLE ?= all

.DEFAULT_GOAL := help
.PHONY: help demo test lint format fuzz bench studies clean

help:
	@echo "make demo    learn the tree over the pixels of handwritten digits; picture in $(OUT)/"
	@echo "make test    lint, types, all tests, README examples"
	@echo "make lint    ruff and mypy alone"
	@echo "make fuzz    read CASES=$(CASES) damaged files of every format, from SEED=$(SEED)"
	@echo "make format  let ruff rewrite the sources"
	@echo "make bench   the paper's tables and figures here; TABLE=nips for one of them"
	@echo "make studies the research runners in benchmarks/, one after another"
	@echo "make clean   remove .venv, caches and results"

# Installed once; again when the dependencies change.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 14) else "latenttree needs Python 3.11 to 3.13, $(PYTHON) is " + sys.version.split()[0] + "; pass one with make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

demo: $(STAMP)
	@mkdir -p $(OUT)
	$(BIN)/latenttree demo --out $(OUT)/digits_tree.png

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# tests/test_readme.py runs the README's examples.
test: lint
	$(BIN)/python -m pytest -n 2

# Files that are not read, or refused by name, are kept in $(OUT)/fuzz.
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz.fuzz_files --cases $(CASES) --seed $(SEED) --kept $(OUT)/fuzz

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/latenttree bench $(TABLE) --out $(OUT)/benchmarks

studies: $(STAMP)
	@test -n "$(BENCHES)" || { echo "no benchmarks/bench_*.py here yet"; exit 1; }
	@set -e; for bench in $(BENCHES); do echo "== $$bench"; $(BIN)/python $$bench; done

clean:
	rm -rf .venv $(OUT) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
