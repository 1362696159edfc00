"""The warnings of a plan as lines, and the map of crowded minutes: 24 hours of 60 minutes in less than 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sexton_tui.cli.output import counted, printable
from sexton_tui.cli.plan_paint import Paint

if TYPE_CHECKING:
    from sexton.jobfiles.plan_crowds import Crowds
    from sexton.jobfiles.plan_warnings import PlanWarning

_NAMES, _PASTED = 3, 8
# Their facts speak of one job.
_OF_EACH = frozenset({"idle_key", "never", "paused", "secret", "slow", "sparse", "taken_back"})
_ROWS = 8  # so that the warning above the map stays on a screen of 24 lines
_RULER = "00        10        20        30        40        50"


def warning_lines(
    warnings: Sequence[PlanWarning], crowds: Crowds | None, paint: Paint, *, brief: bool
) -> Iterator[str]:
    """Every warning with its fact and remedy; ``brief``: without what is to be pasted, and without the map."""
    yield paint("bold", f"Warnings ({len(warnings)})")
    last = max((number for number, one in enumerate(warnings) if one.kind == "crowd"), default=-1)
    for number, one in enumerate(warnings):
        told = f"{_names(one)}: {one.fact}" if one.jobs else one.fact
        first, *rest = paint.prose(printable(told), "! ", "  ")
        yield paint("!", first[:1]) + first[1:]
        yield from rest
        yield from paint.prose(printable(one.remedy + (":" if one.paste and not brief else "")), "    ", "    ")
        if not brief:
            yield from (f"      {printable(line)}" for line in one.paste[:_PASTED])
            if len(one.paste) > _PASTED:
                yield f"      ... and {len(one.paste) - _PASTED} more (all of them with --output json)"
        if number == last and crowds is not None and not brief:
            yield from heat_lines(crowds, paint)


def heat_lines(crowds: Crowds, paint: Paint) -> Iterator[str]:
    """The most jobs that fall due in each minute of the clock, on few lines: hours in which none does are left out, and
    others told together where that hides no crowd."""
    limit = crowds.limit
    if crowds.more:
        yield f"    {counted(crowds.more, 'more crowded minute')} until {crowds.until:%Y-%m-%d} with jobs of this plan"
    if crowds.others:
        yield f"    {counted(crowds.others, 'crowded minute')} of the clock in which this plan has no part"
    yield f"    Jobs due in each minute, {crowds.zone} (the most of any day until {crowds.until:%Y-%m-%d}):"
    rows = _rows_of(crowds.heat, limit)
    width = max((len(_hours(first, last)) for first, last, _ in rows), default=2)
    yield f"    {'':{width}} {_RULER}"
    for first, last, minutes in rows:
        row = "".join(_mark(count, limit, paint) for count in minutes)
        yield f"    {_hours(first, last):{width}} {row}".rstrip()
    steps = [max(limit * number // 3, 1) for number in (1, 2, 3)]
    yield (
        f"    . up to {steps[0]}   : up to {steps[1]}   + up to {steps[2]}   "
        f"{paint('hot', '#')} more than {limit}   {paint('hot', '@')} more than {limit * 4}"
    )


_Row = tuple[int, int, tuple[int, ...]]  # from hour, to hour, the most in each minute of any of them


def _rows_of(heat: Sequence[Sequence[int]], limit: int) -> list[_Row]:
    """Hours that look alike, and those between without a crowd, as one row each; three hours to a row where that is
    still too many."""
    plain = Paint()
    rows: list[_Row] = []
    for hour, minutes in enumerate(heat):
        if rows and _look_alike(rows[-1][2], minutes, limit, plain):
            rows[-1] = (rows[-1][0], hour, tuple(map(max, rows[-1][2], minutes)))
        else:
            rows.append((hour, hour, tuple(minutes)))
    rows = [row for row in rows if any(row[2])]
    if len(rows) <= _ROWS:
        return rows
    quiet: list[_Row] = []
    for row in rows:
        is_next = quiet and quiet[-1][1] + 1 == row[0]
        if is_next and max(quiet[-1][2]) <= limit and max(row[2]) <= limit:
            quiet[-1] = (quiet[-1][0], row[1], tuple(map(max, quiet[-1][2], row[2])))
        else:
            quiet.append(row)
    if len(quiet) <= _ROWS:
        return quiet
    threes = [(hour, hour + 2, tuple(map(max, *heat[hour : hour + 3]))) for hour in range(0, 24, 3)]
    return [row for row in threes if any(row[2])]


def _look_alike(some: Sequence[int], others: Sequence[int], limit: int, plain: Paint) -> bool:
    return all(_mark(one, limit, plain) == _mark(other, limit, plain) for one, other in zip(some, others, strict=True))


def _hours(first: int, last: int) -> str:
    return f"{first:02}" if first == last else f"{first:02}-{last:02}"


def _mark(count: int, limit: int, paint: Paint) -> str:
    if count > limit:
        return paint("hot", "@" if count > limit * 4 else "#")
    if not count:
        return " "
    return ".:+"[min(-(-count * 3 // max(limit, 1)), 3) - 1]


def _names(one: PlanWarning) -> str:
    shown = ", ".join(one.jobs[:_NAMES])
    shown = shown if len(one.jobs) <= _NAMES else f"{shown} and {len(one.jobs) - _NAMES} more"
    return f"{shown}, each" if len(one.jobs) > 1 and one.kind in _OF_EACH else shown
