"""What a worker has done since its process began: numbers that its loop leaves, for whoever reads them.

Counted once an exchange, over what it carried: about a microsecond a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sexton.claims import PACED_ORIGINS, State
from sexton.distributions import Distribution
from sexton.store.protocol import RunResult, StepResult

LATENESS_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
RUN_SECONDS = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0, 43200.0)
EXCHANGE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0)
_ASIDE_KEPT = 50_000  # of runs that never sent a result


class Standing(NamedTuple):
    """What a loop has in hand, and why it might take nothing; ``paused``: seconds its machine starts no run."""

    granted: int
    running: int
    unsent: int
    is_away: bool  # the database
    is_draining: bool
    paused: float


class RunCounts:
    """Belongs to one loop; others read it. ``late`` and ``caught_up``: lateness of first tries, of live ticks and of
    those that were missed, held or backfilled. ``outcomes``: of accepted results, by ``State``; of those that went back
    to the queue, ``retried`` are tried again because they failed, the others were given back.
    """

    def __init__(self) -> None:
        self.turned_at: float | None = None  # when the loop came round last, in elapsed seconds
        self.errors = 0  # exchanges and other calls that the database did not answer
        self.granted = 0
        self.refused = 0  # results whose token no longer counted
        self.retried = 0
        self.outcomes = [0] * len(State)
        self.late = Distribution(LATENESS_SECONDS)
        self.caught_up = Distribution(LATENESS_SECONDS)
        self.took = Distribution(RUN_SECONDS)
        self.exchanges = Distribution(EXCHANGE_SECONDS)
        # By token, of the runs in hand that are not plain: their jitter in seconds, and whether they were caught up.
        self._aside: dict[int, tuple[float, bool]] = {}

    def exchanged(
        self, results: Sequence[RunResult], answer: StepResult, refused: Sequence[RunResult], seconds: float
    ) -> None:
        """An exchange was answered."""
        self.exchanges.add(seconds)
        self.granted += len(answer.grants)
        for grant in answer.grants:
            if grant.jitter or grant.origin in PACED_ORIGINS:
                self._aside[grant.token] = grant.jitter.total_seconds(), grant.origin in PACED_ORIGINS
        if refused:
            self.refused += len(refused)
            lost = {result.token for result in refused}
            results = [result for result in results if result.token not in lost]
        self._ended(results)
        while len(self._aside) > _ASIDE_KEPT:
            del self._aside[next(iter(self._aside))]

    def _ended(self, results: Sequence[RunResult]) -> None:
        outcomes, aside, took, late = self.outcomes, self._aside, [], []
        for result in results:
            outcomes[result.outcome] += 1
            started_at = result.started_at
            jitter, is_caught_up = aside.pop(result.token, _PLAIN) if aside else _PLAIN
            if started_at is None:
                continue
            took.append((result.finished_at - started_at).total_seconds())
            if result.uses_retry:
                self.retried += 1
            if result.attempt == 1:
                lateness = (started_at - result.scheduled_at).total_seconds() - jitter
                self.caught_up.add(lateness) if is_caught_up else late.append(lateness)
        self.took.add(*took)
        self.late.add(*late)


_PLAIN = (0.0, False)
