"""Held ticks as values: what a proposal holds, which part of it an operator approves, and how long that will take.

A proposal holds one of two kinds of ticks. Those of a gap exist only as a skip record: they are computed from the
revision that the proposal was made with, and approving them writes their claims. Those that were claimed and not
started exist as claims in state `held`: approving opens them again. What was too old when the proposal was made is not
in it, and what is in it does not grow too old while it waits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.claims import Overlap
from sexton.decisions import SkipReason
from sexton.errors import Refused
from sexton.job_rules import CatchUpOrder, FiringRules
from sexton.schedules import Schedule
from sexton.tick_view import MICROSECOND

APPROVED_AT_ONCE = 100_000
"""Ticks that one approval claims: it is one transaction, and nobody waits long for it."""


class ProposalState(StrEnum):
    """``open`` has one way out, and only one operator (or the end of ``hold_for``) takes it."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    LAPSED = "lapsed"


@dataclass(frozen=True, slots=True)
class HeldTick:
    """One tick that waits for an answer."""

    scheduled_at: datetime
    jitter: timedelta


@dataclass(frozen=True, slots=True)
class HeldTicks:
    """The ticks of an open proposal: ``count`` of ``schedule`` in ``(after, upto]``, or these ``claims``."""

    firing: FiringRules
    count: int
    after: datetime
    upto: datetime
    schedule: Schedule | None = None
    claims: tuple[HeldTick, ...] = ()

    def oldest(self, limit: int) -> tuple[HeldTick, ...]:
        """The oldest so many, ascending."""
        return tuple(itertools.islice(self._between(self.after, self.upto), limit))

    def newest(self, limit: int) -> tuple[HeldTick, ...]:
        """The newest so many, ascending."""
        if self.schedule is None:
            return self.claims[-limit:] if limit else ()
        return tuple(self._held(tick) for tick in self.schedule.newest_between(self.after, self.upto, limit))

    def chosen(self, part: Part) -> tuple[HeldTick, ...]:
        """The ticks of ``part``, ascending.

        Raises ``Refused`` where that is none or more than one approval takes, and where the ticks computed here are
        not those that were held (other zone data, another release).
        """
        self._check()
        if part.newest is not None:
            ticks = self.newest(min(part.newest, APPROVED_AT_ONCE + 1))
        else:
            begin = self.after if part.begin is None else max(self.after, part.begin - MICROSECOND)
            end = self.upto if part.end is None else min(self.upto, part.end - MICROSECOND)
            ticks = tuple(itertools.islice(self._between(begin, end), APPROVED_AT_ONCE + 1))
        if not ticks:
            raise Refused("no tick of this proposal lies there", hint="`sexton holds reject` answers all of it with no")
        if len(ticks) > APPROVED_AT_ONCE:
            raise Refused(
                f"this would claim more than {APPROVED_AT_ONCE:,} ticks at once",
                hint="approve a part, with --newest or --from and --to; the rest is then rejected",
            )
        return ticks

    def gap_parts(self, approved: Sequence[HeldTick]) -> tuple[GapPart, ...]:
        """The gap's skip record cut around the ``approved`` ticks, oldest first; empty where there is no gap."""
        if self.schedule is None:
            return ()
        first = min(approved[0].scheduled_at, approved[-1].scheduled_at)
        last = max(approved[0].scheduled_at, approved[-1].scheduled_at)
        parts = []
        begin = self.after
        if before := self.schedule.count_between(self.after, first - MICROSECOND):
            begin = self.schedule.newest_between(self.after, first - MICROSECOND, 1)[-1]
            parts.append(GapPart(self.after, begin, before, is_approved=False))
        parts.append(GapPart(begin, last, len(approved), is_approved=True))
        if behind := self.count - before - len(approved):
            parts.append(GapPart(last, self.upto, behind, is_approved=False))
        return tuple(parts)

    def _between(self, after: datetime, upto: datetime) -> Iterator[HeldTick]:
        if self.schedule is None:
            return (tick for tick in self.claims if after < tick.scheduled_at <= upto)
        return (self._held(tick) for tick in self.schedule.between(after, upto))

    def _held(self, tick: datetime) -> HeldTick:
        return HeldTick(tick, self.firing.jitter_of(tick))

    def _check(self) -> None:
        if self.schedule is None:
            return
        found = self.schedule.count_between(self.after, self.upto)
        if found != self.count:
            raise Refused(
                f"{self.count:,} ticks are held, and here {found:,} are computed for the same stretch",
                hint="use a Sexton of the release and zone data that the cluster had then, or reject them",
            )


@dataclass(frozen=True, slots=True)
class GapPart:
    """``count`` ticks in ``(after, upto]`` of a gap, answered alike."""

    after: datetime
    upto: datetime
    count: int
    is_approved: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Which ticks of a proposal: all, the newest so many, or those in ``[begin, end)``; an end left out is open."""

    newest: int | None = None
    begin: datetime | None = None
    end: datetime | None = None

    @property
    def is_all(self) -> bool:
        return self == ALL


ALL = Part()


def in_start_order(ticks: Sequence[HeldTick], firing: FiringRules) -> tuple[HeldTick, ...]:
    """The ticks as their job's ``order`` has them start."""
    if firing.missed.order is CatchUpOrder.NEWEST:
        return tuple(reversed(ticks))
    return tuple(ticks)


def became_of(reason: str, detail: str) -> str:
    """What became of a skip record's ticks, in a word: its reason; ``rejected`` or ``lapsed`` where they were held and
    that was the answer, which the record says behind its detail."""
    if reason == SkipReason.HELD.value:
        for state, said in ((ProposalState.REJECTED, "; rejected by "), (ProposalState.LAPSED, "; lapsed: ")):
            if said in detail:
                return state.value
    return reason


def runs_at_once(firing: FiringRules, concurrency: int) -> int:
    """How many caught-up ticks of a job can run at once, where the cluster runs ``concurrency``: its slots say."""
    if firing.overlap is Overlap.ALLOW:
        return concurrency
    return min(concurrency, 1 if firing.concurrency is None else firing.concurrency.limit)


@dataclass(frozen=True, slots=True)
class Pace:
    """The catch-up budget as it stands: from ``next_at`` on (not before ``now``) ``rate`` starts a second."""

    now: datetime
    next_at: datetime
    rate: float

    def start(self, number: int) -> datetime:
        """When the ``number``-th tick (from 0) approved now becomes available."""
        return start_at(max(self.now, self.next_at), number, self.rate)

    def starts(
        self, firing: FiringRules, ticks: Sequence[HeldTick], before: int = 0
    ) -> tuple[tuple[HeldTick, datetime], ...]:
        """The ticks in the order they would start in if they were approved now, with when each could; ``before``: so
        many others start first."""
        ordered = enumerate(in_start_order(ticks, firing), before)
        return tuple((tick, self.start(number)) for number, tick in ordered)

    def drain(self, count: int, at_once: int, run: timedelta | None) -> timedelta | None:
        """How long from now until the last of ``count`` ticks has run, ``at_once`` of them together, each as long as
        ``run``; None where no run tells. Live ticks go first, so it may take longer."""
        if run is None or not count:
            return None
        last_start = self.start(count - 1) - self.now
        wait = max(self.next_at - self.now, timedelta(0))
        return max(last_start + run, wait + math.ceil(count / at_once) * run)


def start_at(first: datetime, number: int, rate: float) -> datetime:
    """The ``number``-th start of a budget of ``rate`` a second that begins at ``first``; whole microseconds."""
    return first + timedelta(microseconds=round(number * 1_000_000 / rate))
