"""``sexton apply``: job files, or a saved plan of them, shown and applied in one edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sexton_tui.actor import actor
from sexton_tui.cli.asking import ask
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Output, OutputOption, counted, instant_text, print_json, print_rows
from sexton_tui.cli.plan import read_report, read_warnings
from sexton_tui.cli.plan_text import show_report
from sexton_tui.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sexton.jobfiles.plan import ApplyPlan
    from sexton.jobfiles.saved_plans import SavedPlan
    from sexton.store.protocol import ChangeDone, CurrentJob, EditConditions, Store


def apply(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH", help="A job file, or a folder of them.", show_default=False)
    ] = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Apply what `sexton plan PATH --out FILE` saved.")
    ] = None,
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

    Jobs that are not in the files stay, unless --prune retires them. Where anything is wrong, or a job of the files
    has been changed meanwhile, nothing is applied.
    """
    if plan_file is None and not paths:
        raise typer.BadParameter("name a PATH of job files, or a plan with --plan FILE")
    if plan_file is not None and paths:
        raise typer.BadParameter("--plan FILE goes without a PATH: the plan holds what to apply")
    if plan_file is not None and (prune or prune_limit is not None):
        raise typer.BadParameter("--prune goes with `sexton plan`, which wrote what --plan FILE applies")
    if prune_limit is not None and not prune:
        raise typer.BadParameter("--prune-limit goes with --prune")
    if output is not Output.TABLE and not yes:
        raise typer.BadParameter(f"--output {output.value} goes with --yes: it shows no plan to say yes to")
    if plan_file is not None:
        plan, conditions = _saved(ctx, plan_file, output)
    else:
        plan, conditions = _planned(ctx, paths or [], prune, prune_limit, output)
    _ask_and_apply(ctx, plan, conditions, yes=yes, output=output)


def _planned(
    ctx: typer.Context, paths: Sequence[Path], prune: bool, prune_limit: int | None, output: Output
) -> tuple[ApplyPlan, EditConditions]:
    """The plan of job files, and what of the cluster it stands on."""
    from sexton.jobfiles.load import load_job_files
    from sexton.jobfiles.plan import plan_changes
    from sexton.store.protocol import EditConditions

    loaded = load_job_files(paths)
    with open_cluster(ctx) as store:
        current = store.edits.current_jobs()
        plan = plan_changes(loaded, current, prune=prune, prune_limit=prune_limit)
        if output is Output.TABLE:
            _show(store, plan, current)
    return plan, EditConditions(unchanged=plan.unchanged_at)


def _saved(ctx: typer.Context, file: Path, output: Output) -> tuple[ApplyPlan, EditConditions]:
    """A saved plan; refused here already where it cannot be applied any more, so that nobody is asked in vain. What
    counts is the same question in the edit's transaction."""
    from sexton.jobfiles.plan import check_prune
    from sexton.jobfiles.saved_plans import read_plan

    saved = read_plan(file)
    with open_cluster(ctx) as store:
        store.edits.edit((), actor(), saved.stands_on)
        current = store.edits.current_jobs()
        if saved.plan.retired:
            check_prune(saved.plan.retired, len(current), saved.prune_limit)
        if output is Output.TABLE:
            _tell_origin(file, saved)
            _show(store, saved.plan, current)
    return saved.plan, saved.conditions


def _tell_origin(file: Path, saved: SavedPlan) -> None:
    of = f" of {', '.join(saved.files[:3])}{', ...' if len(saved.files) > 3 else ''}" if saved.files else ""
    print(f"{file}: the plan{of}, made by {saved.made_by} at {instant_text(saved.made_at.replace(microsecond=0))}.")


def _show(store: Store, plan: ApplyPlan, current: Sequence[CurrentJob]) -> None:
    with progress("planning") as bar:
        report = read_report(store, plan, current, told=bar)
        warnings = read_warnings(report)
    show_report(report, warnings, brief=True)


def _ask_and_apply(
    ctx: typer.Context, plan: ApplyPlan, conditions: EditConditions, *, yes: bool, output: Output
) -> None:
    done: tuple[ChangeDone, ...] = ()
    if not plan.is_empty and not yes:
        ask(f"Apply {_told(plan)}?", instead="add --yes to apply this plan")
    if not plan.is_empty or conditions.cluster_id is not None:
        with open_cluster(ctx) as store:  # a connection of its own: a person may take an hour to answer
            done = store.edits.edit(plan.changes, actor(), conditions)
    if output is Output.TABLE:
        if done:  # else the plan said that there is nothing to change
            _show_done(done)
    elif output is Output.JSON:
        print_json(list(done))
    else:
        print_rows(done, output, ())


def _told(plan: ApplyPlan) -> str:
    """What is to be said yes to: every kind of change with its number."""
    renamed = sum(one.renamed for one in plan.revised)
    counts = (
        (len(plan.added), "added"),
        (len(plan.revised) - renamed, "changed"),
        (renamed, "renamed"),
        (len(plan.retired), "retired"),
    )
    parts = ", ".join(f"{number} {what}" for number, what in counts if number)
    return f"{counted(len(plan.changes), 'change')} ({parts})"


def _show_done(done: Sequence[ChangeDone]) -> None:
    withdrawn = sum(change.withdrawn for change in done)
    told = f"; {counted(withdrawn, 'claim')} written ahead withdrawn" if withdrawn else ""
    since = instant_text(max(change.effective_at for change in done))
    print(f"Applied {counted(len(done), 'change')}, in force from {since}{told}.")
