"""``sexton alerts``: what is wrong, what was, and who was told."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from sexton.alerts import AlertView
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import LimitOption
from sexton_tui.cli.output import Column, Output, OutputOption, print_rows
from sexton_tui.cli.watching import watchable

_COLUMNS = (
    "kind",
    Column("job", folds=True),
    Column("since", in_seconds=True),
    Column("recovered_at", "recovered", in_seconds=True, gives_way=1),
    "told",
    Column("sentence", is_note=True),
)


@watchable
def alerts(
    ctx: typer.Context,
    only_open: Annotated[bool, typer.Option("--open", help="Only those that have not recovered.")] = False,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> int:
    """List open alerts, the oldest first, then those that recovered, the newest first.

    One row for each kind and job: the newest time that it was so. Exit code 1 if one is open.
    """
    with open_cluster(ctx, read_only=True) as store:
        found = store.alerts.listed(limit, only_open=only_open)
    print_rows([_row(alert) for alert in found], output, _COLUMNS, empty="no alert")
    return 1 if any(alert.is_open for alert in found) else 0


def _row(alert: AlertView) -> dict[str, Any]:
    return {"state": "open" if alert.is_open else "recovered", **dataclasses.asdict(alert), "told": _told(alert)}


def _told(alert: AlertView) -> str:
    """Whether the newest there is to tell of it was told."""
    told_at = alert.told_at if alert.is_open else alert.recovery_told_at
    if told_at is not None:
        return "yes"
    return f"no: {alert.error}" if alert.error else "not yet"
