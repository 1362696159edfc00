"""``sexton simulate``: a whole cluster on virtual time, or the schedule of job files; judged by the audit."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import Refused
from sexton_tui.cli.output import Output, OutputOption, print_json
from sexton_tui.cli.progress import progress

if TYPE_CHECKING:
    from sexton_tui.simulation.cluster import Outcome

_SHOWN = 20
_LAST_LINES = 40


def simulate(
    jobs: Annotated[
        Path | None, typer.Argument(metavar="[JOBS]", help="A job file or folder: its schedule is simulated.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same history; 1 by default.")] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.1, max=10_000, help="Virtual hours with faults; 24 by default.")
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, max=16, help="How many nodes.")] = 3,
    workers: Annotated[int | None, typer.Option(min=1, max=16, help="How many workers; 2 by default.")] = None,
    history: Annotated[Path | None, typer.Option(help="Write every line of the history to this file.")] = None,
    since: Annotated[str | None, typer.Option("--from", metavar="INSTANT", help="JOBS: this hour by default.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="INSTANT", help="JOBS: a week by default.")] = None,
    dst: Annotated[
        bool, typer.Option("--dst", help="JOBS: two days around the next clock change of the jobs' zones.")
    ] = False,
    kill_leader_every: Annotated[
        str | None, typer.Option(metavar="DURATION", help="JOBS: 1h by default, unless there is a --pause.")
    ] = None,
    gap: Annotated[
        str | None, typer.Option(metavar="DURATION", help="JOBS: how long nobody leads then; 1.45 sessions by default.")
    ] = None,
    pause: Annotated[
        str | None, typer.Option(metavar="DURATION", help="JOBS: freeze the leader so long, halfway between two kills.")
    ] = None,
    skew: Annotated[str | None, typer.Option(metavar="DURATION", help="JOBS: the nodes' clocks are off by it.")] = None,
    session: Annotated[str | None, typer.Option(metavar="DURATION", help="JOBS: 6s by default.")] = None,
    horizon: Annotated[str | None, typer.Option(metavar="DURATION", help="JOBS: 60s by default.")] = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Run the loops of nodes and workers on virtual time, with kills, freezes and outages; exit 1 on any finding.

    Without JOBS: jobs of the simulation's own, every store call, SQLite in memory. After the hours with faults follows
    a quiet time, and then the verdict.

    With JOBS: the decisions about your schedule, by the planner and the policies that decide in production. Between the
    gaps every tick is claimed ahead. Runs, workers and the database are not simulated: a claim starts when it may, and
    nobody answers what is held. A node's wall clock (--skew) moves no tick, for time is the database's.
    """
    of_cluster = {"--seed": seed, "--hours": hours, "--workers": workers, "--history": history}
    of_files = {
        "--from": since,
        "--to": until,
        "--dst": dst or None,
        "--kill-leader-every": kill_leader_every,
        "--gap": gap,
        "--pause": pause,
        "--skew": skew,
        "--session": session,
        "--horizon": horizon,
    }
    misplaced = [key for key, value in (of_cluster if jobs else of_files).items() if value is not None]
    if misplaced:
        raise typer.BadParameter(f"{misplaced[0]} {'does not go with JOBS' if jobs else 'goes with JOBS only'}")
    if jobs is not None:
        from sexton_tui.cli.rehearse import Asked, rehearse_files

        asked = Asked(jobs, since, until, dst, kill_leader_every, gap, pause, skew, session, horizon, nodes)
        return rehearse_files(asked, output)
    return _run_cluster(seed if seed is not None else 1, hours or 24.0, nodes, workers or 2, history, output)


def _run_cluster(seed: int, hours: float, nodes: int, workers: int, history: Path | None, output: Output) -> int:
    try:
        from sexton_tui.simulation.cluster import Simulation
        from sexton_tui.simulation.cluster import simulate as run
    except ModuleNotFoundError as error:
        raise Refused(f"a simulation needs what is not installed here ({error})", hint="install sexton[all]") from None

    began = perf_counter()
    with progress("simulating", output) as bar:
        if history is None:
            outcome = run(Simulation(seed, hours, nodes, workers), bar)
        else:
            with history.open("w", encoding="utf-8") as file:
                outcome = run(Simulation(seed, hours, nodes, workers, tell=lambda line: print(line, file=file)), bar)
    _show(outcome, timedelta(seconds=perf_counter() - began), output)
    return 0 if outcome.is_clean else 1


def _show(outcome: Outcome, took: timedelta, output: Output) -> None:
    judged = outcome.judged
    faults = {kind: count for kind, count in sorted(outcome.counts.items()) if not kind.startswith("log ")}
    if output is not Output.TABLE:
        print_json(
            {
                "seed": outcome.simulation.seed,
                "hours": outcome.simulation.hours,
                "clean": outcome.is_clean,
                "digest": outcome.digest,
                "settings": outcome.settings,
                "happened": faults,
                "due": judged.audit.due,
                "claims": judged.claims,
                "runs": judged.runs,
                "written_ahead": judged.written_ahead,
                "findings": outcome.findings,
            }
        )
        return
    print(f"seed {outcome.simulation.seed}: {outcome.hours:g} virtual hours in {took.total_seconds():.1f} s")
    print("settings: " + ", ".join(f"{key} {value}" for key, value in outcome.settings.items()))
    print("happened: " + ", ".join(f"{count} {kind}" for kind, count in faults.items()))
    print(
        f"{judged.audit.due} ticks fell due, {judged.claims} claims, {judged.runs} runs began, {outcome.calls} store"
        f" calls; {judged.written_ahead} claims were checked to be written ahead; of stale leaders"
        f" {outcome.refused_writes} writes were refused, of stale workers {outcome.refused_results} results"
    )
    print(f"history: {outcome.lines} lines, {outcome.digest}")
    if outcome.is_clean:
        print("verdict: nothing found")
        return
    for finding in outcome.findings[:_SHOWN]:
        print(f"FOUND {finding}")
    if len(outcome.findings) > _SHOWN:
        print(f"... and {len(outcome.findings) - _SHOWN} more")
    print("the last lines of the history:", file=sys.stderr)
    for line in outcome.last_lines[-_LAST_LINES:]:
        print(f"  {line}", file=sys.stderr)
    print(f"verdict: {len(outcome.findings)} findings; again: {outcome.command}")
