# Everything runs in the project's own environment; the first target that needs it creates it.
# Required: Python 3.11 to 3.13, make, and a network that reaches PyPI.

# The first of these commands that is a supported Python: pyenv has commands for unused versions, too.
IS_SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
first = $(shell for one in $(1); do "$$one" -c '$(IS_SUPPORTED)' 2>/dev/null && echo "$$one" && break; done)
PYTHON ?= $(call first,python3.11 python3.12 python3.13 python3)
NEWEST ?= $(call first,python3.13 $(wildcard $(HOME)/.pyenv/versions/3.13.*/bin/python3.13))
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTED := $(VENV)/.tested
BIGQUERY := $(VENV)/bigquery
EMULATOR := $(BIGQUERY)/.ready
SECOND := $(VENV)/newest
FUZZ := $(VENV)/fuzz
FUZZED := $(FUZZ)/.ready
LOCK := $(VENV)/lock
pip = $(1)/bin/python -m pip --disable-pip-version-check --quiet install --no-compile
# The lists are complete, so that nothing is resolved; this checks that they are.
complete = $(1)/bin/python -m pip --disable-pip-version-check check >$(1)/.check || { cat $(1)/.check >&2; exit 1; }
PACKAGES := privacy transforms pipelines slackwater
TYPED := $(PACKAGES) benchmarks examples templates
CODE := $(TYPED) tests setup.py
PYTEST := python -m pytest -n auto --dist loadgroup --no-loadscope-reorder
UNITS := -m "not hypothesis and not slow" $(PACKAGES) tests/privacy tests/transforms tests/pipelines tests/test_house.py
ROWS ?= 1000000
MINUTES ?= 1
RELEASE ?= flights-flink

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install lock docs reference demo demo-local demo-map gallery flink check test audit claims fuzz search lint style type quick newest suite programs bench \
  errors clean

# One process compiles for all others, even if the shell forbids compiled files.
export PYTHONDONTWRITEBYTECODE =

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): requirements.lock setup.py
	@"$(PYTHON)" -c '$(IS_SUPPORTED)' 2>/dev/null || \
	  { echo "Python 3.11, 3.12 or 3.13 is required: make install PYTHON=/path/to/python3.11" >&2; exit 2; }
	@[ ! -L $(VENV) ] || { echo "$(VENV) is a link to an environment of others, which is not cleared: make install there" >&2; exit 2; }
	@echo "Installing what Slackwater and its demos need into $(VENV), once: 1.2 GB ..."
	@"$(PYTHON)" -m venv --clear $(VENV)
	@$(call pip,$(VENV)) --no-deps --require-hashes -r requirements.lock
	@$(call pip,$(VENV)) --no-deps --editable .
	@$(call complete,$(VENV))
	@# Compiles what is imported, which is a fifth of what is installed.
	@$(BIN)/python -c 'import pkgutil, matplotlib.pyplot; \
	  names = [found.name for name in "$(PACKAGES)".split() for found in pkgutil.walk_packages([name], name + ".")]; \
	  [__import__(name) for name in names if "__main__" not in name]'
	@touch $@

$(TESTED): $(READY) tests/requirements.lock
	@echo "Installing what tests and documentation need besides into $(VENV), once: 0.3 GB ..."
	@$(call pip,$(VENV)) --no-deps --require-hashes -r requirements.lock -r tests/requirements.lock
	@$(call complete,$(VENV))
	@touch $@

$(EMULATOR): $(READY) tests/bigquery/requirements.lock tests/bigquery/place_extension.py
	@echo "Installing the BigQuery emulator for the tests into $(BIGQUERY), once: 0.7 GB ..."
	@"$(PYTHON)" -m venv --clear $(BIGQUERY)
	@$(call pip,$(BIGQUERY)) --no-deps --require-hashes -r tests/bigquery/requirements.lock
	@$(call complete,$(BIGQUERY))
	@mkdir $(BIGQUERY)/home
	@$(BIGQUERY)/bin/python tests/bigquery/place_extension.py $(BIGQUERY)/home
	@touch $@

$(SECOND)/.ready: $(TESTED)
	@echo "Installing the same for $$("$(NEWEST)" --version) into $(SECOND), once ..."
	@"$(NEWEST)" -m venv --clear $(SECOND)
	@$(call pip,$(SECOND)) --no-deps --require-hashes -r requirements.lock -r tests/requirements.lock
	@$(call pip,$(SECOND)) --no-deps --editable .
	@touch $@

# The fuzzer alone, next to the packages of the environment: it changes bytecode on import, so no other process has it.
$(FUZZED): $(TESTED) tests/fuzz/requirements.lock
	@$(BIN)/python -m venv --clear $(FUZZ)
	@$(call pip,$(FUZZ)) --no-deps --require-hashes -r tests/fuzz/requirements.lock
	@$(BIN)/python -c 'import site; print(*site.getsitepackages(), sep="\n")' >$$(echo $(FUZZ)/lib/python3*/site-packages)/others.pth
	@touch $@

install: $(READY)  ## set up .venv with the exact versions and hashes of requirements.lock

# The noise of each number is sampled once. A second `make demo` continues the existing release and has nothing to do;
# no target removes a release.
demo: $(READY)  ## publish protected numbers of the flights of New York 2013, with a chart
	$(BIN)/python -m examples.flights.build
	$(BIN)/slackwater run examples/flights/spec.yaml
	$(BIN)/slackwater report examples/flights/spec.yaml -o out/flights/report.html
	@$(BIN)/python -m examples.flights.show

# A device reports once: a second `make demo-local` estimates again from the existing reports.
demo-local: $(READY)  ## estimate from the randomised reports of a million devices who has work, with a chart
	$(BIN)/slackwater local plan examples/employment/survey.yaml -o out/employment/design.json
	$(BIN)/python -m examples.employment.report
	$(BIN)/slackwater local estimate out/employment/design.json 'out/employment/reports/*.parquet' -o out/employment/estimates.parquet
	$(BIN)/slackwater local report out/employment/design.json out/employment/estimates.parquet -o out/employment/report.html
	@$(BIN)/python -m examples.employment.show

demo-map: $(READY)  ## map stops by the police of Minneapolis in 2017, as a picture and a page
	$(BIN)/python -m examples.stops.build
	$(BIN)/slackwater run examples/stops/spec.yaml
	$(BIN)/slackwater run examples/stops/near.yaml
	@$(BIN)/python -m examples.stops.show

gallery: $(READY)  ## make pages of five releases of different kinds, from synthetic changelogs
	$(BIN)/python -m examples.gallery.build

flink: $(READY)  ## publish the demo's flights with a real Flink cluster on this machine; needs Java and Maven
	$(BIN)/python -m examples.flights.build
	@sed 's|^release: .*|release: $(RELEASE)|; s|releases/flights/|releases/$(RELEASE)/|' examples/flights/spec.yaml > out/flights/$(RELEASE).yaml
	$(BIN)/python -m templates.flink.local run out/flights/$(RELEASE).yaml

# Each kind of check is a separate job; make waits for all, fails if any fails, and ends all when it is interrupted.
JOBS := --no-print-directory --jobs=3 --keep-going

check: $(TESTED)  ## check style, types, doctests and fast unit tests; 90 seconds on two cores
	@$(MAKE) $(JOBS) style type quick

test: $(READY)  ## run all tests, style and type checks; eight minutes on two cores
	@$(MAKE) $(JOBS) style type suite

audit: $(TESTED)  ## seed 114 faults and check that the audit sees each; 20 minutes on two cores
	@$(BIN)/python -m tests.audit.seeded

claims: $(TESTED)  ## audit each strategy, policy and protection, and compare measured bounds with the claims
	@$(BIN)/python -m tests.audit.claims

fuzz: $(FUZZED)  ## fuzz readers and parsers, guided by coverage; MINUTES=1 for each of eleven
	@$(FUZZ)/bin/python -m tests.fuzz.guided --minutes $(MINUTES)

search: $(TESTED)  ## test properties with at least twenty times the examples of `test`, and all cases; half an hour
	@SEARCH=20 $(BIN)/$(PYTEST) -m "hypothesis or few"

# The suite has at least one process for each core: threads of linear algebra or Arrow would only wait for each other.
quick newest suite search: export OPENBLAS_NUM_THREADS = 1
quick newest suite search: export OMP_NUM_THREADS = 1

quick: $(TESTED)
	@$(BIN)/$(PYTEST) $(UNITS)

newest: $(if $(NEWEST),$(SECOND)/.ready)  ## run the tests of make check on Python 3.13, in a separate environment
	@$(if $(NEWEST),$(SECOND)/bin/$(PYTEST) $(UNITS),echo "Python 3.13 is required: make newest NEWEST=/path/to/python3.13" >&2; exit 2)

suite: $(TESTED) $(EMULATOR) programs
	@$(BIN)/$(PYTEST)

# On a build server (CI=true) a missing program fails its tests, so Debian's packages are installed there.
programs: $(TESTED)
	@$(BIN)/python -m tests.programs

lint: $(TESTED)  ## format the code and fix what can be fixed automatically
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

style: $(TESTED)  ## report what `lint` would change
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

type: $(TESTED)  ## check types strictly; less strictly outside of `privacy`
	@$(BIN)/mypy $(TYPED)

# The hashes of all files of each version, for any platform. A test compares both lists.
lock: $(READY)  ## write each requirements.lock: the versions of requirements.txt with the hashes of their files
	@"$(PYTHON)" -m venv --clear $(LOCK)
	@$(call pip,$(LOCK)) uv==0.13.9
	@for name in requirements tests/requirements tests/bigquery/requirements tests/fuzz/requirements; do \
	  $(LOCK)/bin/uv pip compile --quiet --no-deps --universal --python-version 3.13 --generate-hashes --no-header --no-annotate \
	    --upgrade -o $$name.lock $$name.txt || exit 1; done

reference: $(TESTED)  ## write the generated tables of docs/reference from the code
	@$(BIN)/python -m docs.generate

docs: $(TESTED)  ## build a site of the documentation in build/site
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs . build/site
	@echo "build/site/docs/index.html"

bench: $(READY)  ## measure throughput and memory with DuckDB and PipelineDP; ROWS=12500000 for the full size
	@$(BIN)/python -m benchmarks.throughput --rows $(ROWS)

errors: $(READY)  ## compute errors with the paper, OpenDP, jax-privacy and lower bounds; a quarter of an hour
	@$(BIN)/python -m benchmarks.error

clean:  ## remove generated files; nothing if a release is among them
	@held=$$(find out build -path out/benchmarks -prune -o \( -path '*/commits/*.json' -o -name manifest.json \) -print 2>/dev/null | head -n 1); \
	  [ -z "$$held" ] || { echo "$$held belongs to a release, whose noise is sampled once, ever: move it to releases/, or remove it yourself" >&2; exit 1; }
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
