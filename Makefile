# Everything runs from .venv, which the first target that needs it creates.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed-for-tests
OUT ?= out
CASES ?= 10000
SEED ?= 0
TABLE ?=
BENCH ?=
# Arguments of pytest for the targets that test other settings: make oldest TESTS=tests/cli/test_fit.py
TESTS ?= -n 2 --ignore=tests/repository/test_readme_installed.py
SMOKE := tests/repository/test_readme.py tests/whole/test_estimator.py tests/cli/test_fit.py tests/data/test_reader.py tests/structure/test_learn.py

.DEFAULT_GOAL := help
.PHONY: help demo docs test test-slow kernels lint readme fuzz portability oldest newest pythons format bench clean

help:
	@echo "make demo    learn the tree over the pixels of handwritten digits; picture in $(OUT)/"
	@echo "make test    lint, types, tests, examples of the README and of docstrings"
	@echo "make docs    the pages of docs/, with all their examples run, in docs/_build/html"
	@echo "make test-slow    the tests that take longer: many seeds, fresh environments"
	@echo "make readme  the README's examples, here and in an environment installed as it says"
	@echo "make portability  all tests with kernels and BLAS for other processors"
	@echo "make oldest  all tests with the oldest versions that pyproject.toml allows"
	@echo "make newest  all tests with the newest versions that can be had"
	@echo "make pythons some tests in every supported Python that is here"
	@echo "make lint    ruff and mypy alone"
	@echo "make fuzz    read CASES=$(CASES) damaged files of every format, from SEED=$(SEED)"
	@echo "make format  let ruff rewrite the sources"
	@echo "make bench   list the benchmarks; TABLE=nips measures one, TABLE=all every one, BENCH=--quick small"
	@echo "make clean   remove .venv, caches and results"

# Installed once; again when the dependencies change.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 14) else "latenttree needs Python 3.11 to 3.13, $(PYTHON) is " + sys.version.split()[0] + "; pass one with make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,pgmpy]'
	@touch $@

demo: $(STAMP)
	@mkdir -p $(OUT)
	$(BIN)/latenttree demo --out $(OUT)/digits_tree.png

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Kernels are compiled once, not by each process of the tests, while mypy runs.
test: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint kernels
	$(BIN)/python -m pytest -n 2 -m "not slow"

kernels: $(STAMP)
	@$(BIN)/latenttree compile > .venv/compiled.txt

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m slow

# Every example runs, and a warning is an error.
.venv/.installed-for-docs: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: .venv/.installed-for-docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# Files that are not read, or refused by name, are kept in $(OUT)/fuzz.
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz.fuzz_files --cases $(CASES) --seed $(SEED) --kept $(OUT)/fuzz

readme: $(STAMP)
	$(BIN)/python -m pytest tests/repository/test_readme.py tests/repository/test_readme_installed.py

portability: $(STAMP)
	$(BIN)/python tools/portability.py $(TESTS)

# With a cache of its own, since versions of Numba do not share one. Wheels of all the oldest
# versions exist for Python 3.11 alone.
.venv-oldest/.installed: pyproject.toml tools/lower_bounds.py
	$$($(PYTHON) tools/find_python.py 3.11) -m venv --clear .venv-oldest
	.venv-oldest/bin/python tools/lower_bounds.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-oldest/constraints.txt -e '.[test,plot]'
	@touch $@

oldest: .venv-oldest/.installed
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-oldest/numba .venv-oldest/bin/python -m pytest $(TESTS)

# Looks for newer versions every time. NumPy and SciPy drop old Pythons, so the newest Python it is.
newest:
	@test -x .venv-newest/bin/python || $$($(PYTHON) tools/find_python.py 3.13 3.12 3.11) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager -e '.[test,pgmpy]'
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-newest/numba .venv-newest/bin/python -m pytest $(TESTS)

pythons:
	$(PYTHON) tools/pythons.py 3.11 3.12 3.13 -- -n 2 $(SMOKE)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# TABLE: a name, several in quotes, all, or report for docs/benchmarks.md; BENCH: further options.
bench: $(STAMP)
	$(BIN)/python -m benchmarks $(TABLE) --out $(OUT)/benchmarks $(BENCH)

clean:
	rm -rf .venv .venv-* $(OUT) docs/_build docs/guide docs/howto docs/api/generated dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
