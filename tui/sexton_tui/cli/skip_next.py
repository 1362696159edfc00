"""``sexton skip-next``: name a tick ahead that is not to run, or take that back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import InvalidInput, Refused
from sexton_tui.actor import actor
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.output import Output, OutputOption, counted, instant_text, print_record

if TYPE_CHECKING:
    from sexton.store.protocol import CurrentJob, Store

_LONGEST_REASON = 1_000


def skip_next(
    ctx: typer.Context,
    job: JobArgument,
    tick: Annotated[str | None, typer.Argument(metavar="[TICK]", help="Which; without it the next one.")] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown with the tick.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Let it run after all.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Decide now that one tick to come is not to run: the next one, or TICK. All others stay as they are.

    A later edit of the job (apply, pause, resume) takes it back, and so does --undo.
    """
    if not reason.isprintable() or len(reason) > _LONGEST_REASON:
        raise InvalidInput(
            f"--reason has a line break, a control character, or more than {_LONGEST_REASON} characters",
            hint="write it shorter, on one line",
        )
    if undo and reason:
        raise typer.BadParameter("--reason says why a tick is not to run; it does not go with --undo")
    at = None if tick is None else parse_instant(tick, "TICK")
    with open_cluster(ctx) as store:
        found = find_job(store, job)
        if undo:
            _undo(store, found, at, output)
        else:
            skip(store, found, at, reason, output)


def skip(store: Store, job: CurrentJob, at: datetime | None, reason: str, output: Output) -> None:
    """Name the tick, and say what was done; also what cancelling a tick that is not due yet comes to."""
    from sexton.store.resuming import skip_tick

    if job.is_quarantined:
        raise Refused(f"{job.name} is in quarantine: no tick of it runs", hint=f"`sexton resume {job.name}` lifts it")
    plan, _ = skip_tick(store, job.job_id, at, actor(), reason)
    if output is not Output.TABLE:
        print_record({"job": job.name, "scheduled_at": plan.changed, "outcome": "skipped"}, output)
        return
    print(f"{job.name} {instant_text(plan.changed)} will not run; the ticks around it do")
    if len(plan.named) > 1:
        print(f"{counted(len(plan.named), 'tick')} to come {'is' if len(plan.named) == 1 else 'are'} skipped in all")
    print(f"`sexton skip-next {job.name} {instant_text(plan.changed)} --undo` takes it back; so does a later edit")


def _undo(store: Store, job: CurrentJob, at: datetime | None, output: Output) -> None:
    from sexton.store.resuming import unskip_tick

    plan, _ = unskip_tick(store, job.job_id, at, actor())
    if output is not Output.TABLE:
        print_record({"job": job.name, "scheduled_at": plan.changed, "outcome": "to come"}, output)
        return
    print(f"{job.name} {instant_text(plan.changed)} will run")
