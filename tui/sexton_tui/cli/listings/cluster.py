"""``sexton cluster``: who leads under which term, and the other nodes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sexton.cluster_views import NodeView, Overview
from sexton_tui.cli.completing import complete_node
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import Column, Output, OutputOption, print_record, print_rows
from sexton_tui.cli.strategy import race_record
from sexton_tui.cli.watching import watchable
from sexton_tui.console.core.leadership import alarm_lines, leadership_lines, leadership_record
from sexton_tui.console.core.standing import is_race

_COLUMNS = (
    *(Column("node", folds=True), "role", "seen", Column("coordinator", gives_way=1)),
    *(Column("jobs_warm", "warm", align="right", gives_way=3), Column("behind", gives_way=2)),
    *(Column("clock_offset", "clock", gives_way=4), Column("claims_upto", gives_way=5)),
    *(Column("inputs_id", "inputs", gives_way=7), Column("version", gives_way=8), Column("address", gives_way=6)),
    Column("pid", gives_way=9),
)

_RACE_COLUMNS = (
    Column("attempts", align="right"),
    Column("conflicts", align="right", gives_way=2),
    Column("ticks", align="right", gives_way=2),
)


@watchable
def cluster(
    ctx: typer.Context,
    node: Annotated[
        str | None,
        typer.Argument(metavar="[NODE]", help="One node, with the terms it led.", autocompletion=complete_node),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say who leads since when, or what a race costs, and how the nodes stand; with a NODE, open that one."""
    with open_cluster(ctx, read_only=True) as store:
        if node is not None:
            from sexton_tui.cli.listings.one_member import print_node

            print_node(store, node, output)
            return
        overview = store.reads.overview()
    rows = [_row(node) for node in overview.nodes]
    if output is not Output.TABLE:
        print_record(_record(overview, rows), output)
        return
    print(f"cluster {overview.cluster_id}  strategy {overview.strategy}  inputs {overview.inputs_id}")
    print(f"coordinator {overview.coordinator or 'not recorded yet'}")
    print_lines([*alarm_lines(overview), *leadership_lines(overview, with_nodes=False)], coloured=True)
    print()
    columns = (*_COLUMNS[:3], *_RACE_COLUMNS, *_COLUMNS[3:]) if is_race(overview) else _COLUMNS
    print_rows(rows, output, columns, empty="no node was heard of in the last 10 minutes; start `sexton scheduler`")


def _row(node: NodeView) -> dict[str, Any]:
    return {
        "node": node.name,
        "role": node.role,
        "confirmation": node.confirmation,
        "seen": node.age,
        "coordinator": node.coordinator_status,
        "jobs_warm": node.jobs_warm,
        "behind": node.behind,
        "clock_offset": node.clock_offset,
        "claims_upto": node.claims_upto,
        "attempts": node.raced.attempts,
        "conflicts": node.raced.conflicts,
        "ticks": node.raced.ticks,
        "inputs_id": node.inputs_id,
        "version": node.version,
        "address": node.address,
        "pid": node.pid,
        "started_at": node.started_at,
    }


def _record(overview: Overview, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "cluster_id": overview.cluster_id,
        "term": overview.term,
        "leader": overview.leader,
        "leader_since": overview.leader_since,
        "elected_by": overview.elected_by,
        "confirmation": overview.confirmation,
        "heartbeat_age": overview.heartbeat_age,
        "claims_upto": overview.claims_upto,
        "strategy": overview.strategy,
        "race": race_record(overview),
        "coordinator": overview.coordinator,
        "leadership": leadership_record(overview),
        "is_halted": overview.is_halted,
        "halt": overview.halt,
        "forced_to": overview.forced_to,
        "inputs_id": overview.inputs_id,
        "nodes": rows,
    }
