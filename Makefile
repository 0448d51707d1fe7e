PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
# A public gateway that the tests embed us in. Its own dependencies are not needed, and pin what we do not.
HERMES := hermes-agent==0.17.0

.PHONY: live setup dashboards proof sample test test-openai-floor test-telegram-newest test-pythons soak check clean fuzz-anchor-grammar

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[harness,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps '$(HERMES)' || echo 'no $(HERMES): its tests skip'
	touch $@

proof: setup
	$(BIN)/kexpr-harness proof

test: setup
	$(BIN)/python -m pytest -q

# Real calls, one a surface and contract, and nothing is sent. Needs LIVE=1, RUN_KOREAN_EXPRESSION_LIVE=1 and OPENAI_API_KEY.
live: setup
	@$(BIN)/python -m tests.live.run $(if $(filter 1,$(LIVE)),--live)

# The oldest supported SDK line; `make test` runs on the newest.
test-openai-floor:
	test -x .venv-floor/bin/python || $(PYTHON) -m venv .venv-floor
	.venv-floor/bin/python -m pip install --quiet --disable-pip-version-check -e '.[harness]' 'openai==2.24.0' pytest hypothesis
	.venv-floor/bin/python -m pytest -q tests/unit/transport tests/integration/transport tests/property/transport tests/unit/harness/rehearsal

# The newest python-telegram-bot, over the release that hermes-agent pins and `make test` runs on.
test-telegram-newest: setup
	rm -rf .venv-telegram
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target .venv-telegram python-telegram-bot
	PYTHONPATH=.venv-telegram $(BIN)/python -c 'import telegram; print("python-telegram-bot", telegram.__version__)'
	PYTHONPATH=.venv-telegram REQUIRE_INTEGRATION=1 $(BIN)/python -m pytest -q tests/integration/hosts -k 'not hermes'

# Coordinator, transport, paths and hosts on other Pythons; one that is not there is named, and stays untested.
PYTHONS ?= python3.12 python3.13 python3.14
test-pythons:
	set -e; for python in $(PYTHONS); do \
	  $$python -c '' 2>/dev/null || { echo "$$python: not there, untested"; continue; }; \
	  venv=.venv-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  test -x $$venv/bin/python || $$python -m venv $$venv; \
	  $$venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[harness]' \
	    pytest hypothesis python-telegram-bot==22.6 'httpx[socks]==0.28.1'; \
	  $$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps '$(HERMES)' \
	    || echo 'no $(HERMES): its tests skip'; \
	  $$venv/bin/python -m pytest -q -p no:cacheprovider tests/integration/hosts tests/integration/paths \
	    tests/integration/transport tests/integration/test_coordinator.py; \
	done

# Rebuilds the dashboards, and holds rules, alerts and every panel's query against promtool and a real Prometheus.
dashboards: setup
	$(BIN)/python -m dashboards.build
	git diff --exit-code -- dashboards
	REQUIRE_INTEGRATION=1 $(BIN)/python -m pytest -q tests/integration/dashboards

# Simulated histories with seeds of their own, for MINUTES; the seed of a failure is printed with its replay.
MINUTES ?= 10
soak: setup
	$(BIN)/python -m tests.simulation.soak --minutes $(MINUTES)

# A million mutated answers of the anchor grammar against the reference parser; the suite runs 20,000.
fuzz-anchor-grammar: setup
	$(BIN)/python -m tests.support.anchor_fuzz 1000000

# The committed sample: a rehearsal of proof and fourteen days, which can never be approved (exit 6).
sample: setup
	rm -rf build/sample reports/sample
	$(BIN)/kexpr-harness observe simulate --days 14 --out build/sample
	$(BIN)/kexpr-harness report --state build/sample --out reports/sample/en --lang en || test $$? -eq 6
	$(BIN)/kexpr-harness report --state build/sample --out reports/sample/ko --lang ko || test $$? -eq 6

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/test_docs.py tests/unit/authority/test_transitions.py

clean:
	rm -rf $(VENV) .venv-floor .venv-telegram .venv-3.* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
