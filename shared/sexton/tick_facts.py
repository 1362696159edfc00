"""What the ledger holds about one instant of one job, read in one moment: what an explanation is made from.

Values, free of SQL. Instants are UTC. Texts are as they were stored: whoever draws them cleans them first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sexton.claims import State
from sexton.job_rules import FiringRules, RetryRules
from sexton.schedules import Schedule
from sexton.views import ClaimView, DecisionView, EarlierJob, EventView, PauseView, RunView, SkipView, TakeoverView


@dataclass(frozen=True, slots=True)
class RevisionFacts:
    """A revision whose ticks count in ``(since, until]``. ``schedule`` is None where this process cannot read it."""

    revision: int
    spec: Mapping[str, Any]
    schedule: Schedule | None
    firing: FiringRules
    retries: RetryRules
    since: datetime
    until: datetime | None
    applied_at: datetime
    applied_by: str

    @property
    def zone(self) -> str:
        return str(self.spec.get("timezone") or "UTC")

    def holds(self, instant: datetime) -> bool:
        return self.since < instant and (self.until is None or instant <= self.until)


@dataclass(frozen=True, slots=True)
class ProposalFacts:
    """A proposal that holds the tick, and its answer: ``state`` open, approved, rejected or lapsed."""

    proposal_id: int
    after: datetime
    upto: datetime
    count: int
    state: str
    made_at: datetime
    lapses_at: datetime
    answered_at: datetime | None
    answered_by: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A result that came under a token that did not count any more (invariant 4)."""

    at: datetime
    token: int
    attempt: int
    worker: str
    outcome: State
    started_at: datetime | None
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """How the cluster stands now. ``node_of_term`` led under the term that decided the tick."""

    now: datetime
    term: int
    leader: str | None
    strategy: str
    horizon: timedelta
    halted_by: str | None = None
    halt_reason: str = ""
    pruned_before: datetime | None = None
    next_paced_at: datetime | None = None  # when the catch-up budget admits the next tick
    catch_up_rate: str = ""


@dataclass(frozen=True, slots=True)
class TickFacts:
    """Everything about one instant of one job.

    ``revisions``: those around the instant, oldest first. ``holders``: what holds the slot that a parked claim waits
    for. ``workers``: how many serve the claim's queue. ``near_claims``: instants of claims within the same second.
    """

    job_id: int
    job: str
    instant: datetime
    cluster: ClusterFacts
    revisions: tuple[RevisionFacts, ...]
    cursor: datetime
    created_at: datetime
    retired_at: datetime | None = None
    quarantined_at: datetime | None = None
    quarantine_reason: str = ""
    pause: PauseView | None = None  # the one that holds the instant, or an open one
    claim: ClaimView | None = None
    runs: tuple[RunView, ...] = ()
    skip: SkipView | None = None
    named_by: str | None = None  # who asked for this one tick not to run
    proposal: ProposalFacts | None = None
    decisions: tuple[DecisionView, ...] = ()
    takeover: TakeoverView | None = None
    events: tuple[EventView, ...] = ()
    refused: tuple[RefusedWrite, ...] = ()
    holders: tuple[ClaimView, ...] = ()
    workers: int = 0
    near_claims: tuple[datetime, ...] = field(default=())
    earlier: EarlierJob | None = None  # that had the name before
