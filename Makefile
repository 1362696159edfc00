# Sexton's commands for those who work on it. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help demo cluster compose-test test collection edits trials soak soak-outages check lint campaigns sim bench bench-cluster bench-workers bench-catch-up bench-audit bench-schedules bench-console schedules-soak clean services terminal browser screenshots

VENV := .venv
# The stamp is younger than what the environment was made from, or the environment is made again.
READY := $(VENV)/.ready
SEED ?= 1
TRIES ?= 5
SOAK_MINUTES ?= 10
ARGS ?=
# What `make test` hands to pytest: make test TESTS="tests/unit -k cron"
TESTS ?=
# Many tests wait for processes and servers: five workers keep two cores busy. AT_ONCE=0 runs them in this process.
AT_ONCE ?= 5

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' \
	  | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

demo: $(READY) ## a cluster of real processes with the example jobs, and its console; without a terminal 60 s and a summary
	@if [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; then exec $(VENV)/bin/sexton up examples/jobs; \
	else exec $(VENV)/bin/sexton up examples/jobs --for 60s --no-console; fi

cluster: $(READY) services ## three ZooKeeper servers, PostgreSQL, three nodes, two workers, and the console on top
	@exec $(VENV)/bin/python -m tests.support.cluster

compose-test: ## containers: builds compose/, kills the leader's and a ZooKeeper server's, and audits (needs an engine)
	@exec compose/test

test: $(READY) services terminal browser ## all tests; they start the servers they need (TESTS="..." narrows)
	@$(VENV)/bin/pytest -n $(AT_ONCE) --dist loadfile --no-loadscope-reorder $(TESTS)

# Every test file read once and its bytecode kept; prints what is wrong with them.
collection: $(READY)
	@$(VENV)/bin/pytest --collect-only -qqq | { grep -vE '^tests/.*\.py: [0-9]+$$' || true; }

edits: $(READY) services ## job files applied to a running cluster, an edit a second for a minute, on both databases
	@$(VENV)/bin/pytest --durations=0 --durations-min=5 --timeout 3600 tests/faults/test_edits_with_a_leader.py --tries 5

trials: $(READY) services terminal ## a real cluster killed, frozen and restarted, TRIES=5 times each: what CI tries once
	@$(VENV)/bin/pytest -n 2 --dist worksteal --durations=0 --durations-min=5 --timeout 3600 tests/faults --tries $(TRIES)

soak: soak-outages ## all that is too long for CI: the outages, workers under random blows for SOAK_MINUTES=10
	@$(VENV)/bin/pytest -q -s --timeout 86400 --soak $(SOAK_MINUTES) \
	  tests/faults/soak_of_workers.py tests/faults/test_outage_of_leases.py

soak-outages: $(READY) services ## outages at their full length, a line of verdict and figures each; about eight minutes
	@$(VENV)/bin/pytest -q --timeout 86400 --soak $(SOAK_MINUTES) \
	  tests/faults/test_takeovers.py tests/faults/test_cluster_down.py \
	  tests/faults/test_postgres_away.py tests/faults/test_clock_jumps.py

check: lint test ## format, lint, import rules, types, then all tests: what CI runs

lint: $(READY) ## format, lint, import rules and types without the tests
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/mypy

campaigns: $(READY) services ## a thousand elections in a row on three ZooKeeper servers, and what they leave behind
	@CAMPAIGNS=$${CAMPAIGNS:-1000} $(VENV)/bin/pytest -q -s -k campaigns_in_a_row tests/zookeeper/test_many_campaigns.py

sim: $(READY) ## one simulated cluster from a seed: make sim SEED=7 (ARGS=... adds options)
	@$(VENV)/bin/sexton simulate --seed $(SEED) $(ARGS)

bench: $(READY) services ## the figures: claims written, takeover planning, a leader at work, pull and complete
	@for one in claims_written planning leader pull_and_complete; do \
	  echo "== bench/$$one.py"; $(VENV)/bin/python -m bench.$$one || exit 1; \
	done

# About 14 minutes on two cores with nothing beside; make bench-cluster ONE=peers (ARGS="--rounds 5") runs one of them.
CLUSTER_FIGURES := takeover hand_over start_lateness leader_cost leader_memory peers
ONE ?= $(CLUSTER_FIGURES)
bench-cluster: $(READY) services ## the figures of a real cluster: takeovers, lateness, a leader's cost, peers (ONE=... runs one)
	@for one in $(ONE); do \
	  echo "== bench/$$one.py"; $(VENV)/bin/python -m bench.$$one $(ARGS) || exit 1; \
	done

# About 20 minutes on two cores with nothing beside; make bench-workers ONE=command_runs runs one of them.
bench-workers: ONE = drain command_runs urgent_claims start_lateness
bench-workers: $(READY) services ## workers: a backlog beside peers, commands, urgent claims, lateness (ONE=... runs one)
	@for one in $(ONE); do \
	  echo "== bench/$$one.py"; $(VENV)/bin/python -m bench.$$one $(ARGS) || exit 1; \
	done

bench-catch-up: $(READY) services ## how late live ticks start while 5,000 missed ones are caught up with (ARGS="--nap 1")
	@$(VENV)/bin/python -m bench.catch_up $(ARGS)

bench-audit: $(READY) services ## the audit of a million ticks, on SQLite and PostgreSQL (ARGS="--ticks 100000")
	@$(VENV)/bin/python -m bench.audit $(ARGS)

bench-schedules: $(READY) ## the figures of schedules beside croniter, cronsim and APScheduler (ARGS="--rounds 3")
	@$(VENV)/bin/python -m bench.schedules $(ARGS)

bench-console: $(READY) services ## the console over 50,000 jobs and 5 million runs, on both databases (ARGS="--runs 500000")
	@$(VENV)/bin/python -m bench.console_fleet $(ARGS)

schedules-soak: $(READY) ## random schedules around every change of every zone's clock, 1990 to 2040 (ARGS="--share 1/2")
	@$(VENV)/bin/python -m tests.support.transition_trials $(ARGS)

screenshots: $(READY) ## the console's pictures in docs/images, taken anew from a reproducible scene
	$(VENV)/bin/python -m tests.support.picture

clean: ## remove the environment, caches and the demo's data
	@rm -rf $(VENV) .sexton .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist snapshot_report.html
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The tests fail by themselves where a server is missing; this says so for all at once, and before the first test.
services:
	@missing=; \
	{ command -v java || ls /usr/lib/jvm/*/bin/java; } >/dev/null 2>&1 || missing="$$missing default-jre-headless"; \
	[ -e /usr/share/java/zookeeper.jar ] || missing="$$missing zookeeper"; \
	[ -e /usr/share/java/slf4j-simple.jar ] || missing="$$missing libslf4j-java"; \
	{ command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 || missing="$$missing postgresql"; \
	ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || missing="$$missing faketime"; \
	[ -e /usr/bin/redis-server ] || missing="$$missing redis-server"; \
	if [ -n "$$missing" ]; then \
	  echo "make test: the tests start real servers, and their Debian packages are missing; run: apt-get install$$missing" >&2; \
	  exit 1; \
	fi

terminal:
	@command -v tmux >/dev/null || { \
	  echo "make test: one test watches the console in a terminal of tmux, which is missing; run: apt-get install tmux" >&2; \
	  exit 1; \
	}

browser:
	@[ -e /usr/bin/chromium ] || { \
	  echo "make test: one test opens the console in a real browser, which is missing; run: apt-get install chromium" >&2; \
	  exit 1; \
	}

# The first of these that is a Python from 3.11 to 3.13 makes the environment; PYTHON=... chooses another.
# An environment made by such a Python before is kept and brought up to date.
PYTHON ?=
SUITS := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PIP := $(VENV)/bin/python -m pip --quiet --disable-pip-version-check
$(READY): pyproject.toml constraints.txt
	@python=; \
	for one in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	  if "$$one" -c '$(SUITS)' 2>/dev/null; then python="$$one"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "make: no Python from 3.11 to 3.13 found as $(or $(PYTHON),python3, python3.13, python3.12 or python3.11);" \
	    "install one, or name one: make PYTHON=/path/to/python3.12" >&2; \
	  exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "make: $$python cannot make virtual environments; run: apt-get install python3-venv" >&2; exit 1; \
	fi; \
	if [ -n "$(PYTHON)" ] || ! $(VENV)/bin/python -c '$(SUITS)' 2>/dev/null; then \
	  "$$python" -m venv --clear $(VENV); \
	fi; \
	echo "make: installing Sexton and the tools of its tests into $(VENV) (about a minute, once)"
	@$(PIP) install -c constraints.txt --upgrade pip
	@$(PIP) install -c constraints.txt --build-constraint constraints.txt -e '.[all]' --group dev
	@touch $(READY)
