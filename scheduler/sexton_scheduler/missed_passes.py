"""Passes over missed ticks under either strategy: how one begins and ends, and what a commit in it carries.

A leader's pass is its own: it alone writes. Should it die, its successor goes on with the pass and with what it fired,
and holds what is left of one that holds.

A race's is a row that all racers share (``RaceStore``): who finds missed ticks first counts them all and opens it,
others join, and each commit that fires some adds them to the row's count in its own statement. So
``catch_up.hold_above`` bounds what all racers fire together, and what they hold they hold alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from sexton.decisions import Cause, CommitResult, TickBatch
from sexton.races import PassShare, RaceCounts, RacePass
from sexton.settings import ClusterSettings
from sexton.store.protocol import Store
from sexton_scheduler.catch_up_budget import CatchUpBudget
from sexton_scheduler.core.pacing import start_instants
from sexton_scheduler.core.planner import Draft, MissedPass, Planner
from sexton_scheduler.job_book import JobBook


class Passes(Protocol):
    """One term's passes."""

    def first(self, now: datetime, settings: ClusterSettings) -> MissedPass | None:
        """The pass that the term begins with, the cursors just read; None: none is needed."""
        ...

    def late(self, now: datetime, settings: ClusterSettings, served_at: datetime | None) -> MissedPass | None:
        """A pass because ticks are late, or one that others have begun; None: there is none, or another was quicker:
        if ticks are late still, look again. ``served_at``: as for ``Planner.begin_pass``."""
        ...

    def batch(
        self, draft: Draft, now: datetime, settings: ClusterSettings, missed_pass: MissedPass | None
    ) -> TickBatch | None:
        """What to commit; None where the term is over or the cluster halted."""
        ...

    def unused(self, draft: Draft, job_ids: Collection[int] | None = None) -> None:
        """The starts of these jobs (None: all of the draft) were certainly not used."""
        ...

    def committed(self, draft: Draft, result: CommitResult, missed_pass: MissedPass | None) -> MissedPass | None:
        """A commit was answered; the pass as it goes on, None: look for it again."""
        ...

    def end(self, missed_pass: MissedPass, planning: timedelta) -> None:
        """Nothing of it is left."""
        ...


@dataclass(slots=True)
class LeaderPasses:
    """A leader's: the takeover's, and those of a leader that finds itself late."""

    store: Store
    planner: Planner
    term: int
    _budget: CatchUpBudget = field(init=False)
    _starts: list[datetime] = field(init=False, default_factory=list)
    _noted: MissedPass | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._budget = CatchUpBudget(self.store, self.term)

    def first(self, now: datetime, settings: ClusterSettings) -> MissedPass | None:
        before = self.store.ticks.unfinished_pass()
        hold_above = settings.catch_up_hold_above
        return self.planner.begin_pass(Cause.TAKEOVER, now, before.fired, hold_above, holds=before.holds)

    def late(self, now: datetime, settings: ClusterSettings, served_at: datetime | None) -> MissedPass | None:
        return self.planner.begin_pass(Cause.LATE_LEADER, now, 0, settings.catch_up_hold_above, served_at=served_at)

    def batch(
        self, draft: Draft, now: datetime, settings: ClusterSettings, missed_pass: MissedPass | None
    ) -> TickBatch | None:
        if not self._is_known(missed_pass):
            self._starts = []
            return None
        starts = self._budget.take(draft.paced, settings.catch_up_rate, now) if draft.paced else []
        self._starts = starts or []  # lost with an answer: the commit may have used them
        return None if starts is None else draft.batch(self.term, now, starts)

    def _is_known(self, missed_pass: MissedPass | None) -> bool:
        """Whether a successor would go on with the pass as it is: noted before its first commit, where a takeover's
        row and its decisions do not tell."""
        if missed_pass is None or missed_pass is self._noted:
            return True
        if missed_pass.cause is Cause.TAKEOVER and not missed_pass.force_hold:
            return True
        gap_from = missed_pass.gap_from
        if not self.store.ticks.note_pass(self.term, holds=missed_pass.force_hold, gap_from=gap_from):
            return False
        self._noted = missed_pass
        return True

    def unused(self, draft: Draft, job_ids: Collection[int] | None = None) -> None:
        starts = self._starts if job_ids is None else draft.starts_of(job_ids, self._starts)
        self._budget.give_back(starts)

    def committed(self, draft: Draft, result: CommitResult, missed_pass: MissedPass | None) -> MissedPass | None:
        return missed_pass

    def end(self, missed_pass: MissedPass, planning: timedelta) -> None:
        if missed_pass.cause is Cause.TAKEOVER or missed_pass is self._noted:
            self.store.ticks.finish_pass(self.term, planning, len(self.planner.jobs))


@dataclass(slots=True)
class RacePasses:
    """A racer's share in the race's. ``count`` is told what each commit cost."""

    store: Store
    planner: Planner
    book: JobBook
    term: int
    count: Callable[[RaceCounts], None]

    def first(self, now: datetime, settings: ClusterSettings) -> MissedPass | None:
        return None  # a racer may come at any time; what it finds late says whether there is one

    def late(self, now: datetime, settings: ClusterSettings, served_at: datetime | None) -> MissedPass | None:
        hold_above = settings.catch_up_hold_above
        seen = self.store.races.newest_pass()
        if not seen.is_open:
            if self.planner.is_late(now):
                self.book.follow()  # others may have decided long ago what this node takes for missed
            if not (seen.is_awaited or self.planner.is_late(now)):
                return None
            counted = self.planner.begin_pass(Cause.RACE, now, 0, hold_above, served_at=served_at)
            gap_from = None if seen.is_awaited else counted.gap_from  # the term's own gap is the takeover's
            opened = self.store.races.open_pass(self.term, seen.number, counted.found, hold_above, gap_from)
            if opened is None:
                return None
            seen = opened
        return _shared(seen, now, hold_above)

    def batch(
        self, draft: Draft, now: datetime, settings: ClusterSettings, missed_pass: MissedPass | None
    ) -> TickBatch | None:
        if missed_pass is None or missed_pass.number is None or not draft.fired:
            return draft.batch(self.term, now, [])
        rate = settings.catch_up_rate
        batch = draft.batch(self.term, now, start_instants(now, draft.paced, rate))
        share = PassShare(missed_pass.number, draft.fired, missed_pass.hold_above, rate, draft.paced_ticks)
        return batch.within(share)

    def unused(self, draft: Draft, job_ids: Collection[int] | None = None) -> None:
        """Nothing: the commit itself draws the starts that it uses."""

    def committed(self, draft: Draft, result: CommitResult, missed_pass: MissedPass | None) -> MissedPass | None:
        self.count(draft.counted(result))
        if result.is_within or missed_pass is None:
            return missed_pass
        seen = self.store.races.newest_pass()
        if not seen.is_open or seen.number != missed_pass.number:
            return None
        missed_pass.fired = seen.fired
        missed_pass.force_hold = seen.holds or seen.fired + draft.fired > missed_pass.hold_above
        return missed_pass

    def end(self, missed_pass: MissedPass, planning: timedelta) -> None:
        if missed_pass.number is not None:
            self.store.races.end_pass(self.term, missed_pass.number)


def _shared(seen: RacePass, now: datetime, hold_above: int) -> MissedPass:
    return MissedPass(Cause.RACE, now, hold_above, seen.fired, seen.holds, number=seen.number)
