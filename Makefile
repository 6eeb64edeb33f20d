# Everything runs in an environment of the project's own, made once by the first target that needs it.
# Needed beforehand: Python 3.11, make, and a network that reaches PyPI.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BIGQUERY := $(VENV)/bigquery
EMULATOR := $(BIGQUERY)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE := privacy transforms pipelines slackwater tests examples benchmarks templates setup.py
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder
UNITS := -m "not hypothesis and not slow" privacy transforms pipelines slackwater tests/privacy tests/transforms tests/pipelines tests/test_house.py
ROWS ?= 1000000
RELEASE ?= flights-flink

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install docs demo demo-local demo-map flink check test search lint style type quick suite bench errors clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): requirements.txt setup.py
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make install PYTHON=/path/to/python3.11" >&2; exit 2; }
	@[ ! -L $(VENV) ] || { echo "$(VENV) is a link to an environment of others, which is not cleared: make install there" >&2; exit 2; }
	@echo "Setting up $(VENV) (about a minute, once) ..."
	@"$(PYTHON)" -m venv --clear $(VENV)
	@$(PIP) install -r requirements.txt
	@$(PIP) install --no-deps --editable .
	@$(BIN)/python -m compileall -q privacy transforms pipelines slackwater
	@touch $@

$(EMULATOR): $(READY) tests/bigquery/requirements.txt tests/bigquery/place_extension.py
	@echo "Setting up $(BIGQUERY) for the tests (about a minute, once) ..."
	@"$(PYTHON)" -m venv --clear $(BIGQUERY)
	@$(BIGQUERY)/bin/python -m pip --disable-pip-version-check --quiet install -r tests/bigquery/requirements.txt
	@mkdir $(BIGQUERY)/home
	@$(BIGQUERY)/bin/python tests/bigquery/place_extension.py $(BIGQUERY)/home
	@touch $@

install: $(EMULATOR)  ## set up .venv with the exact versions of requirements.txt

# The noise of each number is sampled once, ever. A second `make demo` goes on with the release that is there and has
# nothing to do; nothing here removes a release.
demo: $(READY)  ## release protected numbers of the flights of New York 2013, and chart them
	$(BIN)/python -m examples.flights.build
	$(BIN)/slackwater run examples/flights/spec.yaml
	$(BIN)/slackwater report examples/flights/spec.yaml -o out/flights/report.html
	@$(BIN)/python -m examples.flights.show

# A device reports once: a second `make demo-local` estimates again from the reports that there are.
demo-local: $(READY)  ## follow who has work, week by week, from reports that a million devices randomise; and chart it
	$(BIN)/slackwater local plan examples/employment/survey.yaml -o out/employment/design.json
	$(BIN)/python -m examples.employment.report
	$(BIN)/slackwater local estimate out/employment/design.json 'out/employment/reports/*.parquet' -o out/employment/estimates.parquet
	$(BIN)/slackwater local report out/employment/design.json out/employment/estimates.parquet -o out/employment/report.html
	@$(BIN)/python -m examples.employment.show

demo-map: $(READY)  ## map where and when the police of Minneapolis stopped people in 2017, as a picture and a page
	$(BIN)/python -m examples.stops.build
	$(BIN)/slackwater run examples/stops/spec.yaml
	$(BIN)/slackwater run examples/stops/near.yaml
	@$(BIN)/python -m examples.stops.show

flink: $(READY)  ## release the demo's flights on a real Flink cluster on this machine; needs Java and Maven
	$(BIN)/python -m examples.flights.build
	@sed 's|^release: .*|release: $(RELEASE)|; s|releases/flights/|releases/$(RELEASE)/|' examples/flights/spec.yaml > out/flights/$(RELEASE).yaml
	$(BIN)/python -m templates.flink.local run out/flights/$(RELEASE).yaml

# Each kind of check is a job of its own; make waits for all, fails if any fails, and ends all when it is interrupted.
JOBS := --no-print-directory --jobs=3 --keep-going

check: $(READY)  ## while writing: style, types, doctests and unit tests; a minute and a half on two cores
	@$(MAKE) $(JOBS) style type quick

test: $(READY)  ## everything: what `check` does, and property, statistical and end to end tests; eight minutes on two cores
	@$(MAKE) $(JOBS) style type suite

search: $(READY)  ## properties on ten times the examples that `test` has time for; ten minutes
	@SEARCH=10 $(PYTEST) -m hypothesis

# The suite has a process for each core and more: threads of linear algebra, or of Arrow's, would only wait for each other.
quick suite search: export OPENBLAS_NUM_THREADS = 1
quick suite search: export OMP_NUM_THREADS = 1
# What one of hundreds of processes has compiled the others need not: also where the shell says that none may be kept.
quick suite search: export PYTHONDONTWRITEBYTECODE =

quick: $(READY)
	@$(PYTEST) $(UNITS)

suite: $(EMULATOR)
	@$(PYTEST)

lint: $(READY)  ## put the code in form and mend what can be mended
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

style: $(READY)  ## what `lint` would change
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

type: $(READY)  ## types, strict: of Beam, which has few, less is asked
	@$(BIN)/mypy privacy transforms pipelines slackwater

docs: $(READY)  ## make a site of the documentation, in build/site
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs . build/site
	@echo "build/site/docs/index.html"

bench: $(READY)  ## throughput and memory beside DuckDB and PipelineDP; ROWS=12500000 for the full size
	@$(BIN)/python -m benchmarks.throughput --rows $(ROWS)

errors: $(READY)  ## errors beside the paper, OpenDP, jax-privacy and lower bounds; a quarter of an hour
	@$(BIN)/python -m benchmarks.error

clean:  ## remove what can be made again; where a release lies in its way, nothing
	@held=$$(find out build -path out/benchmarks -prune -o \( -path '*/commits/*.json' -o -name manifest.json \) -print 2>/dev/null | head -n 1); \
	  [ -z "$$held" ] || { echo "$$held belongs to a release, whose noise is sampled once, ever: move it to releases/, or remove it yourself" >&2; exit 1; }
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
