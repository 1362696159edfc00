"""``sexton clock``: the database's clock, what each node makes of it, and the end of a doubt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import typer

from sexton.cluster_views import NodeView, Overview
from sexton.errors import Refused
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Column, Output, OutputOption, instant_text, print_json, print_record, print_rows
from sexton_tui.cli.watching import watchable

clock = typer.Typer(
    help="The database's clock against each node's; without a command, show it (exit code 1: a node doubts it).",
    add_completion=False,
    rich_markup_mode=None,
)
_FRESH = timedelta(seconds=15)  # a report not older than this speaks of the clock as it is
_COLUMNS = ("node", "role", Column("clock_offset", "database - host"), Column("clock_jump", "doubts a jump of"), "seen")


@clock.callback(invoke_without_command=True)
@watchable
def show(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """The database's clock against each node's host clock, and who doubts it by how much; 1 if a node does.

    A node doubts it after a jump of more than 2 s, and decides nothing meanwhile: until a second node reads the same,
    an operator says `sexton clock accept`, or a lone node has waited for 60 s.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    with open_cluster(ctx, read_only=True) as store:
        overview = store.reads.overview()
    nodes = [node for node in overview.nodes if node.age <= _FRESH]
    rows = [_row(node) for node in nodes]
    doubting = _doubting(overview)
    if output is not Output.TABLE:
        print_record({"database_now": overview.now, "is_in_doubt": bool(doubting), "nodes": rows}, output)
        return 1 if doubting else 0
    print(f"database time {instant_text(overview.now)}")
    print_rows(rows, output, _COLUMNS, empty="no node was heard of in the last 15 s; start `sexton scheduler`")
    if doubting:
        print(f"in doubt at {', '.join(doubting)}: if the database's time is right, run `sexton clock accept`")
    return 1 if doubting else 0


@clock.command("accept")
def accept(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Take the database's clock for the truth: nodes that doubt it decide by it from their next look on."""
    with open_cluster(ctx) as store:
        doubting = _doubting(store.reads.overview())
        if not doubting:
            raise Refused("no node doubts the database's clock", hint="`sexton clock` shows it against each node's")
        accepts = store.edits.accept_clock(actor())
    if output is Output.TABLE:
        print(f"accepted for {', '.join(doubting)}; `sexton clock` shows whether all follow")
    else:
        print_json({"accepts": accepts, "doubting": doubting})


def _doubting(overview: Overview) -> list[str]:
    return [node.name for node in overview.nodes if node.clock_jump is not None and node.age <= _FRESH]


def _row(node: NodeView) -> dict[str, Any]:
    return {
        "node": node.name,
        "role": node.role,
        "clock_offset": node.clock_offset,
        "clock_jump": node.clock_jump,
        "seen": node.age,
    }
