# Everything a user or CI needs; `make help` lists it. Needs Python 3.11–3.14 and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled modules are kept whatever the environment says: every command that a test starts would compile all of its imports again.
export PYTHONDONTWRITEBYTECODE :=
# Tests in three processes, a file in one of them: with two, which often wait for servers and signals, two cores take an eighth longer.
# `make test PARALLEL=` runs them one after another.
PARALLEL ?= -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: help install demo test suite test-nojit test-long bench results docs wheel lint ui clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 15) else f"lambdaflow needs Python 3.11 to 3.14, this is {v[0]}.{v[1]}; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(BIN)/uv: | $(BIN)/python
	-$(BIN)/python -m pip install --quiet --constraint constraints.txt uv

# uv takes a seventh of pip's processor time. Of pip's settings it is told the index; where it fails, pip has the last word.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
# Without --compile-bytecode what is imported is compiled then.
installed = $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt $(1) --editable '.$(2)' \
	|| $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.$(2)'

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/uv
	$(call installed,--compile-bytecode)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/uv
	$(call installed,,[dev])
	@touch $(VENV)/.installed $@

$(VENV)/.installed-bench: $(VENV)/.installed
	$(call installed,,[benchmark])
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(call installed,,[docs])
	@touch $@

install: $(VENV)/.installed  ## .venv with the pinned dependencies, and the core compiled
	$(BIN)/lambdaflow warm

demo: $(VENV)/.installed  ## the whole flow on generated data with clicks
	$(BIN)/lambdaflow run conf/demo.yaml

test: $(VENV)/.installed-dev  ## ruff, mypy and the test suite, beside each other
	@$(MAKE) --no-print-directory -j 2 lint suite

# The core is compiled first, so that not every process compiles it.
suite: $(VENV)/.installed-dev
	$(BIN)/lambdaflow warm
	$(BIN)/python -m pytest $(PARALLEL)

test-nojit: $(VENV)/.installed-dev  ## the core's tests once more without compilation
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest $(PARALLEL) tests/ltr

test-long: $(VENV)/.installed-dev  ## the heavy cases too
	$(BIN)/python -m pytest $(PARALLEL) -m "long or not long"

bench: $(VENV)/.installed-bench  ## benchmarks beside their peers, into docs/results.md
	$(BIN)/python benchmarks/ingest.py
	$(BIN)/python benchmarks/clicks.py
	NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/unbiased.py
	$(BIN)/python benchmarks/measures.py
	$(BIN)/python benchmarks/nets.py
	$(BIN)/python benchmarks/optimality.py
	$(BIN)/python benchmarks/conditional.py
	$(BIN)/python benchmarks/trees.py
	NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/letor.py
	$(BIN)/python benchmarks/time_to_quality.py
	$(BIN)/python benchmarks/wide.py
	NUMBA_NUM_THREADS=1 $(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/searches.py
	$(BIN)/python benchmarks/first_minute.py
	$(BIN)/python benchmarks/loaded.py
	$(BIN)/python benchmarks/results.py

results: $(VENV)/.installed  ## the tables of the pages anew, from docs/benchmarks.json, docs/papers/ and the measures that there are
	$(BIN)/python benchmarks/results.py
	$(BIN)/python docs/measure_table.py
	$(BIN)/python -m benchmarks.papers

# Sphinx takes Markdown pages and docstrings alike and is well kept; pdoc has no pages of its own, and MkDocs 1 is kept no longer.
docs: $(VENV)/.installed-docs  ## pages and the reference from the docstrings, site/index.html
	$(BIN)/python -m sphinx --fail-on-warning --quiet -d build/doctrees docs site

wheel: $(BIN)/python  ## dist/, a wheel, tried in an empty environment
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python -m venv build/empty
	build/empty/bin/python -m pip install --quiet --constraint constraints.txt dist/lambdaflow-*.whl
	cd build/empty && bin/lambdaflow run $(CURDIR)/conf/demo.yaml --set scale=0.05 --set length=0.05

lint: $(VENV)/.installed-dev  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

ui: $(VENV)/.installed  ## MLflow and Prefect on loopback
	$(BIN)/lambdaflow ui

clean:  ## remove the environment and caches, never mlruns/ or .lambdaflow/
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist site docs/api *.egg-info
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
