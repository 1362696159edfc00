"""Several schedules of one job as one set of ticks."""

from dataclasses import dataclass
from datetime import datetime

from sexton.cron_unions import count_together
from sexton.schedules import EPOCH, MILLISECOND, EverySchedule, Schedule
from sexton.wall_clock_schedules import CronSchedule
from sexton.zone_clock import clock_of


@dataclass(frozen=True, slots=True)
class UnionSchedule(Schedule):
    """Several parts as one set of ticks."""

    parts: tuple[Schedule, ...]

    def next_after(self, instant: datetime) -> datetime | None:
        ticks = [tick for part in self.parts if (tick := part.next_after(instant)) is not None]
        return min(ticks, default=None)

    def previous_before(self, instant: datetime) -> datetime | None:
        ticks = [tick for part in self.parts if (tick := part.previous_before(instant)) is not None]
        return max(ticks, default=None)

    def count_between(self, after: datetime, upto: datetime, limit: int | None = None) -> int:
        """Cron parts of one zone and intervals are counted together by arithmetic. Where other parts are mixed in
        (listed instants, a second zone), the most frequent kind is counted, and of the others the ticks that it lacks,
        one by one."""
        groups = self._groups()
        counts = [_count_group(group, after, upto) for group in groups]
        by_count = sorted(range(len(groups)), key=lambda i: counts[i], reverse=True)
        total = max(counts, default=0)
        counted = [part for i in by_count[:1] for part in groups[i]]
        for i in by_count[1:]:
            for tick in UnionSchedule(groups[i]).between(after, upto):
                if limit is not None and total >= limit:
                    return limit
                total += not any(part.contains(tick) for part in counted)
            counted.extend(groups[i])
        return total if limit is None else min(total, limit)

    def _groups(self) -> list[tuple[Schedule, ...]]:
        """The parts, put together as far as they can be counted together."""
        crons: dict[str, list[Schedule]] = {}
        intervals: list[Schedule] = []
        others: list[Schedule] = []
        for part in self.parts:
            if isinstance(part, CronSchedule):
                crons.setdefault(part.zone, []).append(part)
            elif isinstance(part, EverySchedule):
                intervals.append(part)
            else:
                others.append(part)
        together = list(crons.values()) or [[]]
        together[0].extend(intervals)
        return [tuple(group) for group in [*together, *([part] for part in others)] if group]

    def contains(self, instant: datetime) -> bool:
        return any(part.contains(instant) for part in self.parts)


def _count_group(group: tuple[Schedule, ...], after: datetime, upto: datetime) -> int:
    if len(group) == 1:
        return group[0].count_between(after, upto)
    crons = [part for part in group if isinstance(part, CronSchedule)]
    intervals = [part.milliseconds for part in group if isinstance(part, EverySchedule)]
    clock = clock_of(crons[0].zone if crons else "UTC")
    start, stop = ((instant - EPOCH) // MILLISECOND + 1 for instant in (after, upto))
    return count_together([(part.cron.readings, part.rule) for part in crons], intervals, clock, start, stop)
