"""``sexton workers``: who pulls."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from sexton.cluster_views import WorkerView
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Column, Output, OutputOption, print_rows
from sexton_tui.console.core.tables import worker_state

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


def workers(
    ctx: typer.Context,
    stopped: Annotated[bool, typer.Option("--stopped", help="Those that stopped cleanly, too.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the workers heard of in the last 10 minutes: they serve, drain, or are silent (perhaps dead)."""
    with open_cluster(ctx, read_only=True) as store:
        rows = [_worker_row(worker) for worker in store.reads.workers(stopped=stopped)]
    print_rows(rows, output, _WORKER_COLUMNS, empty="no worker; start `sexton worker`")


def _worker_row(worker: WorkerView) -> dict[str, Any]:
    row = {field.name: getattr(worker, field.name) for field in dataclasses.fields(worker)}
    return {**row, "state": worker_state(worker)}
