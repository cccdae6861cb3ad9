# Everything runs in .venv, which `make setup` fills from requirements.lock.

# Needs 3.11; a newer version can be forced with `make setup PYTHON=python3.12`.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$name" && break; done)
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast check format bench lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## create .venv and install the locked packages; quick when nothing changed

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "cepheid needs Python 3.11 or newer; none was found" >&2; exit 1; }
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	echo "$(PYTHON) cannot make a virtual environment; on Debian: apt install python3-venv" >&2; exit 1; }
	$(RUN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(RUN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: setup ## set up, then find thieves in a generated store on Spark
	$(RUN)/cepheid demo

# One pytest run, so that its last line tells everything. Two workers have the Spark tests and a JVM
# each (see tests/conftest.py), and often wait; the third does the rest meanwhile.
test: setup ## all tests
	$(RUN)/python -m pytest -n 3

test-fast: setup ## tests without Spark, about a minute
	$(RUN)/python -m pytest -n 2 -m "not spark and not slow and not kill"

check: setup ## formatting, lint, types, architecture
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy --strict src
	$(RUN)/python -m pytest -q tests/test_architecture.py

format: setup ## let ruff format the code and fix what it safely can
	$(RUN)/ruff format .
	$(RUN)/ruff check --fix .

bench: setup ## run the benchmark NAME, or all of them
	$(RUN)/python -m benchmarks $(NAME)

# No header and no index lines: the file says what is installed, not where it came from.
lock: setup ## write requirements.lock anew from pyproject.toml, keeping versions that still fit
	$(RUN)/uv pip compile pyproject.toml --quiet --all-extras --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --output-file requirements.lock

clean: ## remove .venv, caches and what Spark left behind
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
