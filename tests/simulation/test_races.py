"""A race under kills, freezes and outages on virtual time; and a race whose compare-and-set is planted away."""

from __future__ import annotations

from datetime import timedelta

from sexton.decisions import CommitResult, TickBatch
from sexton.store.sqlite.store import SqliteStore
from sexton.store.sqlite.ticks import SqliteTicks
from sexton.store.tables import to_micros
from sexton_tui.simulation.cluster import Simulation, search, simulate
from sexton_tui.simulation.faults import FaultRates
from sexton_tui.simulation.world import World

RACE = (("strategy", "race"), ("horizon", "2m"), ("session", "30s"), ("heartbeat", "5s"), ("lease", "20s"))
SHORT = timedelta(seconds=40)


def test_racers_that_are_killed_frozen_and_cut_off_decide_each_tick_once() -> None:
    """Invariants 2, 3, 6 and 7, with no coordinator."""
    simulation = Simulation(1, 0.5, settings=RACE, longest_run=SHORT, rates=FaultRates(kill=6, freeze=6))
    outcome = simulate(simulation)
    assert outcome.findings == ()
    assert outcome.judged.audit.due > 50
    assert outcome.counts["takeovers"] == 0
    assert outcome.counts["log race.entered"] > simulation.nodes  # they came back


class TrustingTicks(SqliteTicks):
    """The commit takes every cursor to stand where its racer believes (against invariant 2)."""

    def commit(self, batch: TickBatch) -> CommitResult:
        with self._connection.transaction() as writing:
            for move in batch.moves:
                writing.execute("UPDATE cursors SET at = ? WHERE job_id = ?", (to_micros(move.was), move.job_id))
        return super().commit(batch)


def trust_the_racers(store: SqliteStore, world: World) -> None:
    vars(store)["ticks"] = TrustingTicks(store.connection)


def test_a_race_without_its_compare_and_set_is_found_out() -> None:
    simulation = Simulation(3, 1.0, rates=None, operator_every=None, settings=RACE, plant=trust_the_racers)
    assert "swallowed" in {finding.kind for finding in search(simulation)}
