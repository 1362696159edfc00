"""``sexton trigger``, ``pause`` and ``resume``: what an operator does to the jobs of a running cluster."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sexton.errors import InvalidInput, Refused
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.output import Output, OutputOption, instant_text, print_record

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]
_LONGEST_REQUEST_ID = 200
_LONGEST_REASON = 1_000


def trigger(
    ctx: typer.Context,
    job: JobArgument,
    request_id: Annotated[
        str | None, typer.Option(metavar="ID", help="The same id again gives the same claim, not a second one.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a job now, beside its schedule: a claim of origin manual, which consumes no scheduled tick.

    A paused job is run too: the pause is of its schedule. In a halted cluster the claim waits for the end of the halt.
    """
    if request_id is not None and not 1 <= len(_printable(request_id, "--request-id")) <= _LONGEST_REQUEST_ID:
        raise typer.BadParameter(f"--request-id has {len(request_id)} characters; use 1 to {_LONGEST_REQUEST_ID}")
    with open_cluster(ctx) as store:
        found = find_job(store, job)
        done = store.edits.trigger(found.job_id, actor(), request_id)
        is_halted = store.terms.cluster().halted
        queue = found.definition.queue
        is_served = any(one.name == queue and one.workers for one in store.reads.queues())
    if output is not Output.TABLE:
        print_record(done, output)
        return
    what = "was triggered before with this id" if done.existed else "triggered"
    print(f"{done.name} {what}: its tick is {instant_text(done.scheduled_at)}")
    if found.is_paused or found.is_quarantined:
        state = "paused" if found.is_paused else "quarantined"
        print(f"{done.name} is {state}, and stays so; a trigger runs it once all the same", file=sys.stderr)
    if is_halted:
        print("the cluster is halted: this runs once `sexton halt --lift` has ended that", file=sys.stderr)
    if not is_served:
        waits = f"no worker serves queue {queue} now: what waits there runs once one does"
        print(f"{waits}; to serve it: sexton worker --queues {queue}", file=sys.stderr)


def pause(
    ctx: typer.Context,
    job: JobArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown wherever the job is.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Stop a job's grants and claims until it is resumed; runs that run go on, and `sexton trigger` still runs it."""
    from sexton.store.protocol import ChangeKind

    if not _printable(reason, "--reason").strip() or len(reason) > _LONGEST_REASON:
        raise typer.BadParameter(f"--reason says nothing, or more than {_LONGEST_REASON} characters")
    _change(ctx, job, ChangeKind.PAUSE, reason, output)


def resume(ctx: typer.Context, job: JobArgument, output: OutputOption = Output.TABLE) -> None:
    """End a job's pause, or lift its quarantine; ticks of the pause stay undone."""
    from sexton.store.protocol import ChangeKind

    _change(ctx, job, ChangeKind.RESUME, "", output)


def _change(ctx: typer.Context, name: str, kind: object, why: str, output: Output) -> None:
    from sexton.store.protocol import ChangeKind, JobChange

    assert isinstance(kind, ChangeKind)  # noqa: S101 - the two callers above
    with open_cluster(ctx) as store:
        job = find_job(store, name)
        is_pause = kind is ChangeKind.PAUSE
        if is_pause and job.is_paused:
            raise Refused(f"{job.name} is paused already", hint=f"`sexton resume {job.name}` ends the pause")
        if not is_pause and not (job.is_paused or job.is_quarantined):
            raise Refused(f"{job.name} is neither paused nor quarantined", hint="there is nothing to resume")
        (done,) = store.edits.edit([JobChange(kind, job.job_id, why=why)], actor())
    if output is not Output.TABLE:
        print_record(done, output)
        return
    withdrawn = f"; claims written ahead and withdrawn: {done.withdrawn}" if done.withdrawn else ""
    print(f"{done.name} {'paused' if is_pause else 'resumed'} from {instant_text(done.effective_at)}{withdrawn}")


def _printable(text: str, option: str) -> str:
    if not text.isprintable():
        raise InvalidInput(f"{option} holds a line break or a control character", hint="write it on one line")
    return text
