# `make app` and `make test` set everything up: all they need is Python 3.11 or newer with venv.
# Another interpreter can be named with `make app PYTHON=/path/to/python`, and another port than 8501
# with `make app PORT=8502`.

PYTHON ?=
PORT ?=
REFERENCE ?=
REFERENCE_PYTHON ?=
ONLY ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
RESOLVE := $(BIN)/uv pip compile pyproject.toml --quiet --no-config --python-version 3.11
LOCK := $(RESOLVE) --universal --fork-strategy fewest \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

# Where bytecode may not be kept, each of the hundreds of processes that tests start compiles all.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help app test test-all test-lowest test-python bench bench-beside \
	bench-reference lint lock sample pictures clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'

app: $(VENV)/.installed-app  ## set up and open the app on the sample data
	@$(BIN)/rpexplore app $(if $(PORT),--port $(PORT))

# One process more than processors; who is done first takes over from the others. (Not in
# pyproject.toml, because it would slow down who runs a single test.)
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal

test: $(VENV)/.installed-dev  ## set up and run all tests but the nightly ones
	@$(PYTEST) -m "not nightly"

# By hand, for nights and before a version; too long for .ci/run: whole grids, and a hundred times
# as many examples of each property.
test-all: $(VENV)/.installed-dev test-lowest  ## run all tests, with many more examples
	@RPEXPLORE_TEST_PROFILE=nightly $(PYTEST)

# What pyproject.toml calls enough is what passes: its oldest versions, each test tool the newest.
LOWEST := build/lowest
EXTRAS := --extra app --extra server --extra custom --extra databases --extra formats

test-lowest: $(VENV)/.python  ## run the tests with the oldest versions that are allowed
	@$(PIP) uv
	@mkdir -p $(LOWEST)
	@$(RESOLVE) --upgrade --resolution lowest-direct $(EXTRAS) --output-file $(LOWEST)/product.txt >/dev/null
	@$(RESOLVE) --upgrade $(EXTRAS) --group dev --constraint $(LOWEST)/product.txt \
		--output-file $(LOWEST)/all.txt >/dev/null
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)/venv
	@$(BIN)/uv pip install --quiet --python $(LOWEST)/venv --requirement $(LOWEST)/all.txt
	@$(BIN)/uv pip install --quiet --python $(LOWEST)/venv --no-deps --no-build-isolation --editable .
	@$(subst $(BIN),$(LOWEST)/venv/bin,$(PYTEST)) -m "not nightly"

# The locked versions, in an environment beside that of the project.
OTHER := build/python

test-python: $(VENV)/.python  ## run the tests with another Python: PYTHON=/path/to/python3.13
	@test -n "$(PYTHON)" || { echo "say which: make $@ PYTHON=/path/to/python3.13" >&2; exit 1; }
	@$(PIP) uv
	@$(BIN)/uv venv --quiet --clear --python "$(PYTHON)" $(OTHER)
	@$(BIN)/uv pip install --quiet --python $(OTHER) --require-hashes \
		--requirement requirements-dev.lock
	@$(BIN)/uv pip install --quiet --python $(OTHER) --no-deps --no-build-isolation --editable .
	@$(subst $(BIN),$(OTHER)/bin,$(PYTEST)) -m "not nightly"

bench: $(VENV)/.installed-dev  ## measure speed and memory
	@$(BIN)/python -m tests.benchmarks.run

# Both sides in turn: COMMIT is checked out into a temporary folder. CASES: short ones if left out.
bench-beside: $(VENV)/.installed-dev  ## measure beside another commit: COMMIT=main [CASES="…"]
	@$(BIN)/python -m tests.benchmarks.beside $(if $(TURNS),--turns $(TURNS)) "$(COMMIT)" $(CASES)

# Of the reference implementation nothing is here, nor installed: REFERENCE is a clone of it. ALL=1:
# also what takes it many minutes.
bench-reference: $(VENV)/.installed-dev  ## measure beside the reference: REFERENCE=its folder
	@$(BIN)/python -m tests.benchmarks.reference $(if $(ALL),--all) \
		--python "$(REFERENCE_PYTHON)" "$(REFERENCE)"

lint: $(VENV)/.installed-dev  ## check style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

sample: $(VENV)/.installed-app  ## generate the sample data again
	@$(BIN)/python sample_data/generate.py

pictures: $(VENV)/.installed-dev  ## take the screenshots of the documentation again
	@$(BIN)/python -m tests.browser.pictures $(ONLY)

# The product is locked inside the versions of the development lock, so that both agree. Tests need
# the optional extras as well; Spark and mbi, some 400 MB each, are locked apart, for who wants their
# tests.
lock: $(VENV)/.python  ## choose the newest allowed versions and lock them
	@$(PIP) uv
	@$(LOCK) --upgrade $(EXTRAS) --group dev --output-file requirements-dev.lock
	@$(LOCK) --upgrade --extra app --group build --constraints requirements-dev.lock \
		--output-file requirements.lock
	@$(LOCK) --upgrade --extra server --constraints requirements-dev.lock \
		--output-file requirements-server.lock
	@$(LOCK) --upgrade --extra spark --constraints requirements-dev.lock \
		--output-file requirements-spark.lock
	@$(LOCK) --upgrade --extra synthetic --constraints requirements-dev.lock \
		--output-file requirements-synthetic.lock

clean:  ## remove the virtual environment, builds and caches
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed-app: requirements.lock pyproject.toml | $(VENV)/.python
	@echo "Setting up rpexplore (a minute or two the first time) ..."
	@$(PIP) --require-hashes --requirement requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# The development lock holds the product's as well: one installation serves both stamps.
$(VENV)/.installed-dev: requirements-dev.lock requirements.lock pyproject.toml | $(VENV)/.python
	@echo "Setting up rpexplore and its test tools (a minute or two the first time) ..."
	@$(PIP) --require-hashes --requirement requirements-dev.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.installed-app

# A virtual environment that already works is kept.
$(VENV)/.python:
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		for python in $(or $(PYTHON),python3.11 python3 python); do \
			"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
			python=; \
		done; \
		if [ -z "$$python" ]; then \
			echo "rpexplore needs Python 3.11 or newer, and found none:" >&2; \
			echo "install it, or name it with: make PYTHON=/path/to/python3.11" >&2; \
			exit 1; \
		fi; \
		"$$python" -m venv --clear $(VENV) || { \
			echo "$$python could not make a virtual environment in $(VENV)" >&2; \
			echo "(on Debian and Ubuntu: apt-get install python3-venv)" >&2; \
			exit 1; \
		}; \
	fi
	@touch $@
