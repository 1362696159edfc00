"""Half an hour of lateness, kept by the console, so that each poll reads only the newest minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sexton.cluster_views import Lateness, LatenessMinute, Overview

WINDOW = timedelta(minutes=30)
_OVERLAP = timedelta(minutes=1)  # runs are written when they end: the minute before may still change


@dataclass(frozen=True, slots=True)
class LatenessHistory:
    """Minutes and takeovers of the last 30 minutes, as far as they were read."""

    by_minute: Mapping[datetime, Lateness] = field(default_factory=dict)
    takeovers: frozenset[datetime] = frozenset()
    read_until: datetime | None = None

    @property
    def since(self) -> datetime | None:
        """From when on the next poll must read; None: everything."""
        if self.read_until is None:
            return None
        return self.read_until.replace(second=0, microsecond=0) - _OVERLAP

    @property
    def minutes(self) -> tuple[LatenessMinute, ...]:
        return tuple(LatenessMinute(at, self.by_minute[at]) for at in sorted(self.by_minute))

    def merged(self, overview: Overview) -> LatenessHistory:
        """With what a poll read; a peak once seen stays."""
        oldest = overview.now - WINDOW - _OVERLAP
        known = {at: lateness for at, lateness in self.by_minute.items() if at >= oldest}
        for minute in overview.minutes:
            known[minute.at] = _higher(known.get(minute.at), minute.lateness)
        marks = self.takeovers.union(overview.takeover_marks)
        return LatenessHistory(known, frozenset(at for at in marks if at >= oldest), overview.now)


def _higher(old: Lateness | None, new: Lateness) -> Lateness:
    if old is None or old.max is None or new.max is None:
        return new if old is None or new.max is not None else old
    newer = new if new.count >= old.count else old
    return Lateness(count=newer.count, p50=newer.p50, p99=newer.p99, max=max(old.max, new.max))
