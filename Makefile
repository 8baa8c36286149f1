# `make demo` and `make test` are all that a newcomer needs: both install what they use, into .venv and on the machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LICENCES := MIT;BSD;Apache;ISC;PSF;Python Software Foundation;MPL;Mozilla;CC0;Artistic
# Their packages name none; they are Apache-2.0 and MIT.
LICENCE_UNNAMED := atheris axe-playwright-python
FRONT := widgets/frontend
MODULES := $(FRONT)/node_modules/.package-lock.json
# Four for two cores: two wait for a JVM or a browser much of the time.
WORKERS := -n 4 --no-loadscope-reorder

# Where it is set, as in many containers, each process of the tests would compile the kit and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help python java java+chromium+libatomic install demo lab app docs pictures front test test-quick test-matrix interop soak fuzz oldest lock audit dist lint format bench clean
.NOTPARALLEL:

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $$($(PYTHON) --version) is too old: Python 3.11 or newer is needed; name one with PYTHON=python3.12" >&2; exit 1; }

java java+chromium+libatomic: python
	@$(PYTHON) scripts/prerequisites.py venv $(subst +, ,$@)

install: $(VENV)/.installed ## make .venv and install the kit into it

$(VENV)/.installed: pyproject.toml requirements.lock | python
	@$(PYTHON) scripts/prerequisites.py venv
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV), 1 to 5 minutes ..."
	@sed -n '/^uv==/,/# via/p' requirements.lock | $(PIP) --require-hashes --requirement /dev/stdin
# In half of the CPU that pip takes, which alone knows the index of a pip.conf.
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes --requirement requirements.lock || \
	  PIP_USE_PEP517=1 $(PIP) --require-hashes --requirement requirements.lock
	@$(PIP) --no-deps --editable .
	@touch $@

demo: java install ## build the demo warehouse, compute and commit its statistics with PySpark
	@$(BIN)/icestats demo
	@echo
	@echo "Open the notebook: make lab"

lab: install ## open JupyterLab on the tour
	@$(BIN)/jupyter lab notebooks/00_tour.ipynb

app: install ## show the tour as an app, with Voila
	@$(BIN)/voila notebooks/00_tour.ipynb

docs: install ## build the documentation site into site/, warnings are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

test: java+chromium+libatomic install lint $(VENV)/spark.jsa ## lint and run all the tests
	@$(BIN)/python -m pytest $(WORKERS)

$(VENV)/spark.jsa: $(VENV)/.installed
	@$(BIN)/python scripts/warm_up.py $@

test-quick: install $(MODULES) ## the tests that need neither Spark nor a browser
	@$(BIN)/python -m pytest $(WORKERS) -m 'not spark and not browser'

test-matrix: java install ## Spark's tests on Spark 3.5, 4.0 and 4.1, or on SPARK=3.5, an environment each; what was seen goes into docs/spark.md
	@$(BIN)/python -m tests.spark --write $(SPARK)

interop: java install ## the kit with real engines and catalogs, downloads of 3.2 GB at first; what was seen goes into docs/interop.md
	@$(BIN)/python -m tests.interop --write

soak: install ## 10,000 seeds of the simulation; their figures go into docs/reliability.md
	@$(BIN)/python -m tests.simulation --seeds 0:10000 --workers 2 --write

fuzz: install ## properties on new examples; damaged files; readers of bytes under libFuzzer, a minute each
	@ICESTATS_FUZZ=100 $(BIN)/python -m pytest tests/property tests/widgets $$(grep -l "@given" tests/unit/*.py)
	@$(BIN)/python -m tests.fuzz

oldest: java+chromium+libatomic install $(MODULES) ## the tests that need no browser, with the oldest versions that pyproject.toml allows
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-oldest
	@$(BIN)/uv pip install --quiet --python .venv-oldest --resolution lowest-direct --editable '.[dev]'
	@.venv-oldest/bin/python -m pytest $(WORKERS) -m 'not browser' --ignore=tests/fuzz

lock: install ## choose the versions that tests run with anew, within what pyproject.toml allows
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --generate-hashes \
	  --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml

audit: install ## known vulnerabilities and the licences of what is locked
	@$(BIN)/pip-audit --strict --require-hashes --disable-pip --progress-spinner off --requirement requirements.lock
	@$(BIN)/pip-licenses --from=mixed --partial-match --allow-only='$(LICENCES)' --ignore-packages $(LICENCE_UNNAMED)

dist: lint ## the wheel and the source archive, into dist/, if they install and work in an environment of their own
	@$(BIN)/python -m pytest tests/unit/test_installation.py
	@rm -rf dist
	@$(BIN)/uv build --quiet

pictures: java+chromium+libatomic install ## the pictures of docs/: the browser tests take them, the animated one is composed of theirs
	@ICESTATS_SCREENSHOTS=1 $(BIN)/python -m pytest tests/browser
	@$(BIN)/python docs/animation.py

front: install $(MODULES) ## bundle the explorer's front end, widgets/frontend/, into the widget's static/
	@$(BIN)/node $(FRONT)/build.js

$(MODULES): $(FRONT)/package.json $(FRONT)/package-lock.json | install
	@$(BIN)/npm ci --prefix $(FRONT) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

lint: install $(MODULES) ## ruff, mypy, tsc, import-linter, zizmor, the bundle is that of src/, notebooks paired and stripped
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/node $(FRONT)/node_modules/typescript/bin/tsc --project $(FRONT)
	@$(BIN)/node $(FRONT)/build.js --check
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/zizmor --quiet --offline --pedantic --strict-collection --no-progress .github
	@$(BIN)/nbstripout --verify notebooks/*.ipynb
	@$(BIN)/jupytext --test --to py:percent notebooks/*.ipynb

format: install ## mend what lint can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/nbstripout notebooks/*.ipynb
	@$(BIN)/jupytext --sync notebooks/*.ipynb

bench: java+chromium+libatomic install ## the figures of README and docs/
	@$(BIN)/python -m benchmarks

clean: ## remove .venv and caches
	@rm -rf $(VENV) $(FRONT)/node_modules .venv-oldest .venv-spark-* .fuzz .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
