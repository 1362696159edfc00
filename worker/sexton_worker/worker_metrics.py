"""What a worker serves over HTTP: its metrics, and whether it is alive and ready. Read from what its threads left.

No family has the name of a job: there may be any number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import sexton
from sexton.claims import State
from sexton.clock import Clock
from sexton.metric_families import Exposition, about, counter, counters, gauge, gauges, histogram, histograms
from sexton.service_endpoint import Answer, Says, alive, ready
from sexton_worker.core.readiness import unreadiness
from sexton_worker.heartbeat import HeartbeatLoop
from sexton_worker.lease_book import LeaseBook
from sexton_worker.loop import WorkerLoop, WorkerSettings

if TYPE_CHECKING:
    from prometheus_client.core import Metric

ALIVE_WITHIN = 60.0  # beside `poll`: an exchange may take ten seconds, and a turn is a few calls
_ENDED = (State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.LOST)


class WorkerMetrics:
    """A worker's answers to who asks over HTTP."""

    def __init__(
        self, own: WorkerSettings, clock: Clock, loop: WorkerLoop, heartbeat: HeartbeatLoop, book: LeaseBook
    ) -> None:
        self._own = own
        self._clock = clock
        self._loop = loop
        self._heartbeat = heartbeat
        self._book = book
        self._allowed = ALIVE_WITHIN + own.poll.total_seconds()
        self._exposition = Exposition(self.families)

    @property
    def paths(self) -> dict[str, Says]:
        """What each path says."""
        return {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}

    def _metrics(self, accept: str) -> Answer:
        kind, text = self._exposition.text(accept)
        return Answer(200, text, kind)

    def _healthz(self, _: str) -> Answer:
        silent_for = self._silent_for()
        return alive(silent_for is None or silent_for <= self._allowed, silent_for)

    def _readyz(self, _: str) -> Answer:
        return ready(self.unreadiness())

    def unreadiness(self) -> tuple[str, ...]:
        """Why the worker is not ready."""
        standing = self._loop.standing()
        return unreadiness(
            is_registered=self._book.worker_id is not None,
            is_away=standing.is_away,
            is_draining=standing.is_draining,
            paused=standing.paused,
            silent_for=self._silent_for(),
            allowed=self._allowed,
        )

    def _silent_for(self) -> float | None:
        turned_at = self._loop.counts.turned_at
        return None if turned_at is None else max(self._clock.elapsed() - turned_at, 0.0)

    def families(self) -> Iterator[Metric]:
        """All of it as metrics, now."""
        yield about("worker", self._own.name, sexton.__version__)
        yield from self._standing()
        yield from self._runs()
        yield from self._database()

    def _standing(self) -> Iterator[Metric]:
        standing = self._loop.standing()
        yield gauge("sexton_worker_ready", "1 if /readyz says so.", not self.unreadiness())
        yield gauge("sexton_worker_loop_age_seconds", "Since the worker's loop came round.", self._silent_for())
        yield gauge("sexton_worker_draining", "1 while it takes no more claims and ends.", standing.is_draining)
        yield gauge("sexton_worker_slots", "How many runs it has at once.", self._own.slots)
        yield gauge("sexton_worker_slots_busy", "Slots with a run.", min(standing.running, self._own.slots))
        yield gauges(
            "sexton_worker_claims",
            "Claims in its hands: granted and not begun, begun (taken ahead included), ended and not yet written.",
            "standing",
            {"granted": standing.granted, "running": standing.running, "unsent": standing.unsent},
        )

    def _runs(self) -> Iterator[Metric]:
        counts = self._loop.counts
        outcomes = {state.word: counts.outcomes[state] for state in _ENDED}
        outcomes["retried"] = counts.retried
        outcomes["given_back"] = max(counts.outcomes[State.READY] - counts.retried, 0)
        yield counters(
            "sexton_runs",
            "Runs by outcome, as accepted by the database; `retried` failed and is tried again.",
            "outcome",
            outcomes,
        )
        yield histograms(
            "sexton_lateness_seconds",
            "From a tick (and its jitter) to the start of its first try; `caught_up`: missed, held or backfilled.",
            "kind",
            {"live": counts.late, "caught_up": counts.caught_up},
        )
        yield histogram("sexton_run_seconds", "How long runs took.", counts.took)
        yield counter("sexton_grants", "Claims granted to it.", counts.granted)
        yield counter("sexton_stale_results", "Results refused because the run's token was over.", counts.refused)
        yield counter(
            "sexton_leases_lost", "Claims it lost because it could not renew them.", self._heartbeat.leases_lost
        )

    def _database(self) -> Iterator[Metric]:
        counts = self._loop.counts
        yield histogram(
            "sexton_exchange_seconds",
            "How long exchanges with the database took: results out, claims in.",
            counts.exchanges,
        )
        yield counters(
            "sexton_database_errors",
            "Calls that the database did not answer, by thread.",
            "part",
            {"loop": counts.errors, "heartbeat": self._heartbeat.errors},
        )
