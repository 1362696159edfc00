"""Proposals as screens and commands show them. Values, free of SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.holds import HeldTick, HeldTicks, Pace, ProposalState
from sexton.job_rules import CatchUpOrder


@dataclass(frozen=True, slots=True)
class HoldView:
    """A proposal with its answer, if it has one.

    ``first`` and ``last`` are its oldest and newest tick. ``usual_run``: how long the job's newest runs took;
    ``drain``: how long it takes until all have run if they are approved now. Both are None where no run tells, and
    ``drain`` where the proposal is answered. ``approved``: how many were; the others of an answered proposal were not.
    """

    proposal_id: int
    job_id: int
    job: str
    state: ProposalState
    count: int
    first: datetime
    last: datetime
    order: CatchUpOrder
    reason: str  # why they were held
    revision: int
    term: int
    made_at: datetime
    lapses_at: datetime
    is_paused: bool
    answered_at: datetime | None
    answered_by: str | None
    note: str | None
    approved: int
    usual_run: timedelta | None = None
    drain: timedelta | None = None

    @property
    def span(self) -> timedelta:
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class HoldDetail:
    """A proposal opened. ``ticks`` is None where it is answered: then `sexton ticks` tells of them."""

    hold: HoldView
    mark: tuple[int, datetime]  # what an answer is conditional on: the proposal is still as it was read
    ticks: HeldTicks | None
    pace: Pace

    def first_to_start(self, limit: int) -> Sequence[HeldTick]:
        """The ticks that would start first if all were approved; empty where the proposal is answered."""
        if self.ticks is None:
            return ()
        return self.ticks.newest(limit) if self.hold.order is CatchUpOrder.NEWEST else self.ticks.oldest(limit)


@dataclass(frozen=True, slots=True)
class HoldAnswer:
    """A proposal after an answer. ``is_done``: this call gave it; else ``state``, ``answered_by`` and ``answered_at``
    are those of whoever was before, or ``state`` is open: it has grown since it was read.

    ``first_start`` and ``last_start``: when the budget lets the approved ticks start. ``is_paused``: they wait for the
    job's resume.
    """

    proposal_id: int
    job_id: int
    job: str
    is_done: bool
    state: ProposalState
    count: int
    approved: int
    answered_at: datetime | None
    answered_by: str | None
    note: str | None
    first_start: datetime | None = None
    last_start: datetime | None = None
    is_paused: bool = False
