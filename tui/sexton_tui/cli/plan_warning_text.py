"""The warnings of a plan as lines, and the map of crowded minutes: 24 hours of 60 minutes in less than 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sexton_tui.cli.output import counted, printable

if TYPE_CHECKING:
    from sexton.jobfiles.plan_crowds import Crowds
    from sexton.jobfiles.plan_warnings import PlanWarning
    from sexton_tui.cli.plan_paint import Paint

_NAMES, _PASTED = 3, 8
_RULER = "   00        10        20        30        40        50"


def warning_lines(
    warnings: Sequence[PlanWarning], crowds: Crowds | None, paint: Paint, *, brief: bool
) -> Iterator[str]:
    """Every warning with its fact and remedy; ``brief``: without what is to be pasted, and without the map."""
    yield paint("bold", f"Warnings ({len(warnings)})")
    last = max((number for number, one in enumerate(warnings) if one.kind == "crowd"), default=-1)
    for number, one in enumerate(warnings):
        told = f"{_names(one.jobs)}: {one.fact}" if one.jobs else one.fact
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
    """The most jobs that fall due in each minute of the clock; hours in which none does are left out."""
    limit = crowds.limit
    if crowds.more:
        yield f"    {counted(crowds.more, 'more crowded minute')} until {crowds.until:%Y-%m-%d} with jobs of this plan"
    if crowds.others:
        yield f"    {counted(crowds.others, 'crowded minute')} of the clock in which this plan has no part"
    yield f"    Jobs due in each minute, {crowds.zone} (the most of any day until {crowds.until:%Y-%m-%d}):"
    yield f"    {_RULER}"
    for hour, minutes in enumerate(crowds.heat):
        if any(minutes):
            row = "".join(_mark(count, limit, paint) for count in minutes)
            yield f"    {hour:02} {row}".rstrip()
    steps = [max(limit * number // 3, 1) for number in (1, 2, 3)]
    yield (
        f"    . up to {steps[0]}   : up to {steps[1]}   + up to {steps[2]}   "
        f"{paint('hot', '#')} more than {limit}   {paint('hot', '@')} more than {limit * 4}"
    )


def _mark(count: int, limit: int, paint: Paint) -> str:
    if count > limit:
        return paint("hot", "@" if count > limit * 4 else "#")
    if not count:
        return " "
    return ".:+"[min(-(-count * 3 // max(limit, 1)), 3) - 1]


def _names(jobs: Sequence[str]) -> str:
    shown = ", ".join(jobs[:_NAMES])
    return shown if len(jobs) <= _NAMES else f"{shown} and {len(jobs) - _NAMES} more"
