"""``sexton workers``: who pulls, and how they are drained."""

from __future__ import annotations

import dataclasses
import difflib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import NotFound
from sexton_tui.actor import actor
from sexton_tui.cli.completing import complete_queue, complete_worker, words_of
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import QueueOption
from sexton_tui.cli.output import Column, Output, OutputOption, print_rows
from sexton_tui.cli.watching import watchable
from sexton_tui.console.core.tables import worker_state

if TYPE_CHECKING:
    from sexton.cluster_views import WorkerView
    from sexton.store.protocol import DrainAsked

_WORKER_COLUMNS = (
    *(Column("name", "worker", folds=True), "state", Column("busy", align="right"), Column("slots", align="right")),
    *(Column("queues", folds=True), Column("age", "seen"), Column("started_at", gives_way=1, in_seconds=True)),
    *(
        Column("stopped_at", gives_way=2, in_seconds=True),
        Column("version", gives_way=4),
        Column("address", gives_way=3),
    ),
    Column("pid", gives_way=5),
)


_ENDED = ("drained", "stopped")
_STATES = ("serves", "drains", "silent", *_ENDED)
_DRAIN_COLUMNS = (Column("name", "worker", folds=True), "state", Column("worker_id", "id", align="right"))

WorkerArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The worker's name.", autocompletion=complete_worker)
]

workers = typer.Typer(
    help="The workers, their queues and slots; without a command, list them.",
    add_completion=False,
    rich_markup_mode=None,
)


@workers.callback(invoke_without_command=True)
@watchable
def show(
    ctx: typer.Context,
    stopped: Annotated[bool, typer.Option("--stopped", help="Those that stopped cleanly, too.")] = False,
    state: Annotated[
        str,
        typer.Option("--state", help="serves, drains, silent, drained, or stopped.", autocompletion=words_of(_STATES)),
    ] = "",
    queue: QueueOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List the workers heard of in the last 10 minutes: they serve, drain, or are silent (perhaps dead)."""
    if ctx.invoked_subcommand is not None:
        return
    if state not in ("", *_STATES):
        raise typer.BadParameter(f"--state: {state!r} is no state of a worker; they are {', '.join(_STATES)}")
    with open_cluster(ctx, read_only=True) as store:
        found = store.reads.workers(stopped=stopped or state in _ENDED)
    rows = [_worker_row(one) for one in found if state in ("", worker_state(one)) and queue in ("", *one.queues)]
    empty = "no such worker" if state or queue else "no worker; start `sexton worker`"
    print_rows(rows, output, _WORKER_COLUMNS, empty=empty)


@workers.command("show")
@watchable
def show_one(ctx: typer.Context, name: WorkerArgument, output: OutputOption = Output.TABLE) -> None:
    """One worker: whether it lives, drains or has ended, and each claim that it runs."""
    from sexton_tui.cli.listings.one_member import print_worker

    with open_cluster(ctx, read_only=True) as store:
        print_worker(store, name, output)


@workers.command("drain")
def drain(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The worker's name.", autocompletion=complete_worker)
    ] = None,
    version: Annotated[
        str | None, typer.Option("--all-of-version", metavar="V", help="All that run this version of Sexton.")
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", metavar="Q", help="All that serve this queue.", autocompletion=complete_queue),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let them go on, those that have not ended yet.")] = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Have workers take no more claims, finish their runs within their own drain time, and end with exit code 0.

    As SIGTERM does, without a shell on their machines. A supervisor that restarts on failure leaves them ended. Exit
    code 1 where one of them is of a Sexton too old to heed it.
    """
    from sexton.store.protocol import WorkerChoice

    if sum(choice is not None for choice in (name, version, queue)) != 1:
        raise typer.BadParameter("say which: NAME, --all-of-version V or --queue Q, one of them")
    with open_cluster(ctx) as store:
        done = store.operations.drain(WorkerChoice(name, version, queue), actor(), asked=not undo)
        if not done:
            known = [worker.name for worker in store.reads.workers()]
            wanted = f"of the name {name}" if name else f"of version {version}" if version else f"on queue {queue}"
            raise NotFound(f"no worker {wanted} was heard of in the last 10 minutes", hint=_nearest(name or "", known))
    rows = [{"worker_id": one.worker_id, "name": one.name, "state": _asked_words(one, undo=undo)} for one in done]
    print_rows(rows, output, _DRAIN_COLUMNS)
    deaf = [one.name for one in done if not one.heeds]
    if undo or not deaf:  # who never heard of it goes on anyway
        return 0
    print(f"of an older Sexton, which does not heed this: {', '.join(deaf)}; send SIGTERM instead", file=sys.stderr)
    return 1


def _asked_words(one: DrainAsked, *, undo: bool) -> str:
    if undo:
        return "serves" if one.changed else "served already"
    if not one.heeds:
        return "not asked"
    return "asked to drain" if one.changed else "asked before"


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else "`sexton workers` lists them"


def _worker_row(worker: WorkerView) -> dict[str, Any]:
    row = {field.name: getattr(worker, field.name) for field in dataclasses.fields(worker)}
    return {**row, "state": worker_state(worker)}
