"""``sexton validate`` and ``sexton apply``: job files checked, planned against the cluster, and applied in one edit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import Refused
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Output, OutputOption, counted, instant_text, print_json, print_rows, printable

if TYPE_CHECKING:
    from sexton.jobfiles.differences import Difference
    from sexton.jobfiles.plan import ApplyPlan
    from sexton.jobs import JobDefinition
    from sexton.store.protocol import ChangeDone

PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH", help="A job file, or a folder of them.")]


def validate(paths: PathsArgument, output: OutputOption = Output.TABLE) -> None:
    """Check job files without a database: every problem of every file, with its line and column."""
    from sexton.jobfiles.differences import schedule_summary
    from sexton.jobfiles.load import load_job_files

    loaded = load_job_files(paths)
    rows = [
        {
            "job": job.name,
            "schedule": schedule_summary(job.definition.schedule_parts),
            "timezone": job.definition.timezone,
            "file": f"{job.file}:{job.line}",
        }
        for job in loaded.jobs
    ]
    print_rows(rows, output, ("job", "schedule", "timezone", "file"))
    if output is Output.TABLE:
        print(f"{counted(len(rows), 'job')} in {counted(len(loaded.files), 'file')}: no problems", file=sys.stderr)


def apply(
    ctx: typer.Context,
    paths: PathsArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Retire the cluster's jobs that are not in the files.")
    ] = False,
    prune_limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="How many jobs --prune may retire at most.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Plan job files against the cluster, show the plan, ask, and apply all of it in one transaction.

    Jobs that are not in the files stay, unless --prune retires them. Where anything is wrong, nothing is applied.
    """
    from sexton.jobfiles.load import load_job_files
    from sexton.jobfiles.plan import plan_changes

    if prune_limit is not None and not prune:
        raise typer.BadParameter("--prune-limit goes with --prune")
    loaded = load_job_files(paths)
    with open_cluster(ctx) as store:
        plan = plan_changes(loaded, store.edits.current_jobs(), prune=prune, prune_limit=prune_limit)
        if output is Output.TABLE:
            show_plan(plan)
        if plan.is_empty:
            done: tuple[ChangeDone, ...] = ()
        else:
            if not yes:
                _ask(plan)
            done = store.edits.edit(plan.changes, actor())
    if output is Output.TABLE:
        _show_done(done)
    elif output is Output.JSON:
        print_json(list(done))
    else:
        print_rows(done, output, ())


def _ask(plan: ApplyPlan) -> None:
    if not sys.stdin.isatty():
        raise Refused("there is no terminal to ask on, so nothing was changed", hint="add --yes to apply this plan")
    if not typer.confirm(f"Apply {counted(len(plan.changes), 'change')}?", err=True):
        raise typer.Abort


def show_plan(plan: ApplyPlan) -> None:
    """The plan in short: a line a job, and one a changed key."""
    for definition in plan.added:
        print(f"+ {definition.name}  {_schedule(definition)}")
    for one in plan.revised:
        sign, arrow = ("→", f"{one.current.name} → ") if one.renamed else ("~", "")
        print(f"{sign} {arrow}{one.definition.name}")
        for difference in one.differences:
            if difference.key != "name":
                print(f"    {_difference(difference)}")
    for job in plan.retired:
        print(f"- {job.name}")
    staying = [job.name for job in plan.missing if job not in plan.retired]
    if staying:
        names = ", ".join(staying[:10]) + (", ..." if len(staying) > 10 else "")
        print(f"  not in the files, and kept (--prune retires them): {names}")
    for old, new in plan.likely_renames:
        print(f"  {new} does what {old} does, and both would run; if {old} was renamed, add `renamed_from: {old}`")
    print(f"Plan: {plan.summary()}.")


def _schedule(definition: JobDefinition) -> str:
    from sexton.jobfiles.differences import schedule_summary

    return f"{schedule_summary(definition.schedule_parts)} ({definition.timezone})"


def _difference(difference: Difference) -> str:
    return f"{difference.key}: {_short(difference.old)} → {_short(difference.new)}"


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= 100 else text[:99] + "…"


def _show_done(done: tuple[ChangeDone, ...]) -> None:
    if not done:
        print("Nothing to change.")
        return
    withdrawn = sum(change.withdrawn for change in done)
    told = f"; {counted(withdrawn, 'claim')} written ahead withdrawn" if withdrawn else ""
    since = instant_text(max(change.effective_at for change in done))
    print(f"Applied {counted(len(done), 'change')}, in force from {since}{told}.")
