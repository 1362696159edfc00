"""The simulator finds what is planted: a watch that cannot find a fault proves nothing.

A search goes seed by seed, from one that is known to find it or is near, and ends with the first ten virtual minutes in
which something is found.

The first three are the faults that matter most (invariants 3, 2 and 7, 4); each is found within a few seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from sexton.store.sqlite.store import SqliteStore
from sexton_tui.simulation.cluster import Simulation, search
from sexton_tui.simulation.faults import FaultRates
from sexton_tui.simulation.world import World
from tests.support import planted_faults

MOST_SEEDS = 6
SHORT_LEASE = (("horizon", "2m"), ("session", "30s"), ("heartbeat", "5s"), ("lease", "20s"))

Plant = Callable[[SqliteStore, World], None]


def found_with(plant: Plant, rates: FaultRates, first: int = 1, seeds: int = MOST_SEEDS) -> set[str]:
    """The kinds of findings of the first seed that has any."""
    for seed in range(first, first + seeds):
        simulation = Simulation(
            seed,
            hours=1.5,
            zookeeper=True,
            operator_every=None,
            settings=SHORT_LEASE,
            longest_run=timedelta(seconds=40),
            rates=rates,
            plant=plant,
        )
        if found := kinds(simulation):
            return found
    return set()


def kinds(simulation: Simulation) -> set[str]:
    return {finding.kind for finding in search(simulation)}


def test_a_commit_that_ignores_the_term_is_found() -> None:
    assert "stale leader" in found_with(planted_faults.drop_the_fence, FaultRates(deposal=4), first=2)


def test_a_cursor_that_moves_before_its_claims_are_written_is_found() -> None:
    assert "missing" in found_with(planted_faults.move_the_cursor_first, FaultRates(kill=4), first=2)


def test_a_late_result_that_counts_is_found() -> None:
    found = found_with(planted_faults.trust_late_results, FaultRates(freeze=3))
    assert {"stale worker", "ended twice"} <= found


def test_with_nothing_planted_the_same_search_finds_nothing() -> None:
    rates = FaultRates(deposal=8, kill=8, freeze=6)
    assert found_with(lambda store, world: None, rates, seeds=1) == set()


def test_a_grant_in_a_halted_cluster_is_found() -> None:
    plant = planted_faults.ignore_the_halt
    halted = (
        Simulation(seed, 2, rates=None, operator_every=120, settings=SHORT_LEASE, plant=plant)
        for seed in range(1, MOST_SEEDS + 1)
    )
    found = next(found for simulation in halted if (found := kinds(simulation)))
    assert "granted while halted" in found


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        (planted_faults.free_all_slots, "slot held twice"),
        (planted_faults.take_leases, "lease taken"),
        (planted_faults.write_claims_first, "swallowed"),
        (planted_faults.break_reading, "crash"),
        (planted_faults.break_housekeeping, "logged error"),
    ],
)
def test_it_needs_no_faults_to_see(plant: Plant, kind: str) -> None:
    assert kind in kinds(Simulation(3, 1.5, rates=None, operator_every=None, settings=SHORT_LEASE, plant=plant))
