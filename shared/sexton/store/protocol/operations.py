"""What operators do to single claims and to workers: stop runs, have a tick run again, drain workers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from sexton.store.protocol.grants import RunResult

if TYPE_CHECKING:
    from sexton.claims import State


class StopOutcome(StrEnum):
    """What a request to cancel meant for one claim."""

    CANCELLED = "cancelled"  # it waited: it has ended
    ASKED = "asked to stop"  # it runs: its worker is told
    ASKED_BEFORE = "asked before"  # it runs, and its worker was told already
    OVER = "over"  # it had ended


@dataclass(frozen=True, slots=True)
class StoppedClaim:
    """One claim that a request to cancel met. ``state``: as it was met; ``token`` and ``attempt``: of its run."""

    scheduled_at: datetime
    state: State
    outcome: StopOutcome
    token: int | None
    attempt: int


@dataclass(frozen=True, slots=True)
class Rerun:
    """An ended claim that is ready again. ``was``: how it had ended; ``is_paused``: it waits for the job's resume."""

    scheduled_at: datetime
    was: State
    revision: int
    attempt: int  # how often it was granted so far; 1 too where it never was
    is_paused: bool


@dataclass(frozen=True, slots=True)
class WorkerChoice:
    """Workers by name, by the version they run, or by a queue they serve: exactly one of the three is set."""

    name: str | None = None
    version: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """A worker that was asked to drain, or no longer is; ``changed``: whether this call did it, and by which ``event``.
    ``heeds``: false for a release that does not know of it yet, which only a signal ends, and which is not asked."""

    worker_id: int
    name: str
    changed: bool
    heeds: bool = True
    event: int | None = None


class OperationStore(Protocol):
    """Each is one transaction, and recorded in ``events`` with its actor where it changed anything.

    Of very many claims ``cancel`` stops 2,000 in each transaction: an error in its midst leaves the rest as they were.
    """

    def cancel(
        self,
        job_id: int,
        actor: str,
        reason: str,
        tick: datetime | None = None,
        *,
        running_only: bool = False,
        among: Collection[datetime] | None = None,
    ) -> tuple[StoppedClaim, ...]:
        """Stop one tick's claim, or all of the job's that have not ended and are not ahead of now, oldest first; of
        these only those ``among`` the given ticks, where they are given.

        What waits (ready, parked, to be retried) ends as cancelled at once, and what that frees is promoted. What runs
        is marked, with who and why; its worker is notified, stops it, and it ends as cancelled unless it ends by itself
        before. Runs whose worker is lost end so when their lease does. Raises ``NotFound`` where ``tick`` has no claim.
        """
        ...

    def states(self, job_id: int, ticks: Sequence[datetime] | None = None) -> dict[datetime, State]:
        """The states of these claims; without ``ticks`` of those that ``cancel`` would meet."""
        ...

    def rerun(self, job_id: int, tick: datetime, actor: str, reason: str) -> Rerun:
        """Make an ended claim ready at once, with its retries and losses as new; its runs stay in the history.

        It uses the slot rule ``queue`` whatever the job says. Raises ``NotFound`` where the tick has no claim, and
        ``Refused`` where it has not ended, is held for an answer, or its job is retired.
        """
        ...

    def poisoned(self, job_ids: Sequence[int], losses: int = 3) -> tuple[tuple[int, str], ...]:
        """Those of these jobs, by id and name, whose last two ticks that ran both ended as lost, each with that many
        workers; none that is paused or retired."""
        ...

    def note_refused(self, worker_id: int, results: Sequence[RunResult]) -> int:
        """Record results that a step refused (invariant 4), for who asks what became of the tick; how many were. One
        that was sent twice and had counted the first time is none."""
        ...

    def drain(
        self, choice: WorkerChoice, actor: str, *, asked: bool = True, since: int | None = None
    ) -> tuple[DrainAsked, ...]:
        """Ask workers to drain, or take that back (``asked`` false); those that were heard of within ten minutes and
        have not stopped, by name. ``since``: leave as they are those that anybody asked, or took it back from, after
        this event."""
        ...
