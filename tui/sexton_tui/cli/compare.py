"""``sexton compare``: what a fleet costs when one node leads, and when all race."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.settings import ClusterSettings, format_duration
from sexton_tui.cli.output import Column, Output, OutputOption, counted, json_value, print_json, print_rows
from sexton_tui.cli.progress import progress
from sexton_tui.cli.rehearse import settings_of

if TYPE_CHECKING:
    from sexton.jobs import JobDefinition
    from sexton_tui.simulation.fleet import StrategyCost

# Monday of a week without a change of any clock; a fleet is compared on a day like any other.
_BEGIN = datetime(2026, 6, 1, tzinfo=UTC)


def compare(
    nodes: Annotated[int, typer.Option(min=1, max=10_000, help="How many nodes.")] = 3,
    jobs: Annotated[Path | None, typer.Option(metavar="PATH", help="A job file or folder.")] = None,
    minutely: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="So many minutely jobs instead.")] = None,
    workers: Annotated[int, typer.Option(min=0, max=10_000, help="How many workers pull.")] = 10,
    failures: Annotated[int, typer.Option(min=0, max=10_000, help="Nodes lost in a day, back after a minute.")] = 0,
    session: Annotated[str, typer.Option(metavar="DURATION", help="The coordinator's session.")] = "6s",
    horizon: Annotated[str, typer.Option(metavar="DURATION", help="How far ahead claims are written.")] = "60s",
    hours: Annotated[float, typer.Option(min=0.1, max=744, help="Virtual hours.")] = 24.0,
    seed: Annotated[int, typer.Option(min=0, help="Which nodes are lost, and when.")] = 1,
    output: OutputOption = Output.TABLE,
) -> None:
    """What a fleet costs under both strategies, leader and race: attempts, writes, conflicts, pulls, and late ticks.

    Counted by the planner that decides in production, going through every tick on virtual time, as the node that wins
    and, for its first 20,000 moves, as one that loses: it drafts what the winner drafts, and so does every other.
    Jobs of equal schedule and rules count as one that is there so many times. Pulls are the most there can be: every
    worker awake for every start. Runs and the database are not simulated. No database is needed.
    """
    if (jobs is None) == (minutely is None):
        raise typer.BadParameter("give either --jobs PATH or --minutely N")
    from sexton_tui.simulation import fleet as fleets
    from sexton_tui.simulation.filed_jobs import planned_jobs

    settings = settings_of(session, horizon)
    definitions = _minutely(minutely) if jobs is None else _of_files(jobs)
    began = perf_counter()
    fleet = fleets.Fleet(nodes, workers, failures, settings, _BEGIN, _BEGIN + timedelta(hours=hours), seed)
    with progress("counting", output) as bar:
        costs = fleets.compare(fleet, planned_jobs(definitions, _BEGIN), bar)
    took = timedelta(seconds=perf_counter() - began)
    if output is Output.TABLE:
        lost = f"{counted(failures, 'node')} lost a day, " if failures else ""
        print(
            f"{counted(nodes, 'node')}, {counted(len(definitions), 'job')}, {counted(workers, 'worker')}, {lost}"
            f"{hours:g} hours, simulated in {took.total_seconds():.1f} s\n"
            f"session {format_duration(settings.session)}, horizon {format_duration(settings.horizon)}\n"
        )
        print_rows(_metrics(*costs), output, _SIDE_BY_SIDE)
        print()
        print_rows(
            _outages(settings, nodes),
            output,
            (Column("lost"), Column("leader", folds=True), Column("race", folds=True)),
        )
        return
    rows = [_row(cost) for cost in costs]
    if output is Output.JSONL:
        for row in rows:
            print(json.dumps(json_value(row), ensure_ascii=False))
        return
    print_json({"nodes": nodes, "jobs": len(definitions), "strategies": rows, "outages": _outages(settings, nodes)})


_MINUTELY = """version: 1
jobs:
  minutely:
    schedule: "* * * * *"
    command: ["true"]
"""
_SIDE_BY_SIDE = (Column("what", " "), Column("leader", align="right"), Column("race", align="right"))


def _of_files(path: Path) -> list[JobDefinition]:
    from sexton.jobfiles.load import load_job_files

    return [job.definition for job in load_job_files([path]).jobs]


def _minutely(count: int | None) -> list[JobDefinition]:
    from sexton.jobfiles.load import load_job_text

    (job,) = load_job_text(_MINUTELY).jobs
    return [job.definition] * (count or 1)


def _row(cost: StrategyCost) -> dict[str, Any]:
    row = asdict(cost)
    return {**row, "attempts_a_tick": round(cost.attempts / cost.ticks, 2) if cost.ticks else None}


def _metrics(led: StrategyCost, raced: StrategyCost) -> list[dict[str, str]]:
    def line(what: str, *texts: str) -> dict[str, str]:
        return {"what": what, "leader": texts[0], "race": texts[1]}

    pair = (led, raced)
    numbers = (
        ("ticks", [cost.ticks for cost in pair]),
        ("attempts to move a cursor", [cost.attempts for cost in pair]),
        ("conflicts: another was quicker", [cost.conflicts for cost in pair]),
        ("rows written", [cost.rows for cost in pair]),
        ("statements", [cost.statements for cost in pair]),
        ("pulls of workers, at most", [cost.pulls for cost in pair]),
        ("takeovers", [cost.takeovers for cost in pair]),
        ("ticks late", [cost.with_horizon.late + cost.with_horizon.caught_up for cost in pair]),
        ("ticks missed", [cost.with_horizon.missed for cost in pair]),
        ("without a horizon: late", [cost.without_horizon.late + cost.without_horizon.caught_up for cost in pair]),
        ("without a horizon: missed", [cost.without_horizon.missed for cost in pair]),
    )
    rows = [line(what, *(f"{number:,}" for number in both)) for what, both in numbers]
    a_tick = [f"{cost.attempts / cost.ticks:.1f}" if cost.ticks else "-" for cost in pair]
    rows.insert(2, line("attempts a tick", *a_tick))
    rows.append(line("latest by", *(_seconds(cost.with_horizon.latest) for cost in pair)))
    rows.append(line("without a horizon: latest by", *(_seconds(cost.without_horizon.latest) for cost in pair)))
    return rows


def _seconds(duration: timedelta) -> str:
    return format_duration(duration // timedelta(milliseconds=1) * timedelta(milliseconds=1))


def _outages(settings: ClusterSettings, nodes: int) -> list[dict[str, str]]:
    """What stops when a part is lost."""
    from sexton_tui.simulation.rehearsal import SLOWEST_ELECTION

    slowest, ahead = format_duration(settings.session * SLOWEST_ELECTION), format_duration(settings.horizon)
    lease = format_duration(settings.failover_database_after)
    meanwhile = f"claims written {ahead} ahead start meanwhile" if settings.horizon else "nothing is claimed ahead"
    lone = nodes == 1
    return [
        {
            "lost": "ZooKeeper",
            "leader": f"nothing; if the leader dies too, deciding, for {lease}",
            "race": "nothing: it is not used",
        },
        {
            "lost": "the database",
            "leader": "deciding and new grants, until it is back; runs go on",
            "race": "the same",
        },
        {
            "lost": "a node",
            "leader": "deciding, until it is back"
            if lone
            else f"if it led: deciding, for up to {slowest}; {meanwhile}",
            "race": "deciding, until it is back" if lone else "nothing",
        },
    ]
