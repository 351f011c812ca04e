# Every target sets up what it needs: a virtual environment in .venv, nothing outside this folder.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo quick test soak e2e cluster check bench eval docs lock clean

PACKAGES := $(sort $(wildcard packages/*))

$(READY): requirements/dev.lock $(PACKAGES:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Interlock needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(PACKAGES:%=--editable ./%)
	@touch $@

demo: $(READY)  ## show Interlock at work, from a circuit to an explained decision
	$(BIN)/interlock demo

quick: check  ## what to run while working: everything of `check`, and the tests of the pure rooms
	$(BIN)/pytest -n 2 --dist worksteal $(QUICK)

check: $(READY)  ## format, lint, types, room contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

KERNEL := packages/interlock/tests/kernel_tests
QUICK := $(KERNEL)/system $(KERNEL)/engine $(KERNEL)/signals $(KERNEL)/journal $(KERNEL)/runtime

# Many tests wait for processes: four workers fill two cores.
test: check  ## everything that must hold
	$(BIN)/pytest -n 4 --dist worksteal

soak: $(READY)  ## the tests, with the long ones: kills at every step, every mutant, more rounds; reports coverage
	$(BIN)/pytest -n 3 --dist worksteal --soak --cov=packages --cov-report=term:skip-covered

e2e: $(READY)  ## real Claude Code and Codex, offline, with models of ours; skipped where impossible
	$(BIN)/python -m tests.e2e -n 2

# make cluster FLAGS="--seed 7 --faults 1000"
cluster: $(READY)  ## hosts as network namespaces, PostgreSQL, coordinators, workers and faults; needs root
	$(BIN)/python -m tests.cluster $(FLAGS)

bench: $(READY)  ## measure beside peers; rewrites docs/benchmarks.md and docs/benchmarks-postgres.md
	PYTHON=$(PYTHON) $(BIN)/python -m bench
	PYTHON=$(PYTHON) $(BIN)/python -m bench --postgres

eval: $(READY)  ## judge the ranking of culprits on real undone fixes; rewrites docs/analyst-eval.md
	$(BIN)/python -m bench.regressions report

docs: $(READY)  ## rewrite the generated pages
	$(BIN)/python -m docs.generate

COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --custom-compile-command "make lock"
MEMBERS := $(PACKAGES:packages/%=--no-emit-package %)

lock: $(READY)  ## pin every dependency with hashes
	$(BIN)/uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	$(COMPILE) packages/interlock/pyproject.toml -o requirements/core.lock
	$(COMPILE) $(PACKAGES:%=%/pyproject.toml) --all-extras --group pyproject.toml:dev $(MEMBERS) -o requirements/dev.lock
	$(COMPILE) bench/peers.in -o requirements/bench.lock

clean:  ## remove what make made
	rm -rf $(VENV) .bench-venv build/agents .mypy_cache .ruff_cache .pytest_cache .hypothesis
