"""A plan in time, as lines: ticks that appear, vanish or move, and what becomes of claims and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sexton.settings import format_duration
from sexton_tui.cli.output import counted, instant_text

if TYPE_CHECKING:
    from sexton.jobfiles.plan_report import PlannedJob, PlanReport
    from sexton_tui.cli.plan_paint import Paint

_NAMES = 3
_SECOND = timedelta(seconds=1)
_ROUNDED = (
    (timedelta(days=10), timedelta(days=1)),
    (timedelta(days=1), timedelta(hours=1)),
    (timedelta(hours=1), timedelta(minutes=1)),
)


def tick_lines(report: PlanReport, paint: Paint) -> Iterator[str]:
    """What changes in time, job by job; jobs in which the same changes are told together."""
    changed = [job for job in report.jobs if not job.ticks.is_none or job.fired.silent != job.fires.silent]
    yield paint("bold", f"Ticks until {instant_text(report.until)} ({about(report.until - report.now)})")
    told = list(_together(changed, lambda job: _ticks_of(job, paint)))
    for jobs, lines in told:
        yield f"{paint(jobs[0].kind.sign, jobs[0].kind.sign)} {_names(jobs, paint)}  {lines[0]}"
        yield from lines[1:]
    if not told:
        yield "  none appears, vanishes or moves"
    yield tick_total(report)


def tick_total(report: PlanReport) -> str:
    """The sums over all jobs of the plan, on one line."""
    totals = report.totals
    parts = [
        _counts(number, word)
        for number, word in ((totals.appear, "appear"), (totals.vanish, "vanish"), (totals.move, "move"))
        if number
    ]
    if not parts:
        return f"Ticks: none appears, vanishes or moves; {_counts(totals.keep, 'stay')}."
    return f"Ticks: {', '.join(parts)}; {_counts(totals.keep, 'stay')}."


def _counts(number: int, verb: str) -> str:
    """``1 appears``, ``2 appear``."""
    return f"{number} {verb}s" if number == 1 else f"{number} {verb}"


def claim_lines(report: PlanReport, paint: Paint) -> Iterator[str]:
    """What becomes of claims written ahead and of runs in flight; nothing where there are none."""
    told = [(jobs, lines) for jobs, lines in _together(report.jobs, _claims_of) if lines]
    if not told:
        return
    yield paint("bold", "Claims and runs")
    for jobs, lines in told:
        yield f"{paint(jobs[0].kind.sign, jobs[0].kind.sign)} {_names(jobs, paint)}"
        yield from (f"    {line}" for line in lines)


def claim_total(report: PlanReport) -> str:
    """The same in one sentence, empty where there is nothing to say."""
    withdrawn = sum(job.withdrawn for job in report.jobs)
    written = sum(job.rewritten for job in report.jobs if job.withdrawn)
    running = sum(one.count for job in report.jobs for one in job.standing.in_flight)
    parts = []
    if withdrawn:
        again = f", {written} written again" if written else ""
        parts.append(f"{counted(withdrawn, 'claim')} written ahead withdrawn{again}")
    if running:
        parts.append(f"{counted(running, 'run')} in flight {'go' if running > 1 else 'goes'} on")
    return f"Claims: {'; '.join(parts)}." if parts else ""


def tick_text(tick: datetime, zone: str) -> str:
    """``Mon 2026-11-30 02:00 CET = 01:00Z``: local and UTC; the UTC date only where it is another one."""
    from sexton.zones import load_zone

    local, utc = tick.astimezone(load_zone(zone)), tick.astimezone(UTC)
    shown = f"{local:%a %Y-%m-%d} {_clock(local)} {local:%Z}"
    if zone == "UTC":
        return shown
    date = "" if local.date() == utc.date() else f"{utc:%Y-%m-%d} "
    return f"{shown} = {date}{_clock(utc)}Z"


def about(length: timedelta) -> str:
    """A length as a person says it, rounded to two units at most: ``17s``, ``3h5m``, ``1d12h``, ``123d``."""
    length = max(length, timedelta(0))
    for at_least, step in _ROUNDED:
        if length >= at_least:
            return format_duration(round(length / step) * step)
    return format_duration(round(length / _SECOND) * _SECOND)


def _clock(instant: datetime) -> str:
    if instant.microsecond:
        return f"{instant:%H:%M:%S}.{instant.microsecond // 1000:03}"
    return f"{instant:%H:%M:%S}" if instant.second else f"{instant:%H:%M}"


# --- ticks of one job -----------------------------------------------------------------------------


def _ticks_of(job: PlannedJob, paint: Paint) -> list[str]:
    change = job.ticks
    old, new = job.fired.zone, job.fires.zone
    numbers = ((change.move, "move"), (change.appear, "appear"), (change.vanish, "vanish"))
    head = [_counts(number, verb) + (_shift(job) if verb == "move" else "") for number, verb in numbers if number]
    if change.keep and not head:
        head.append(_counts(change.keep, "stay"))
    elif change.keep:
        head.append(f"{change.keep} of {change.before} {'stays' if change.keep == 1 else 'stay'}")
    line = ", ".join(head) or "no tick in this time"
    if job.fires.silent:
        line = f"{line} (paused: {job.fires.silent})" if job.fires.silent != "paused" else f"{line} (paused)"
    elif job.fired.silent and job.before is not None:
        line = f"{line} (its {'quarantine' if job.is_quarantined else 'pause by file'} ends)"
    if not change.pairs_sought and change.appear and change.vanish:
        line += "; too many to pair"
    if change.until < job.ticks.until:
        line += f", until {instant_text(change.until)}"
    lines = [line]
    for pair in change.moves:
        lines.append(f"    {paint('~', '~')} {tick_text(pair.old, old)} → {_moved_to(pair.old, pair.new, old, new)}")
    lines.extend(_more(change.move, len(change.moves)))
    lines.extend(f"    {paint('+', '+')} {tick_text(tick, new)}" for tick in change.appearing)
    lines.extend(_more(change.appear, len(change.appearing)))
    lines.extend(f"    {paint('-', '-')} {tick_text(tick, old)}" for tick in change.vanishing)
    lines.extend(_more(change.vanish, len(change.vanishing)))
    if change.has_other_jitter:
        lines.append("    ticks that stay are available at other times (jitter):")
        for one in change.delays:
            before, after = format_duration(one.before), format_duration(one.after)
            lines.append(f"    {paint('~', '~')} {tick_text(one.tick, new)}: +{before} → +{after}")
        lines.extend(_more(change.keep, len(change.delays)))
    return lines


def _more(number: int, told: int) -> Iterator[str]:
    if number > told:
        yield f"      ... and {number - told} more"


def _moved_to(old: datetime, new: datetime, old_zone: str, new_zone: str) -> str:
    """The new tick; without its date where that is the old one's."""
    from sexton.zones import load_zone

    text = tick_text(new, new_zone)
    local_old, local_new = old.astimezone(load_zone(old_zone)), new.astimezone(load_zone(new_zone))
    is_same_date = local_old.date() == local_new.date()
    return text.split(" ", 2)[2] if is_same_date else text


def _shift(job: PlannedJob) -> str:
    if job.ticks.shifts is None:
        return ""
    least, most = job.ticks.shifts
    if least == most:
        return f" by {_signed(least)}"
    return f" by {_signed(least)} to {_signed(most)}"


def _signed(length: timedelta) -> str:
    return f"+{format_duration(length)}" if length >= timedelta(0) else f"-{format_duration(-length)}"


# --- claims and runs of one job -------------------------------------------------------------------


def _claims_of(job: PlannedJob) -> list[str]:
    standing = job.standing
    is_gone = job.after is None
    lines = []
    if job.withdrawn:
        one = job.withdrawn == 1
        line = f"{counted(job.withdrawn, 'claim')} written ahead {'is' if one else 'are'} withdrawn"
        if not is_gone:
            again = f"{job.rewritten} written again" if job.rewritten else "none is due within the horizon"
            line += f", and {again} under revision {job.revision + 1}"
        lines.append(line)
    if standing.decided_upto is not None:
        lines.append(
            f"it counts from {instant_text(standing.decided_upto)} on: ticks up to there are decided, and stay so"
        )
    for run in standing.in_flight:
        goes = "goes" if run.count == 1 else "go"
        runs = f"{counted(run.count, 'run')} in flight since {instant_text(run.since.replace(microsecond=0))}"
        lines.append(f"{runs} {goes} on under revision {run.revision}" + (", and may end" if is_gone else ""))
    if standing.proposals:
        held = f"{counted(standing.proposals, 'proposal')} with {counted(standing.held_ticks, 'held tick')}"
        becomes = "rejected" if is_gone else "kept"
        lines.append(f"{held} {'is' if standing.proposals == 1 else 'are'} {becomes}")
    return lines


# --- telling jobs together ------------------------------------------------------------------------


def _together(
    jobs: list[PlannedJob] | tuple[PlannedJob, ...], lines_of: Callable[[PlannedJob], list[str]]
) -> Iterator[tuple[list[PlannedJob], list[str]]]:
    """Jobs of one kind about which the same is said, each group where its first job stands."""
    groups: dict[tuple[object, ...], list[PlannedJob]] = {}
    for job in jobs:
        groups.setdefault((job.kind, *lines_of(job)), []).append(job)
    for (_, *lines), members in groups.items():
        yield members, [str(line) for line in lines]


def _names(jobs: list[PlannedJob], paint: Paint) -> str:
    names = ", ".join(paint("bold", job.name) for job in jobs[:_NAMES])
    return names if len(jobs) <= _NAMES else f"{names} and {len(jobs) - _NAMES} more, each"
