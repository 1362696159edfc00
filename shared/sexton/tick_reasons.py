"""Why a schedule has a tick at an instant, or why not: the reading, the changed clock, exclusions, start and end.

Nothing here decides a tick: the schedule is asked whether it has one, and what made it so is found afterwards, in the
order in which a person would look. Times of day are those of the job's zone, instants are UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

from sexton.excluded_days import ExcludedSchedule
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import EPOCH, EverySchedule, Schedule
from sexton.settings import format_duration
from sexton.tick_calendar import why_excluded
from sexton.tick_marks import ClockChange, Showing, clock_changes, showing_of
from sexton.wall_clock_schedules import CalendarSchedule, CronSchedule
from sexton.wall_clock_ticks import ChangeRule, GapRule, OverlapRule, live_readings
from sexton.zone_clock import clock_of
from sexton.zones import load_zone

_SECOND = timedelta(seconds=1)


class ReasonKind(StrEnum):
    """What made an instant a tick, or no tick."""

    NAMED = "named"  # the schedule names it
    SHIFTED = "shifted"  # the clock jumped over what the schedule names: this is the first instant after it
    MERGED = "merged"  # so it did, and several times, or the instant's own reading too, make one tick
    SHOWN_TWICE = "shown twice"  # the clock shows its time twice, and this one counts
    NOT_NAMED = "not named"
    OTHER_SHOWING = "other showing"  # the clock shows its time twice, and the other one counts
    GAP_SKIPPED = "gap skipped"  # the clock jumped over what the schedule names, and dst says skip
    EXCLUDED = "excluded"
    BEFORE_START = "before start"
    AFTER_END = "after end"


@dataclass(frozen=True, slots=True)
class TickReason:
    """Whether the schedule has the tick, and why in a sentence without its full stop."""

    is_due: bool
    kind: ReasonKind
    sentence: str


def reason_at(spec: Mapping[str, Any], instant: datetime) -> TickReason:
    """Why the schedule of this specification (as revisions store it) has a tick at ``instant``, or has none."""
    zone = str(spec.get("timezone") or "UTC")
    if schedule_from_spec(spec).contains(instant):
        return _together(
            [_why_due(words, part, instant, zone) for words, part in _parts(spec) if part.contains(instant)]
        )
    bare = [(words, part) for words, part in _parts(spec) if part.contains(instant)]
    if bare:
        return _kept_out(spec, instant, zone, bare[0][0])
    return _together([_why_not(words, part, instant, zone) for words, part in _parts(spec)])


def part_words(part: Mapping[str, Any]) -> str:
    """A part of a schedule as a person would say it: the expression, ``every 15m``, ``at 3 instants``."""
    if "cron" in part:
        return str(part["cron"])
    if "every_ms" in part:
        return f"every {format_duration(timedelta(milliseconds=part['every_ms']))}"
    if "calendar" in part:
        ((unit, every),) = part["calendar"].items()
        often = f"every {every} {unit}" if every != 1 else f"every {str(unit).removesuffix('s')}"
        return f"{often} at {str(part['at']).removesuffix(':00')} from {part['start']} on"
    listed = part["at"]
    return f"at {listed[0]}" if len(listed) == 1 else f"at {len(listed)} instants"


def clock_text(reading: datetime) -> str:
    """``02:30``, with seconds where there are any, and the fraction where there is one."""
    if reading.microsecond:
        return f"{reading:%H:%M:%S.%f}".rstrip("0")
    return f"{reading:%H:%M:%S}" if reading.second else f"{reading:%H:%M}"


def local_text(instant: datetime, zone: str) -> str:
    """``Sun 2026-03-29 03:00 CEST``."""
    local = instant.astimezone(load_zone(zone))
    return f"{local:%a %Y-%m-%d} {clock_text(local)} {local:%Z}"


def exact_text(instant: datetime) -> str:
    """``2026-03-29T01:00:00Z``, with microseconds where there are any."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def short_text(instant: datetime) -> str:
    """The same to the millisecond."""
    return (
        exact_text(instant)
        if not instant.microsecond
        else (instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    )


def change_words(change: ClockChange) -> str:
    """``the clock goes from 02:00 to 03:00``, with the days where it goes from one into another."""
    before, after = (change.at + offset for offset in (change.before, change.after))
    days = ("", "") if before.date() == after.date() else (f"{before:%Y-%m-%d} ", f"{after:%Y-%m-%d} ")
    return f"the clock goes from {days[0]}{clock_text(before)} to {days[1]}{clock_text(after)}"


def _parts(spec: Mapping[str, Any]) -> Iterator[tuple[str, Schedule]]:
    """Each part alone, without start, end and excluded days."""
    for part in spec["parts"]:
        alone = {**spec, "parts": [part], "start": None, "end": None, "exclude": None}
        yield part_words(part), schedule_from_spec(alone)


def _together(reasons: list[TickReason]) -> TickReason:
    """One reason of those of several parts: for a tick that of the first, else each part's."""
    first = max(reasons, key=lambda reason: reason.kind not in (ReasonKind.NAMED, ReasonKind.NOT_NAMED))
    if len(reasons) == 1:
        return first
    if first.is_due:
        sentence = f"{first.sentence}; {len(reasons)} schedules of the job meet here and make one tick"
        return TickReason(True, first.kind, sentence)
    return TickReason(False, first.kind, "; ".join(reason.sentence for reason in reasons))


# --- due ------------------------------------------------------------------------------------------


def _why_due(words: str, part: Schedule, instant: datetime, zone: str) -> TickReason:
    if not isinstance(part, CronSchedule | CalendarSchedule):
        return TickReason(True, ReasonKind.NAMED, _interval_words(words, part))
    local = instant.astimezone(load_zone(zone))
    time = clock_text(local)
    jumped, own = _jumped_over(part, instant)
    if jumped:
        return _shifted(words, jumped, instant, zone, has_own=own)
    showing = showing_of(instant, zone)
    if showing is None:
        return TickReason(True, ReasonKind.NAMED, f"`{words}` names {time} in {zone}")
    which = f"{time} comes twice on {local:%Y-%m-%d} in {zone}, and this is the {showing.value}"
    if _rule_of(part).follows_elapsed_time:
        why = f"`{words}` follows elapsed time (its minute or hour field starts with *) and fires both times"
    elif _rule_of(part).overlap is OverlapRule.BOTH:
        why = f"`{words}` fires both times (dst overlap: both)"
    else:
        why = f"`{words}` fires the {showing.value} time (dst overlap: {showing.value})"
    return TickReason(True, ReasonKind.SHOWN_TWICE, f"{which}: {why}")


def _interval_words(words: str, part: Schedule) -> str:
    if isinstance(part, EverySchedule):
        return f"`{words}`: a whole number of intervals from {exact_text(part.anchor)}"
    return f"`{words}` lists it"


def _shifted(words: str, jumped: list[int], instant: datetime, zone: str, *, has_own: bool) -> TickReason:
    local = instant.astimezone(load_zone(zone))
    first, last = (clock_text(EPOCH + timedelta(seconds=reading)) for reading in (jumped[0], jumped[-1]))
    (change,) = clock_changes(zone, instant - _SECOND, instant)
    where = f"on {change.day:%Y-%m-%d} in {zone} ({change_words(change)})"
    fires = f"the first instant after, {clock_text(local)} {local:%Z}"
    if len(jumped) == 1 and not has_own:
        sentence = f"`{words}`: {first} does not exist {where}, so it fires at {fires} (dst gap: shift)"
        return TickReason(True, ReasonKind.SHIFTED, sentence)
    named = f"{first} does" if len(jumped) == 1 else f"{first} to {last} ({len(jumped)} times) do"
    own = f" together with {clock_text(local)} itself" if has_own else ""
    sentence = f"`{words}`: {named} not exist {where}; they fire once{own}, at {fires} (dst gap: shift)"
    return TickReason(True, ReasonKind.MERGED, sentence)


def _jumped_over(part: CronSchedule | CalendarSchedule, instant: datetime) -> tuple[list[int], bool]:
    """The readings that the clock jumped over and that fire at this instant, the first and the last with how many;
    and whether the instant's own reading fires too. Empty for any other instant."""
    readings = part.cron.readings if isinstance(part, CronSchedule) else part.readings
    second = (instant - EPOCH) // _SECOND
    span = clock_of(part.zone).span_at(second)
    made_up_from, first, stop = live_readings(span, _rule_of(part))
    if span.start != second or made_up_from >= first:
        return [], False
    found = []
    reading = readings.first_from(made_up_from)
    while reading is not None and reading < first:
        found.append(reading)
        reading = readings.first_from(reading + 1)
    return found, first < stop and readings.matches(first)


def _rule_of(part: CronSchedule | CalendarSchedule) -> ChangeRule:
    return part.rule if isinstance(part, CronSchedule) else ChangeRule(part.gap, part.overlap)


# --- not due --------------------------------------------------------------------------------------


def _kept_out(spec: Mapping[str, Any], instant: datetime, zone: str, words: str) -> TickReason:
    """The schedule's parts name it, and what stands around them keeps it out."""
    start, end = (_optional(spec, key) for key in ("start", "end"))
    if start is not None and instant < start:
        return TickReason(False, ReasonKind.BEFORE_START, f"`{words}` names it, and the job starts at {spec['start']}")
    if end is not None and instant >= end:
        return TickReason(False, ReasonKind.AFTER_END, f"`{words}` names it, and the job ends at {spec['end']}")
    day = _local_date(instant, zone)
    inside = schedule_from_spec({**spec, "start": None, "end": None})
    why = why_excluded(inside.days, day) if isinstance(inside, ExcludedSchedule) else ""
    return TickReason(False, ReasonKind.EXCLUDED, f"`{words}` names it, and {day:%a %Y-%m-%d} is excluded: {why}")


def _why_not(words: str, part: Schedule, instant: datetime, zone: str) -> TickReason:
    if isinstance(part, EverySchedule):
        sentence = f"`{words}` counts from {exact_text(part.anchor)}, and this is not a whole number of them"
        return TickReason(False, ReasonKind.NOT_NAMED, sentence)
    if not isinstance(part, CronSchedule | CalendarSchedule):
        return TickReason(False, ReasonKind.NOT_NAMED, f"`{words}` does not list it")
    local = instant.astimezone(load_zone(zone))
    second = (instant - EPOCH) // _SECOND
    span = clock_of(zone).span_at(second)
    readings = part.cron.readings if isinstance(part, CronSchedule) else part.readings
    if not instant.microsecond and readings.matches(second + span.offset):
        return _other_showing(words, part, instant, zone)
    if not instant.microsecond and span.start == second and _rule_of(part).gap is GapRule.SKIP:
        jumped = readings.first_from(span.frontier)
        if jumped is not None and jumped < second + span.offset:
            (change,) = clock_changes(zone, instant - _SECOND, instant)
            time = clock_text(EPOCH + timedelta(seconds=jumped))
            sentence = f"`{words}`: {time} does not exist on {change.day:%Y-%m-%d} in {zone} ({change_words(change)}), "
            return TickReason(False, ReasonKind.GAP_SKIPPED, sentence + "and the job leaves it out (dst gap: skip)")
    fields = _fields_that_differ(part, instant, second + span.offset)
    sentence = f"`{words}` does not name {local:%a %Y-%m-%d} {clock_text(local)} in {zone}"
    return TickReason(False, ReasonKind.NOT_NAMED, f"{sentence}: not {fields}" if fields else sentence)


def _other_showing(words: str, part: CronSchedule | CalendarSchedule, instant: datetime, zone: str) -> TickReason:
    local = instant.astimezone(load_zone(zone))
    this = showing_of(instant, zone) or Showing.SECOND
    other = Showing.FIRST if this is Showing.SECOND else Showing.SECOND
    sentence = (
        f"{clock_text(local)} comes twice on {local:%Y-%m-%d} in {zone}, and this is the {this.value}: "
        f"`{words}` fires the {other.value} time (dst overlap: {_rule_of(part).overlap.value})"
    )
    return TickReason(False, ReasonKind.OTHER_SHOWING, sentence)


def _fields_that_differ(part: Schedule, instant: datetime, reading: int) -> str:
    """Which fields of a cron expression do not match, in words; empty for other schedules."""
    if not isinstance(part, CronSchedule):
        return ""
    readings = part.cron.readings
    day, time = divmod(reading, 86_400)
    fields = {
        "that day": readings.matches_day(day),
        "that hour": readings.hours >> time // 3600 & 1,
        "that minute": readings.minutes >> time // 60 % 60 & 1,
        "that second": readings.seconds >> time % 60 & 1 and not instant.microsecond,
    }
    return ", ".join(name for name, matches in fields.items() if not matches)


def _optional(spec: Mapping[str, Any], key: str) -> datetime | None:
    return datetime.fromisoformat(str(spec[key])) if spec.get(key) else None


def _local_date(instant: datetime, zone: str) -> date:
    return instant.astimezone(load_zone(zone)).date()
