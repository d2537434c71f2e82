# `make help` lists what can be done here. Needs only make and Python 3.11 or newer.
# PYTHON=/path/to/python chooses the interpreter of a new .venv; ARGS="…" is passed on.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Sets are walked in the same order in every run and in every worker of a parallel one.
export PYTHONHASHSEED := 0

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -qq
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
# A package that comes or goes changes what the install has to point at.
PACKAGES := $(wildcard bot/__init__.py core/__init__.py storage/__init__.py)
CODE := $(wildcard bot core storage tests)
COMPILE := $(PY) -m uv --quiet pip compile pyproject.toml --group build --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
	--strip-extras --upgrade

.PHONY: help run test test-all check lock bench matrix kill-points clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS='	' read -r t d; do \
		printf '  %-12s %s\n' "$$t" "$$d"; done

run: $(RUN_STAMP) ## Install what is needed into .venv and start the console in the browser
	@exec $(VENV)/bin/watchkeeper local $(ARGS)

test: $(DEV_STAMP) ## Run the tests, in parallel, without the slow ones
	@$(PY) -m pytest -m "not slow" -n logical --dist loadgroup $(ARGS)

test-all: $(DEV_STAMP) ## Run every test, the slow ones too
	@$(PY) -m pytest -n logical --dist loadgroup $(ARGS)

check: $(DEV_STAMP) ## Lint, format, types, import directions, architecture tests
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy $(CODE)
	@if [ -f bot/__init__.py ] && [ -f core/__init__.py ] && [ -f storage/__init__.py ]; then \
		$(VENV)/bin/lint-imports --no-logo; \
	else echo "imports not checked: bot, core and storage are not all there"; fi
	@$(PY) -m pytest -q tests/architecture

lock: $(DEV_STAMP) ## Renew requirements.lock and requirements-dev.lock
	@$(COMPILE) -o requirements.lock
	@$(COMPILE) --group dev -c requirements.lock -o requirements-dev.lock

bench: $(DEV_STAMP) ## Run the benchmarks in tests/bench
	@if [ -d tests/bench ]; then $(PY) -m pytest -s tests/bench -o python_files='bench_*.py' $(ARGS); \
	else echo "no benchmarks yet"; fi

kill-points: $(DEV_STAMP) ## Strike an analysis at every statement, commit and outside call; writes docs/kill-points.md
	@$(PY) -m tests.kill_points --document docs/kill-points.md $(ARGS)

matrix: $(DEV_STAMP) ## Strike real processes with every fault, ten seeds each, and write docs/matrix.md
	@$(PY) -m tests.fleet --write docs/matrix.md $(ARGS)

clean: ## Remove the virtual environment and whatever tools left behind
	rm -rf $(VENV) build dist .ci-out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf *.egg-info
	find bot core storage tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Tries the newest first. An interpreter counts only if it starts: version managers leave names that do not.
$(PY):
	@found=; bare=; \
	for p in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
		"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		if "$$p" -c 'import ensurepip, venv' >/dev/null 2>&1; then found=$$p; break; fi; \
		bare=$${bare:-$$p}; \
	done; \
	if [ -z "$$found" ] && [ -n "$$bare" ]; then \
		echo "$$bare cannot make virtual environments: install its venv module (Debian: apt install $$(basename $$bare)-venv)" >&2; \
		exit 1; \
	fi; \
	if [ -z "$$found" ]; then \
		echo "Python 3.11 or newer is needed and was not found; install it, or name one: make PYTHON=/path/to/python3" >&2; \
		exit 1; \
	fi; \
	echo "making $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv --clear $(VENV)

$(RUN_STAMP): requirements.lock pyproject.toml $(PACKAGES) | $(PY)
	@echo "installing what requirements.lock names"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): requirements-dev.lock pyproject.toml $(PACKAGES) | $(PY)
	@echo "installing what requirements-dev.lock names"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@
