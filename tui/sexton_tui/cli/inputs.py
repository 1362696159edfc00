"""``sexton inputs``: the versions that ticks depend on, and taking others for the cluster's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import Refused
from sexton.inputs import Inputs, are_same, own_inputs
from sexton_tui.actor import actor
from sexton_tui.cli.asking import ask
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import (
    Column,
    Output,
    OutputOption,
    counted,
    instant_text,
    print_record,
    print_rows,
)
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.cluster_views import Overview
    from sexton.inputs_change import TicksChange
    from sexton.store.protocol import Store
    from sexton.store.protocol.restores import InputsJob, InputsStand

inputs = typer.Typer(
    help="Versions of zone data, tick engine and public holidays; without a command, show them.",
    add_completion=False,
    rich_markup_mode=None,
)
_FRESH = timedelta(seconds=15)  # a node that reported within this lives
_NODE_COLUMNS = ("node", "role", Column("inputs_id", "inputs"), "may_lead")
_JOB_COLUMNS = (
    Column("job", folds=True),
    Column("vanishes", "first to vanish", gives_way=1),
    Column("appears", "first to appear", gives_way=2),
    Column("ahead", "claims ahead", align="right", gives_way=3, usual="0"),
    Column("why", is_note=True),
)


@inputs.callback(invoke_without_command=True)
@watchable
def inputs_group(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """The cluster's inputs, this machine's, and each node's; exit code 1 if this machine's are others."""
    return 0 if ctx.invoked_subcommand is not None else _show(ctx, output)


@inputs.command("show")
@watchable
def show(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """The cluster's inputs, this machine's, and each node's; exit code 1 if this machine's are others."""
    return _show(ctx, output)


@inputs.command("accept")
def accept(
    ctx: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the jobs whose ticks differ, and do nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make this machine's inputs the cluster's, after showing the jobs whose ticks differ within a year.

    Those jobs are edited: claims written ahead are withdrawn, and a new revision counts from now on. Nodes with other
    inputs then neither lead nor race, until they have these too.
    """
    here = own_inputs()
    with open_cluster(ctx) as store:
        stand = store.restores.inputs()
        if not stand.inputs_id:
            raise Refused("no node has started in this cluster yet", hint="the first one brings its inputs")
        if are_same(stand.inputs_id, here.inputs_id):
            raise Refused(
                f"the cluster's inputs are {here.inputs_id} already", hint="`sexton inputs` shows each node's"
            )
        changed = _changed(store, stand, here)
        able = [node for node in _living(store.reads.overview()) if are_same(node["inputs_id"], here.inputs_id)]
        rows = [_job_row(one) for one in changed]
        if output is Output.TABLE:
            _tell(stand, here, rows, able)
        if not (dry_run or yes):
            ask(f"Make {here.inputs_id} the inputs of this cluster?")
        if not dry_run:
            _keep_zone_data(store, here)
            store.restores.accept_inputs(stand, here, {one.job.job_id for one in changed}, actor())
    if output is not Output.TABLE:
        record = {"from": stand.inputs_id, "to": here.inputs_id, "accepted": not dry_run, "jobs": rows}
        print_record({**record, "nodes_with_them": [node["node"] for node in able]}, output)
    elif dry_run:
        print("nothing was changed")
    else:
        print(f"the cluster's inputs are {here.inputs_id} now; {counted(len(rows), 'job')} edited")


@dataclass(frozen=True, slots=True)
class _Changed:
    job: InputsJob
    change: TicksChange
    ahead: int


def _changed(store: Store, stand: InputsStand, here: Inputs) -> list[_Changed]:
    """The jobs whose ticks differ between the cluster's inputs and these, from their revision's begin to a year on."""
    from sexton.inputs_change import LOOK_AHEAD, changed_ticks, inputs_of
    from sexton.zone_files import add_zone_data

    before = inputs_of(stand.inputs_id)
    packed = store.restores.zone_data(before.zone_data)
    if packed is not None:
        add_zone_data(before.zone_data, packed)
    until = stand.now + LOOK_AHEAD
    found = []
    for job in stand.jobs:
        change = changed_ticks(job.schedule, before, here, job.since, until, has_zone_data=packed is not None)
        if change is not None:
            found.append((job, change))
    standings = store.reads.standings([job.job_id for job, _ in found], runs=1) if found else None
    return [
        _Changed(job, change, standings.of(job.job_id).ahead if standings is not None else 0) for job, change in found
    ]


def _keep_zone_data(store: Store, here: Inputs) -> None:
    from sexton.zone_files import packed_zone_data

    if store.restores.zone_data(here.zone_data) is None:
        store.restores.keep_zone_data(here.zone_data, packed_zone_data())


def _tell(stand: InputsStand, here: Inputs, rows: list[dict[str, Any]], able: list[dict[str, Any]]) -> None:
    print(f"{stand.inputs_id} is the cluster's, {here.inputs_id} this machine's (zone data / tick engine / holidays)")
    if rows:
        print(f"the ticks of {counted(len(rows), 'job')} of {len(stand.jobs)} differ:")
        firsts = [{**row, "vanishes": _first(row["vanish"]), "appears": _first(row["appear"])} for row in rows]
        print_rows(firsts, Output.TABLE, _JOB_COLUMNS)
    else:
        print(f"the ticks of all {counted(len(stand.jobs), 'job')} are the same with both for a year to come")
    if not able:
        print(f"no living node has {here.inputs_id}: until one is started that has, nothing is decided")


def _show(ctx: typer.Context, output: Output) -> int:
    here = own_inputs()
    with open_cluster(ctx, read_only=True) as store:
        stand = store.restores.inputs()
        nodes = _living(store.reads.overview())
    same = not stand.inputs_id or are_same(stand.inputs_id, here.inputs_id)
    accepted = {"accepted_at": stand.accepted_at, "accepted_by": stand.accepted_by}
    if output is not Output.TABLE:
        record = {"cluster": stand.inputs_id or None, **accepted, "here": here, "here_id": here.inputs_id}
        print_record({**record, "same": same, "nodes": nodes}, output)
        return 0 if same else 1
    print(
        f"cluster       {stand.inputs_id or '(no node has started yet)'}{_since(stand.accepted_at, stand.accepted_by)}"
    )
    print(f"this machine  {here.inputs_id}  (zone data / tick engine / holidays)")
    if nodes:
        print()
        print_rows(nodes, Output.TABLE, _NODE_COLUMNS)
    if not same:
        print("`sexton inputs accept` here makes this machine's the cluster's; it shows first which ticks differ")
    return 0 if same else 1


def _since(at: datetime | None, by: str | None) -> str:
    return "" if at is None else f"  since {instant_text(at.replace(microsecond=0))}, by {by}"


def _living(overview: Overview) -> list[dict[str, Any]]:
    return [
        {
            "node": node.name,
            "role": node.role,
            "inputs_id": node.inputs_id,
            "may_lead": not overview.inputs_id or are_same(overview.inputs_id, node.inputs_id),
        }
        for node in overview.nodes
        if node.age <= _FRESH
    ]


def _first(ticks: list[datetime]) -> datetime | None:
    return ticks[0] if ticks else None


def _job_row(one: _Changed) -> dict[str, Any]:
    return {
        "job": one.job.name,
        "vanish": list(one.change.vanish),
        "appear": list(one.change.appear),
        "ahead": one.ahead,
        "why": one.change.why,
    }
