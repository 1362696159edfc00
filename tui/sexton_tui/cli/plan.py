"""``sexton plan``: what job files would change in the cluster, in definitions and in time. It only reads."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Output, OutputOption, instant_text, json_value, print_json
from sexton_tui.cli.plan_text import show_report
from sexton_tui.cli.progress import progress
from sexton_tui.cli.validate import PathsArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sexton.jobfiles.plan import ApplyPlan
    from sexton.jobfiles.plan_report import PlanReport
    from sexton.jobfiles.plan_warnings import PlanWarning
    from sexton.store.protocol import CurrentJob, Store

_LONGEST_WINDOW = timedelta(days=3660)
EXIT_CHANGES = 1


def plan(
    ctx: typer.Context,
    paths: PathsArgument,
    prune: Annotated[
        bool, typer.Option("--prune", help="Retire the cluster's jobs that are not in the files.")
    ] = False,
    prune_limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="How many jobs --prune may retire at most.")
    ] = None,
    until: Annotated[
        str, typer.Option("--until", metavar="INSTANT|DURATION", help="How far ahead ticks are compared.")
    ] = "7d",
    crowd: Annotated[
        int, typer.Option("--crowd", min=1, metavar="N", help="Warn where more jobs than this fall due in a minute.")
    ] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the plan, for `sexton apply --plan FILE`.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 where there is anything to change.")] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Show what applying job files would change: definitions, ticks, claims and runs, with warnings.

    Nothing is written to the cluster. Warnings never change the exit code.
    """
    from sexton.jobfiles.load import load_job_files
    from sexton.jobfiles.plan import plan_changes

    if prune_limit is not None and not prune:
        raise typer.BadParameter("--prune-limit goes with --prune")
    window = _window(until)
    with progress("planning", output) as bar, open_cluster(ctx, read_only=True) as store:
        loaded = load_job_files(paths)
        current = store.edits.current_jobs()
        planned = plan_changes(loaded, current, prune=prune, prune_limit=prune_limit)
        report = read_report(store, planned, current, until=window, crowd=crowd, told=bar)
        warnings = read_warnings(report)
        files = [str(path) for path in paths]
        saved = None if out is None else _save(store, planned, report.now, out, files, prune_limit)
    if output is Output.TABLE:
        show_report(report, warnings)
        if saved is not None:
            print(f"Saved to {saved}; carry it out with: sexton apply --plan {saved}")
    else:
        _print_data(report, warnings, output)
    return EXIT_CHANGES if check and not planned.is_empty else 0


def read_warnings(report: PlanReport) -> tuple[PlanWarning, ...]:
    """All warnings of the plan; for those of Python calls, modules are looked for as a worker started here would."""
    from sexton.jobfiles.plan_warnings import warnings_of
    from sexton.jobfiles.python_calls import call_warnings

    return (*warnings_of(report), *call_warnings(report, ["", *sys.path]))


def read_report(
    store: Store,
    planned: ApplyPlan,
    current: Sequence[CurrentJob],
    *,
    until: datetime | timedelta = timedelta(days=7),
    crowd: int = 20,
    told: Callable[[int, int], None] | None = None,
) -> PlanReport:
    """What a plan means, by the cluster as it stands now; a few short reads."""
    from sexton.inputs import own_inputs
    from sexton.jobfiles.plan_report import report_plan, touched_ids

    standings = store.reads.standings(touched_ids(planned))
    end = standings.now.replace(microsecond=0) + until if isinstance(until, timedelta) else until
    if end <= standings.now:
        raise typer.BadParameter(f"--until: {instant_text(end)} is not after the cluster's now")
    end = min(end, standings.now + _LONGEST_WINDOW)
    horizon = store.edits.settings().horizon
    inputs_id = own_inputs().inputs_id
    return report_plan(
        planned, current, standings, until=end, horizon=horizon, crowd=crowd, inputs_id=inputs_id, told=told
    )


def _window(text: str) -> datetime | timedelta:
    from sexton.settings import parse_duration

    if text[:1].isdigit() and text[-1:].isalpha() and "T" not in text:
        try:
            length = parse_duration(text)
        except ValueError as error:
            raise typer.BadParameter(f"--until: {error}") from None
        if not timedelta(0) < length <= _LONGEST_WINDOW:
            raise typer.BadParameter(f"--until: {text!r} is not between 1ms and 3660d")
        return length
    return parse_instant(text, "--until")


def _save(
    store: Store, planned: ApplyPlan, now: datetime, out: Path, files: list[str], prune_limit: int | None
) -> Path:
    from sexton.inputs import own_inputs
    from sexton.jobfiles.saved_plans import SavedPlan, save_plan
    from sexton_tui.actor import actor

    cluster_id = store.terms.cluster().cluster_id
    save_plan(out, SavedPlan(planned, cluster_id, own_inputs().inputs_id, now, actor(), tuple(files), prune_limit))
    return out


def _print_data(report: PlanReport, warnings: Sequence[PlanWarning], output: Output) -> None:
    from sexton.jobfiles.plan_document import change_of, plan_document, summary_of, warning_of

    if output is Output.JSON:
        print_json(plan_document(report, warnings))
        return
    rows = [change_of(job) for job in report.jobs] + [warning_of(one) for one in warnings] + [summary_of(report)]
    for row in rows:
        print(json.dumps(json_value(row), ensure_ascii=False))
