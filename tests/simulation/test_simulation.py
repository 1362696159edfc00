"""200 virtual hours of a cluster under faults, judged by the audit and by a watch over every store call.

Invariants 2 to 7 at once: kills and freezes between any two store calls, outages, lost answers, paused winners,
edits; nothing is missing, double or overdue, no slot is held twice, no stale leader or worker writes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from sexton_tui.simulation.cluster import Outcome, Simulation, simulate

HOURS = 25.0
SEEDS = range(1, 9)


def verdict(outcome: Outcome) -> str:
    """What the simulation found, and what repeats it; empty if nothing."""
    if outcome.is_clean:
        return ""
    told = [str(finding) for finding in outcome.findings[:10]]
    return "\n".join([*told, "the last lines:", *outcome.last_lines[-20:], f"again: {outcome.command}"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_under_faults_loses_and_doubles_nothing(seed: int) -> None:
    outcome = simulate(Simulation(seed, HOURS))
    assert not verdict(outcome), verdict(outcome)
    happened = outcome.counts
    for kind in ("kills", "freezes", "takeovers", "edits", "database outages", "bad weather"):
        assert happened[kind] > 3, kind
    assert sum(happened[kind] for kind in ("halts", "forces", "settings", "clock jumps")) > 10
    assert outcome.judged.audit.due > 1000
    assert outcome.judged.runs > 500
    assert outcome.refused_writes > 0
    assert outcome.refused_results > 0
    assert outcome.settings["horizon"] == "0s" or outcome.judged.written_ahead > 300


def test_the_same_seed_makes_the_same_history() -> None:
    first = simulate(Simulation(77, 0.5))
    assert first.lines > 500
    assert simulate(Simulation(78, 0.5)).digest != first.digest
    assert simulate(Simulation(77, 0.5)).digest == first.digest
    assert digest_in_a_process_of_its_own("1" if os.environ.get("PYTHONHASHSEED") == "2" else "2") == first.digest


def digest_in_a_process_of_its_own(hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "sexton_tui.cli", "simulate", "--seed", "77", "--hours", "0.5", "--output", "json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return str(json.loads(done.stdout)["digest"])


def test_without_faults_nothing_happens_but_ticks() -> None:
    outcome = simulate(Simulation(5, 3.0, rates=None, operator_every=None, failing_runs=0.0))
    assert not verdict(outcome), verdict(outcome)
    assert outcome.counts["takeovers"] == 1
    assert outcome.refused_writes == outcome.refused_results == 0
