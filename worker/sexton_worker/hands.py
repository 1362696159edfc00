"""What a worker has in its hands. Each claim is in exactly one of four places, by its token:

    granted ──begin──▶ running ──end──▶ unsent ──send──▶ sent ──settle──▶ (gone)
       ├── drop: its token no longer counts
       └── give_back: its run never began ──▶ unsent

Belongs to one loop, and asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from sexton.claims import PACED_ORIGINS, State
from sexton.clock import Clock
from sexton.recipes import Recipe
from sexton.store.protocol import Grant, RunResult
from sexton_worker.core.completion import SUCCEEDED, conclude, has_succeeded, storable
from sexton_worker.core.runs import EndedRun
from sexton_worker.execution import RunOrder
from sexton_worker.worker_time import WorkerTime


class Hands:
    """``draw`` gives numbers in [0, 1) for the jitter of retries."""

    def __init__(self, clock: Clock, time: WorkerTime, draw: Callable[[], float]) -> None:
        self._clock = clock
        self._time = time
        self._draw = draw
        self.granted: dict[int, Grant] = {}
        self._paced: set[int] = set()  # of granted and running, the tokens under the catch-up budget
        self.running: dict[int, RunOrder] = {}
        self.unsent: dict[int, RunResult] = {}
        self.sent: dict[int, RunResult] = {}  # and not answered
        self.unsent_since = 0.0  # elapsed seconds; not before
        self.ended_at = clock.elapsed()  # when a run ended last, or the first one of all began

    def count(self) -> int:
        """Of claims that are granted or running."""
        return len(self.granted) + len(self.running)

    def paced_count(self) -> int:
        """Of claims under the catch-up budget that are granted or running."""
        return len(self._paced)

    def tokens(self) -> list[int]:
        """Of all that is here."""
        return [*self.granted, *self.running, *self.sent, *self.unsent]

    def results(self) -> int:
        """How many results the database has not answered."""
        return len(self.sent) + len(self.unsent)

    # --- in and through ---------------------------------------------------------------------------------------------

    def take(self, grants: Iterable[Grant]) -> None:
        """These were granted."""
        for grant in grants:
            self.granted[grant.token] = grant
            if grant.origin in PACED_ORIGINS:
                self._paced.add(grant.token)

    def startable(self) -> list[Grant]:
        """All grants."""
        return list(self.granted.values())

    def pressing(self) -> list[Grant]:
        """Those that come before runs of the usual priority, and those that cannot start during an exchange."""
        return [grant for grant in self.granted.values() if grant.priority > 0 or grant.at_most_once]

    def simple(self) -> list[Grant]:
        """Those of which nothing is to be written down before: they can start during an exchange."""
        return [grant for grant in self.granted.values() if not grant.at_most_once]

    def begin(self, grant: Grant, recipe: Recipe, now: datetime, until: float) -> RunOrder:
        """The order to run it, from ``now`` (database time); it must begin before ``until`` (elapsed seconds)."""
        del self.granted[grant.token]
        if not self.running:
            self.ended_at = self._clock.elapsed()
        job, rules = recipe
        order = self.running[grant.token] = RunOrder(grant, job, rules, now + rules.max_runtime, until)
        return order

    def end(self, ended: EndedRun) -> bool:
        """The run has ended, and its result is to be sent; false if it is not here."""
        order = self.running.pop(ended.token, None)
        if order is None:
            return False
        self._paced.discard(ended.token)
        self.unsent[ended.token] = self._result(order, ended)
        self.ended_at = self._clock.elapsed()
        return True

    # --- out --------------------------------------------------------------------------------------------------------

    def drop(self, token: int) -> None:
        """The grant no longer counts, and nothing is to be said of it."""
        del self.granted[token]
        self._paced.discard(token)

    def recalled(self, token: int, why: str) -> None:
        """The run was ordered and will not begin: its claim goes back."""
        self.give_back(self.running.pop(token).grant, why)

    def give_back(
        self, grant: Grant, why: str, outcome: State = State.READY, *, after: timedelta | None = None
    ) -> None:
        """The grant's run never began: put its claim back, to be pulled at once or ``after`` a while, or end it with
        ``outcome``."""
        self.granted.pop(grant.token, None)
        self._paced.discard(grant.token)
        self.unsent[grant.token] = RunResult(
            job_id=grant.job_id,
            scheduled_at=grant.scheduled_at,
            token=grant.token,
            attempt=grant.attempt,
            outcome=outcome,
            finished_at=self._time.now(),
            error=storable(why),
            retry_at=None if after is None else self._time.now() + after,
        )

    def send(self) -> tuple[RunResult, ...]:
        """All results, which are on their way from now on; those that were sent before without an answer first."""
        self.sent |= self.unsent
        self.unsent = {}
        return tuple(self.sent.values())

    def settle(self) -> None:
        """What was sent was answered."""
        self.sent = {}

    def _result(self, order: RunOrder, ended: EndedRun) -> RunResult:
        grant, finished_at = order.grant, self._time.instant(ended.ended)
        if has_succeeded(ended, order.rules):
            verdict = SUCCEEDED
        else:
            verdict = conclude(
                ended,
                order.rules,
                retries_used=grant.retries,
                losses=grant.losses,
                at_most_once=grant.at_most_once,
                finished_at=finished_at,
                draw=self._draw(),
            )
        return RunResult(  # by place, as for each run: by name it would take several times as long
            grant.job_id,
            grant.scheduled_at,
            grant.token,
            grant.attempt,
            verdict.outcome,
            finished_at,
            None if ended.started is None else self._time.instant(ended.started),
            ended.exit_code,
            storable(verdict.error),
            verdict.retry_at,
            verdict.uses_retry,
            ended.stdout,
            ended.stderr,
            ended.stdout_bytes,
            ended.stderr_bytes,
            verdict.is_loss,
        )
