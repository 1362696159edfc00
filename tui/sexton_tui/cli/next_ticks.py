"""``sexton next``: the ticks to come, of an expression or a file's job (no database), or of a job of the cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import InvalidInput, NotFound
from sexton_tui.cli.completing import complete_job, complete_zone
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.month_drawing import month_lines
from sexton_tui.cli.output import Output, OutputOption, instant_text, print_json, print_rows
from sexton_tui.cli.tick_rows import tick_table
from sexton_tui.cli.watching import watchable
from sexton_tui.console.core.clock_words import change_text
from sexton_tui.console.core.upcoming import TicksOf, local_date, ticks_of_job

if TYPE_CHECKING:
    from sexton.tick_calendar import CalendarMonth

MAX_COUNT = 100_000
_COUNT = 10
_NAMED = 3
_FIRST_MONTH, _LAST_MONTH = date(1900, 1, 1), date(2199, 12, 1)
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


@watchable
def next_ticks(
    ctx: typer.Context,
    expression: Annotated[str | None, typer.Argument(metavar="[EXPR]", help="A cron expression, in quotes.")] = None,
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="NAME", help="A job of the cluster, or of --file.", autocompletion=complete_job),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="PATH", help="A job file or folder to take --job from.")
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz", metavar="ZONE", help="The expression's zone; UTC by default.", autocompletion=complete_zone
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="INSTANT", help="Strictly after this; now by default.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, max=MAX_COUNT, help="How many; 10 by default.")
    ] = None,
    calendar: Annotated[bool, typer.Option("--calendar", help="Draw a month, with the ticks of each day.")] = False,
    month: Annotated[
        str | None, typer.Option("--month", metavar="YYYY-MM", help="With --calendar; the next tick's by default.")
    ] = None,
    hash_seed: Annotated[
        str | None, typer.Option("--hash-seed", metavar="NAME", help="What H hashes: a job's name at its first apply.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """The upcoming ticks, strictly after an instant; as JSON a list of instants, with --calendar of days."""
    if (expression is None) == (job is None):
        raise typer.BadParameter("give either an expression in quotes or --job NAME")
    if file is not None and job is None:
        raise typer.BadParameter("--file goes with --job NAME")
    if job is not None and (tz is not None or hash_seed is not None):
        raise typer.BadParameter("--tz and --hash-seed go with an expression; a job has its own")
    if calendar and count is not None:
        raise typer.BadParameter("--count goes with a list; choose the month of a calendar with --month YYYY-MM")
    if month is not None and not calendar:
        raise typer.BadParameter("--month goes with --calendar")
    drawn = None if month is None else _parse_month(month)
    skipped: frozenset[datetime] = frozenset()
    since = None if after is None else parse_instant(after, "--after")
    if job is None:
        asked = _of_expression(str(expression), tz or "UTC", hash_seed)
    elif file is not None:
        asked = _of_file(file, job)
    else:
        asked, skipped = _of_job(ctx, job)
    since = since or asked.now
    if drawn is not None:
        _show_month(asked, drawn, output)
        return
    coming = (tick for tick in asked.schedule.between(since, _END_OF_TIME) if tick not in skipped)
    ticks = list(islice(coming, 1 if calendar else count or _COUNT))
    if calendar and ticks:
        _show_month(asked, local_date(ticks[0], asked.zone), output)
    else:
        _show_ticks(asked, ticks, output)
    if not ticks:
        raise InvalidInput(f"there is no tick after {instant_text(since)}", hint="look at its start, end or instants")


def _parse_month(text: str) -> date:
    try:
        month = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC).date()
    except ValueError:
        raise typer.BadParameter(f"--month: {text!r} is not a month; write e.g. 2026-03") from None
    if not _FIRST_MONTH <= month <= _LAST_MONTH:
        raise typer.BadParameter(f"--month: {text!r} lies outside the years 1900 to 2199")
    return month


def _of_expression(text: str, zone: str, hash_seed: str | None) -> TicksOf:
    from sexton.cron_expression import CronExpression
    from sexton.schedule_specs import schedule_from_spec

    cron = CronExpression.parse(text, hash_seed=hash_seed or "")
    if cron.uses_hash and hash_seed is None:
        raise InvalidInput(f"{text!r} uses H, which depends on the job", hint="add --hash-seed NAME, or use --job NAME")
    schedule = schedule_from_spec({"parts": [{"cron": text}], "timezone": zone, "hash_seed": hash_seed or ""})
    return TicksOf(text, schedule, zone, _now())


def _of_file(path: Path, name: str) -> TicksOf:
    from sexton.jobfiles.load import load_job_files

    found = {job.name.lower(): job.definition for job in load_job_files([path]).jobs}
    definition = found.get(name.lower())
    if definition is None:
        listed = ", ".join(sorted(one.name for one in found.values())[:10]) or "none"
        raise NotFound(f"{path} has no job {name!r}", hint=f"its jobs are {listed}")
    return ticks_of_job(definition, definition.hash_seed or definition.name, _now())


def _of_job(ctx: typer.Context, name: str) -> tuple[TicksOf, frozenset[datetime]]:
    """Its ticks, and those of them that are not to run, which are told."""
    with open_cluster(ctx, read_only=True) as store:
        job = find_job(store, name)
        skipped = store.reads.job(job.name, 0).job.skipped
        now = store.now()
    if job.is_paused or job.is_quarantined:
        state = "paused" if job.is_paused else "quarantined"
        print(
            f"sexton: {job.name} is {state}: these ticks will not run until `sexton resume {job.name}`", file=sys.stderr
        )
    if skipped:
        named = ", ".join(map(instant_text, skipped[:_NAMED]))
        more = f" and {len(skipped) - _NAMED} more" if len(skipped) > _NAMED else ""
        print(f"sexton: {job.name} skips {named}{more}: `sexton ticks {job.name}` tells why", file=sys.stderr)
    return ticks_of_job(job.definition, job.hash_seed, now), frozenset(skipped)


def _show_ticks(asked: TicksOf, ticks: Sequence[datetime], output: Output) -> None:
    if output is Output.JSON:
        print_json(ticks)
        return
    if output is Output.JSONL:
        for tick in ticks:
            print(json.dumps(instant_text(tick)))
        return
    columns, rows = tick_table(asked, ticks)
    print_rows(rows, output, columns)


def _show_month(asked: TicksOf, month: date, output: Output) -> None:
    from sexton.tick_calendar import calendar_month
    from sexton.tick_marks import marked_between
    from sexton.zones import load_zone

    drawn = calendar_month(asked.schedule, asked.zone, month, local_date(asked.now, asked.zone))
    if output is not Output.TABLE:
        print_rows(_day_rows(drawn), output, ())
        return
    zone = load_zone(asked.zone)
    start, end = drawn.bounds
    marked = [
        (tick, marks)
        for tick, marks in marked_between(asked.schedule, asked.zone, start, end)
        if tick.astimezone(zone).date().replace(day=1) == drawn.first
    ]
    lines = month_lines(drawn, asked.title, marked, zone)
    if not sys.stdout.isatty():
        for line in lines:
            print("".join(piece.text for piece in line).rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        console.print(Text.assemble(*line), no_wrap=True, overflow="ellipsis")


def _day_rows(month: CalendarMonth) -> list[dict[str, Any]]:
    return [
        {
            "day": day.day.isoformat(),
            "ticks": day.ticks,
            "is_today": day.is_today,
            "excluded": day.excluded or None,
            "clock": [change_text(change) for change in day.changes],
        }
        for day in month.days
    ]


def _now() -> datetime:
    from sexton.clock import SystemClock

    return SystemClock().wall()
