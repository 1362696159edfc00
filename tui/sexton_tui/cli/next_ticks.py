"""``sexton next``: the ticks to come, of an expression (no database) or of a job as the cluster knows it."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import InvalidInput
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.output import Column, Output, OutputOption, instant_text, print_json, print_rows

if TYPE_CHECKING:
    from sexton.schedules import Schedule

MAX_COUNT = 100_000


def next_ticks(
    ctx: typer.Context,
    expression: Annotated[str | None, typer.Argument(metavar="[EXPR]", help="A cron expression, in quotes.")] = None,
    job: Annotated[str | None, typer.Option("--job", metavar="NAME", help="A job of the cluster.")] = None,
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="The expression's zone; UTC by default.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="INSTANT", help="Strictly after this; now by default.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=MAX_COUNT, help="How many.")] = 10,
    hash_seed: Annotated[
        str | None, typer.Option("--hash-seed", metavar="NAME", help="What H hashes: a job's name at its first apply.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """The upcoming ticks, strictly after an instant; as JSON a list of instants."""
    if (expression is None) == (job is None):
        raise typer.BadParameter("give either an expression in quotes or --job NAME")
    since = None if after is None else parse_instant(after, "--after")
    if job is not None:
        if tz is not None or hash_seed is not None:
            raise typer.BadParameter("--tz and --hash-seed go with an expression; a job has its own")
        schedule, zone, since = _of_job(ctx, job, since)
    else:
        zone = tz or "UTC"
        schedule = _of_expression(str(expression), zone, hash_seed)
        since = since or _now()
    ticks = list(islice(schedule.between(since, _end_of_time()), count))
    _show(ticks, zone, output)
    if not ticks:
        raise InvalidInput(f"there is no tick after {instant_text(since)}", hint="look at its start, end or instants")


def _of_expression(text: str, zone: str, hash_seed: str | None) -> Schedule:
    from sexton.cron_expression import CronExpression
    from sexton.schedule_specs import schedule_from_spec

    cron = CronExpression.parse(text, hash_seed=hash_seed or "")
    if cron.uses_hash and hash_seed is None:
        raise InvalidInput(f"{text!r} uses H, which depends on the job", hint="add --hash-seed NAME, or use --job NAME")
    return schedule_from_spec({"parts": [{"cron": text}], "timezone": zone, "hash_seed": hash_seed or ""})


def _of_job(ctx: typer.Context, name: str, since: datetime | None) -> tuple[Schedule, str, datetime]:
    from sexton.schedule_specs import schedule_from_spec

    with open_cluster(ctx, read_only=True) as store:
        job = find_job(store, name)
        since = since or store.now()
    if job.is_paused or job.is_quarantined:
        state = "paused" if job.is_paused else "quarantined"
        print(
            f"sexton: {job.name} is {state}: these ticks will not run until `sexton resume {job.name}`", file=sys.stderr
        )
    schedule = schedule_from_spec(json.loads(job.definition.schedule_text(job.hash_seed)))
    return schedule, job.definition.timezone, since


def _show(ticks: list[datetime], zone: str, output: Output) -> None:
    from sexton.zones import load_zone

    if output is Output.JSON:
        print_json(ticks)
        return
    if output is Output.JSONL:
        for tick in ticks:
            print(json.dumps(instant_text(tick)))
        return
    place = load_zone(zone)
    rows = [
        {
            "tick": tick,
            "local": f"{tick.astimezone(place):%a %Y-%m-%d %H:%M:%S %Z}",
            "offset": f"{tick.astimezone(place):%z}",
        }
        for tick in ticks
    ]
    print_rows(rows, output, (Column("tick", "UTC"), Column("local", zone), "offset"))


def _now() -> datetime:
    from sexton.clock import SystemClock

    return SystemClock().wall()


def _end_of_time() -> datetime:
    from datetime import UTC

    return datetime(9999, 1, 1, tzinfo=UTC)
