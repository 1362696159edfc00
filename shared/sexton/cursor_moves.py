"""Setting cursors by hand, for restores: what a step of a job's cursor means, decided without a database.

Forward, what is stepped over becomes one skip record with the operator's reason: one decision a tick (invariant 2).
Back, everything decided between is taken away, so that it is decided anew: claims that nobody was ever granted are
deleted, skip records are removed, or cut where the new place lies inside them. What cannot be taken back bars the
step: a claim that a worker has or had, an open proposal, a skip record that an operator has resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sexton.decisions import RevisionInForce


@dataclass(frozen=True, slots=True)
class StoodSkip:
    """A skip record that reaches beyond the place asked for: ``count`` ticks in ``(after, upto]``."""

    after: datetime
    upto: datetime
    count: int


@dataclass(frozen=True, slots=True)
class CursorStand:
    """A job's cursor and what lies around it, from one snapshot.

    ``revisions``: those in force after the cursor, or after the place asked for where that is earlier, oldest first.
    ``skips`` and ``withdrawable`` (claims never granted) lie beyond that place, and so does what ``bars`` a step back
    (a sentence; empty: nothing). ``fault``: why its schedules cannot be read; they are left out then.
    """

    job_id: int
    name: str
    seq: int
    at: datetime
    begins_at: datetime
    is_retired: bool
    revisions: tuple[RevisionInForce, ...] = ()
    skips: tuple[StoodSkip, ...] = ()
    withdrawable: int = 0
    bars: str = ""
    fault: str = ""

    def count(self, after: datetime, upto: datetime) -> int:
        """How many ticks fall due in ``(after, upto]``, by the revisions in force."""
        total = 0
        for revision in self.revisions:
            begin = max(after, revision.since)
            end = upto if revision.until is None else min(upto, revision.until)
            if begin < end:
                total += revision.schedule.count_between(begin, end)
        return total

    def next_tick(self) -> datetime | None:
        """The first tick that is not decided yet."""
        for revision in self.revisions:
            tick = revision.schedule.next_after(max(self.at, revision.since))
            if tick is not None and (revision.until is None or tick <= revision.until):
                return tick
        return None


@dataclass(frozen=True, slots=True)
class CursorStep:
    """One job's step, conditional on ``seq`` and ``was``.

    ``skipped``: ticks of the new skip record, under ``revision`` (forward). ``withdrawn``: claims to be deleted;
    ``reopened``: ticks to be decided anew; ``cut``: the skip record that shall end at ``to`` (back).
    """

    job_id: int
    name: str
    seq: int
    was: datetime
    to: datetime
    revision: int = 0
    skipped: int = 0
    withdrawn: int = 0
    reopened: int = 0
    cut: StoodSkip | None = None

    @property
    def is_forward(self) -> bool:
        return self.to > self.was


def plan_step(
    stand: CursorStand, to: datetime, *, forward_only: bool = False, pruned_before: datetime | None = None
) -> CursorStep | str | None:
    """The step that brings the cursor to ``to``, which is not ahead of now; None where there is nothing to do.

    A text says why it is refused.
    """
    if stand.fault:
        return f"its schedule cannot be read: {stand.fault}"
    if to > stand.at:
        return _forward(stand, to)
    if forward_only or to == stand.at:
        return None
    if to < stand.begins_at:
        return f"its first revision begins at {_iso(stand.begins_at)}: there are no ticks before"
    if pruned_before is not None and to < pruned_before:
        return f"the ledger goes back to {_iso(pruned_before)}"
    if stand.bars:
        return stand.bars
    return _back(stand, to)


def _forward(stand: CursorStand, to: datetime) -> CursorStep | None:
    skipped = stand.count(stand.at, to)
    if not skipped:
        return None
    in_force = [revision for revision in stand.revisions if revision.since < to]
    return CursorStep(
        stand.job_id, stand.name, stand.seq, stand.at, to, revision=in_force[-1].revision, skipped=skipped
    )


def _back(stand: CursorStand, to: datetime) -> CursorStep | None:
    reopened = stand.count(to, stand.at)
    if not reopened and not stand.withdrawable:
        return None
    inside = [skip for skip in stand.skips if skip.after < to]
    cut = StoodSkip(inside[0].after, to, stand.count(inside[0].after, to)) if inside else None
    return CursorStep(
        stand.job_id,
        stand.name,
        stand.seq,
        stand.at,
        to,
        withdrawn=stand.withdrawable,
        reopened=reopened,
        cut=cut,
    )


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
