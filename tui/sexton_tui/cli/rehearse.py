"""``sexton simulate JOBS``: a user's own job files on virtual time, with gaps in the leading, and the ledger of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from sexton.decisions import SkipReason
from sexton.errors import InvalidInput
from sexton.settings import ClusterSettings, format_duration, parse_duration
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.output import Column, Output, counted, instant_text, json_value, print_json, print_rows
from sexton_tui.cli.progress import progress

if TYPE_CHECKING:
    from sexton.decisions import PlannedJob
    from sexton.jobs import JobDefinition
    from sexton.tick_marks import ClockChange
    from sexton_tui.simulation.rehearsal import GapOutcome, JobOutcome, Rehearsal

DAY = timedelta(days=1)
_SHOWN = 10
_MOST_TICKS, _MOST_TICKS_OF_ALL = 20_000_000, 100_000_000
_TOLD_FROM = 5_000_000
SHORTEST = timedelta(milliseconds=100)  # as of a setting
_LOOK_AHEAD = timedelta(days=800)
_FIRST_YEAR, _LAST_YEAR = 1900, 2199


@dataclass(frozen=True, slots=True)
class Asked:
    """The options as they were typed."""

    jobs: Path
    since: str | None
    until: str | None
    dst: bool
    kill_every: str | None
    gap: str | None
    pause: str | None
    skew: str | None
    session: str | None
    horizon: str | None
    nodes: int


def rehearse_files(asked: Asked, output: Output) -> int:
    """Print the ledger that would result; 1 where the audit finds anything."""
    from sexton.inputs import own_inputs
    from sexton.jobfiles.load import load_job_files
    from sexton_tui.simulation.filed_jobs import planned_jobs
    from sexton_tui.simulation.rehearsal import SLOWEST_ELECTION, fault_gaps, rehearse

    settings = settings_of(asked.session, asked.horizon)
    election = settings.session * SLOWEST_ELECTION
    successor = election if asked.nodes > 1 else timedelta.max  # a lone node that froze goes on by itself
    pause = duration_of(asked.pause, "--pause") or timedelta(0)
    hour = timedelta(hours=1)
    kill_every = duration_of(asked.kill_every, "--kill-leader-every", SHORTEST)
    if kill_every is None and not (pause and asked.gap is None):
        kill_every = hour
    gap = duration_of(asked.gap, "--gap", SHORTEST) or election
    definitions = [job.definition for job in load_job_files([asked.jobs]).jobs]
    begin, end = _stretch_of(asked, definitions)
    jobs = planned_jobs(definitions, begin)
    _check_ticks(jobs, begin, end)
    gaps = fault_gaps(begin, end, kill_every=kill_every, gap=gap, pause=pause, pause_every=hour, election=successor)
    began = perf_counter()
    skew = duration_of(asked.skew, "--skew") or timedelta(0)
    with progress("simulating", output) as bar:
        result = rehearse(
            jobs,
            begin,
            end,
            gaps,
            settings,
            inputs_id=own_inputs().inputs_id,
            nodes=asked.nodes,
            skew=skew,
            told=bar,
        )
    took = timedelta(seconds=perf_counter() - began)
    _show(result, _changes_of(definitions, begin, end), settings, took, output)
    return 0 if result.audit.is_clean else 1


def settings_of(session: str | None, horizon: str | None) -> ClusterSettings:
    """The cluster's defaults, but for these two; raises a usage error, or InvalidSetting where they contradict."""
    settings = ClusterSettings()
    if (value := duration_of(session, "--session", SHORTEST)) is not None:
        failover = max(value, settings.failover_database_after)
        settings = replace(settings, session=value, failover_database_after=failover)
    if (value := duration_of(horizon, "--horizon")) is not None:
        settings = replace(settings, horizon=value)
    settings.check()
    return settings


def _check_ticks(jobs: Sequence[PlannedJob], begin: datetime, end: datetime) -> None:
    """Raises InvalidInput where there are more ticks than a simulation gets through in a minute or so."""
    ticks = 0
    for job in jobs:
        of_job = job.revisions[0].schedule.count_between(begin, end, _MOST_TICKS + 1)
        ticks += of_job
        if of_job > _MOST_TICKS or ticks > _MOST_TICKS_OF_ALL:
            who, most = (job.name, _MOST_TICKS) if of_job > _MOST_TICKS else ("these jobs", _MOST_TICKS_OF_ALL)
            verb = "has" if who == job.name else "have"
            raise InvalidInput(f"{who} {verb} more than {most:,} ticks between --from and --to", hint="ask for less")
    if ticks > _TOLD_FROM and not sys.stderr.isatty():
        print(f"simulating {ticks:,} ticks", file=sys.stderr)  # a terminal has a bar


def duration_of(text: str | None, option: str, least: timedelta = timedelta(0)) -> timedelta | None:
    """A duration as it is typed; raises a usage error that names the option."""
    if text is None:
        return None
    try:
        value = parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from None
    if value < least:
        raise typer.BadParameter(f"{option}: {text!r} is too short; the least is {format_duration(least)}")
    return value


def _stretch_of(asked: Asked, definitions: list[JobDefinition]) -> tuple[datetime, datetime]:
    from sexton.clock import SystemClock

    begin = None if asked.since is None else parse_instant(asked.since, "--from")
    if not asked.dst:
        begin = begin or SystemClock().wall().replace(minute=0, second=0, microsecond=0)
        end = begin + 7 * DAY if asked.until is None else parse_instant(asked.until, "--to")
        if end <= begin:
            raise typer.BadParameter("--to: it is not after --from")
        if not _FIRST_YEAR <= begin.year <= end.year <= _LAST_YEAR:
            raise typer.BadParameter(f"--from and --to: write instants in the years {_FIRST_YEAR} to {_LAST_YEAR}")
        return begin, end
    if asked.until is not None:
        raise typer.BadParameter("--dst chooses the stretch: it goes with --from, not with --to")
    after = begin or SystemClock().wall()
    if not _FIRST_YEAR <= after.year <= _LAST_YEAR:
        raise typer.BadParameter(f"--from: write an instant in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    changes = _changes_of(definitions, after, after + _LOOK_AHEAD)
    if not changes:
        raise InvalidInput(
            f"no zone of these jobs changes its clock in the two years after {instant_text(after)}",
            hint="leave --dst out, or give --from",
        )
    at = changes[0][1].at
    return at - DAY, at + DAY


def _changes_of(definitions: list[JobDefinition], after: datetime, upto: datetime) -> list[tuple[str, ClockChange]]:
    from sexton.tick_marks import clock_changes

    zones = sorted({definition.timezone for definition in definitions})
    found = [(zone, change) for zone in zones for change in clock_changes(zone, after, upto)]
    return sorted(found, key=lambda one: (one[1].at, one[0]))


# --- what is shown --------------------------------------------------------------------------------


def _show(
    result: Rehearsal,
    changes: list[tuple[str, ClockChange]],
    settings: ClusterSettings,
    took: timedelta,
    output: Output,
) -> None:
    rows = [_job_row(job) for job in result.jobs]
    gaps = [_gap_row(gap) for gap in result.gaps]
    verdict = {
        "clean": result.audit.is_clean,
        "due": result.audit.due,
        "decided": result.audit.decided,
        **result.audit.counts(),
        "differences": result.audit.differences,
    }
    clocks = [{"zone": zone, "at": change.at, "by": change.after - change.before} for zone, change in changes]
    if output is Output.JSON:
        stretch = {"from": result.begin, "to": result.end, "horizon": settings.horizon, "session": settings.session}
        print_json({**stretch, "jobs": rows, "gaps": gaps, "clock_changes": clocks, "audit": verdict})
        return
    if output is Output.JSONL:
        for kind, listed in (("job", rows), ("gap", gaps), ("clock_change", clocks), ("audit", [verdict])):
            for row in listed:
                print(json.dumps(json_value({"kind": kind, **row}), ensure_ascii=False))
        return
    print(
        f"{instant_text(result.begin)} to {instant_text(result.end)}, simulated in {took.total_seconds():.1f} s;"
        f" horizon {format_duration(settings.horizon)}, session {format_duration(settings.session)}"
    )
    for clock in clocks[:_SHOWN]:
        print(f"clock change: {instant_text(clock['at'])} in {clock['zone']}, by {_signed(clock['by'])}")  # type: ignore[arg-type]  # as built above
    print()
    print_rows(rows, Output.TABLE, _COLUMNS)
    _show_reasons(result)
    _show_gaps(result)
    _show_verdict(result)


_COLUMNS = (
    Column("job", folds=True),
    *(Column(key, title, align="right") for key, title in (("due", ""), ("on_time", "on time"), ("late", ""))),
    Column("caught_up", "caught up", align="right"),
    *(
        Column(reason.value, align="right", gives_way=1, usual="0")
        for reason in (SkipReason.MERGED, SkipReason.SKIPPED)
    ),
    *(Column(reason.value, align="right", gives_way=1, usual="0") for reason in (SkipReason.EXPIRED, SkipReason.HELD)),
    Column("latest", "latest by", align="right"),
)


def _job_row(job: JobOutcome) -> dict[str, Any]:
    listed = (SkipReason.MERGED, SkipReason.SKIPPED, SkipReason.EXPIRED, SkipReason.HELD, SkipReason.PAUSED)
    return {
        "job": job.job,
        "due": job.due,
        "on_time": job.on_time,
        "late": job.late,
        "caught_up": job.caught_up,
        **{reason.value: job.skips.get(reason, 0) for reason in listed},
        "latest": job.latest,
        "reasons": job.reasons,
        "example": job.example,
    }


def _gap_row(gap: GapOutcome) -> dict[str, Any]:
    return {
        "begin": gap.gap.begin,
        "end": gap.gap.end,
        "gap": gap.gap.end - gap.gap.begin,
        "leader_before": gap.gap.ended,
        "cause": gap.gap.cause,
        "node": gap.node,
        "missed": sum(decision.missed for _, decision in gap.decisions),
        "holds_all": gap.holds_all,
        "decisions": [
            {"job": job, "policy": decision.policy, "reason": decision.reason} for job, decision in gap.decisions
        ],
    }


def _show_reasons(result: Rehearsal) -> None:
    lines = [f"  {job.job}: {count:,} {reason}" for job in result.jobs for reason, count in sorted(job.reasons.items())]
    lines += [f"  {job.job}: the last time: {job.example}" for job in result.jobs if job.example]
    if lines:
        print("\nwhy:")
    for line in sorted(lines)[: 3 * _SHOWN]:
        print(line)
    if len(lines) > 3 * _SHOWN:
        print(f"  ... and {len(lines) - 3 * _SHOWN} more: --output json has all")


def _show_gaps(result: Rehearsal) -> None:
    decided = [gap for gap in result.gaps if gap.decisions]
    lengths = [gap.gap.end - gap.gap.begin for gap in result.gaps]
    taken = sum(gap.gap.cause.value == "takeover" for gap in result.gaps)
    longest = f", the longest {format_duration(max(lengths))}" if lengths else ""
    summary = f"{counted(len(result.gaps), 'gap')}{longest}; {counted(taken, 'takeover')}"
    print(f"\n{summary}; {len(decided)} found missed ticks")
    for gap in decided[:_SHOWN]:
        row = _gap_row(gap)
        held = ", all held: more than catch_up.hold_above" if gap.holds_all else ""
        print(
            f"  {instant_text(gap.gap.begin)} leader {gap.gap.ended}, {format_duration(row['gap'])}: {gap.node} "
            f"({gap.gap.cause}) decided {counted(row['missed'], 'tick')} of {counted(len(gap.decisions), 'job')}{held}"
        )
    if len(decided) > _SHOWN:
        print(f"  ... and {len(decided) - _SHOWN} more: --output json has all")


def _show_verdict(result: Rehearsal) -> None:
    counts = ", ".join(f"{count} {word}" for word, count in result.audit.counts().items())
    print(f"\naudit: {result.audit.decided:,} of {result.audit.due:,} due ticks decided; {counts}")
    for difference in result.audit.differences[:_SHOWN]:
        at = instant_text(difference.at)
        print(f"  {difference.job} {difference.verdict} {difference.count} from {at}: {difference.detail}")
    print("verdict: nothing found" if result.audit.is_clean else "verdict: the ledger is wrong")


def _signed(duration: timedelta) -> str:
    return f"+{format_duration(duration)}" if duration >= timedelta(0) else f"-{format_duration(-duration)}"
