"""``sexton trigger``: run a job now, beside its schedule."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sexton.errors import InvalidInput
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.output import Output, OutputOption, instant_text, print_record

_LONGEST_REQUEST_ID = 200


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


def _printable(text: str, option: str) -> str:
    if not text.isprintable():
        raise InvalidInput(f"{option} holds a line break or a control character", hint="write it on one line")
    return text
