"""``sexton queues``: what waits in each queue, who serves it, and the limits an operator gave it."""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import InvalidOption, InvalidSetting
from sexton.queue_rules import rate_of, slots_of
from sexton_tui.actor import actor
from sexton_tui.cli.completing import complete_queue, words_of
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import QueueOption
from sexton_tui.cli.output import Column, Output, OutputOption, print_rows, printable
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.cluster_views import QueueView

_COLUMNS = (
    *(Column("name", "queue", folds=True), Column("due", align="right"), "oldest", Column("ahead", align="right")),
    *(Column("catch_up", "catch-up", align="right", gives_way=2), Column("running", align="right")),
    *(Column("limit_text", "limit", align="right"), Column("rate_text", "rate", align="right")),
    *(Column("workers", align="right"), Column("busy", align="right", gives_way=1)),
    Column("slots", align="right", gives_way=1),
)
_STATES = ("served", "unserved", "idle")
_EMPTY = "no queue has a claim, a limit or a worker"
StateOption = Annotated[
    str, typer.Option("--state", help="served, unserved, or idle.", autocompletion=words_of(_STATES))
]
QueueArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The queue, as jobs and workers name it.", autocompletion=complete_queue)
]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

queues = typer.Typer(
    help="List the queues; `show` opens one, `set` limits what runs of one at once, and how many start a second.",
    add_completion=False,
    rich_markup_mode=None,
)


@queues.callback(invoke_without_command=True)
@watchable
def _list_without_a_command(
    ctx: typer.Context, queue: QueueOption = "", state: StateOption = "", output: OutputOption = Output.TABLE
) -> None:
    if ctx.invoked_subcommand is None:
        list_queues(ctx, queue, state, output)


@queues.command("list")
@watchable
def list_queues(
    ctx: typer.Context, queue: QueueOption = "", state: StateOption = "", output: OutputOption = Output.TABLE
) -> None:
    """List the queues: what is due, since when, what was written ahead, what runs, its limits, who serves it.

    A queue is `unserved` where claims are due or written ahead and no worker serves it, else `served` by workers, or
    `idle`.
    """
    if state not in ("", *_STATES):
        raise typer.BadParameter(f"--state: {state!r} is no state of a queue; they are {', '.join(_STATES)}")
    with open_cluster(ctx, read_only=True) as store:
        found = [one for one in store.reads.queues() if queue in ("", one.name) and state in ("", _state_of(one))]
    empty = "no such queue has a claim, a limit or a worker" if queue or state else _EMPTY
    print_rows([_row(one, output) for one in found], output, _COLUMNS, empty=empty)


def _state_of(queue: QueueView) -> str:
    if queue.workers:
        return "served"
    return "unserved" if queue.due or queue.ahead else "idle"


def _row(queue: QueueView, output: Output) -> dict[str, Any]:
    """``slots`` and ``busy`` are the workers'; ``limit`` and ``rate`` (grants a second) the queue's."""
    row = {field.name: getattr(queue, field.name) for field in dataclasses.fields(queue) if field.name != "rule"}
    row |= {"state": _state_of(queue), "limit": queue.rule.slots, "rate": queue.rule.rate}
    if output is Output.TABLE:
        words = queue.rule.words()
        row |= {"limit_text": "-" if queue.rule.slots is None else words["slots"]}
        row |= {"rate_text": "-" if queue.rule.rate is None else words["rate"]}
    return row


@queues.command("show")
@watchable
def show_one(ctx: typer.Context, name: QueueArgument, output: OutputOption = Output.TABLE) -> None:
    """One queue: its limits, its depth by priority, who serves it, and the claims that wait longest."""
    from sexton_tui.cli.listings.one_member import print_queue

    with open_cluster(ctx, read_only=True) as store:
        print_queue(store, name, output)


@queues.command("set")
def set_queue(
    ctx: typer.Context,
    name: QueueArgument,
    slots: Annotated[
        str | None,
        typer.Option("--slots", metavar="N|none", help="How many of its claims run at once in the whole cluster."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="10/s|600/m|none", help="How many of its claims start at most.")
    ] = None,
) -> None:
    """Limit a queue for the whole cluster, or lift its limits with `none`; recorded with who did it."""
    if not _NAME.fullmatch(name):
        raise InvalidOption(
            f"{printable(name[:120])!r} is no name of a queue",
            hint="names are ASCII letters, digits, '.', '_' and '-', at most 100, the first a letter or digit",
        )
    limits = {key: text for key, text in (("slots", slots), ("rate", rate)) if text is not None}
    if not limits:
        raise InvalidOption(f"nothing to set for queue {name}", hint="give --slots N or --rate 10/s")
    _check(limits)
    with open_cluster(ctx) as store:
        change = store.edits.set_queue_rule(name, limits, actor())
        is_served = any(queue.name == name and queue.workers for queue in store.reads.queues())
        is_named = is_served or any(job.definition.queue == name for job in store.edits.current_jobs())
    print(f"queue {name}: {change.after}{' (as before)' if change.before == change.after else ''}")
    if change.after and not is_named:
        print(f"no job and no worker names queue {name} yet; is it spelled right?", file=sys.stderr)


def _check(limits: dict[str, str]) -> None:
    for key, read in (("slots", slots_of), ("rate", rate_of)):
        if key in limits:
            try:
                read(limits[key])
            except InvalidSetting as error:
                raise InvalidOption(f"--{key}: {error}") from None
