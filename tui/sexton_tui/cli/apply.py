"""``sexton apply``: job files planned against the cluster, shown, and applied in one edit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import Refused
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Output, OutputOption, counted, instant_text, print_json, print_rows
from sexton_tui.cli.plan_text import show_plan
from sexton_tui.cli.validate import PathsArgument

if TYPE_CHECKING:
    from sexton.jobfiles.plan import ApplyPlan
    from sexton.store.protocol import ChangeDone


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


def _show_done(done: tuple[ChangeDone, ...]) -> None:
    if not done:
        print("Nothing to change.")
        return
    withdrawn = sum(change.withdrawn for change in done)
    told = f"; {counted(withdrawn, 'claim')} written ahead withdrawn" if withdrawn else ""
    since = instant_text(max(change.effective_at for change in done))
    print(f"Applied {counted(len(done), 'change')}, in force from {since}{told}.")
