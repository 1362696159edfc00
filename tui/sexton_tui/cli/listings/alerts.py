"""``sexton alerts``: what is wrong, what was, who was told, and whether anybody can be."""

from __future__ import annotations

import dataclasses
import socket
from typing import Annotated, Any

import typer

from sexton.alerts import AlertView, Condition, in_crowds, trial_message
from sexton.errors import Refused
from sexton.store.protocol import Store
from sexton.store.protocol.alerts import Turn
from sexton_tui.cli.invocation import invocation_of, open_cluster
from sexton_tui.cli.listings.options import LimitOption
from sexton_tui.cli.output import Column, Output, OutputOption, print_record, print_rows
from sexton_tui.cli.watching import watchable

alerts = typer.Typer(
    help="What is wrong, what was, and who was told; without a command, list it.",
    add_completion=False,
    rich_markup_mode=None,
)
_COLUMNS = (
    "kind",
    Column("job", folds=True),
    Column("since", in_seconds=True),
    Column("recovered_at", "recovered", in_seconds=True, gives_way=1),
    "told",
    Column("sentence", is_note=True),
)


@alerts.callback(invoke_without_command=True)
@watchable
def alerts_group(
    ctx: typer.Context,
    only_open: Annotated[bool, typer.Option("--open", help="Only those that have not recovered.")] = False,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> int:
    """List open alerts, the oldest first, then those that recovered, the newest first.

    One row for each kind and job: the newest time that it was so. Where one alert tells of many jobs, these follow it.
    Exit code 1 if one is open.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    with open_cluster(ctx, read_only=True) as store:
        found = store.alerts.listed(limit, only_open=only_open)
        hidden = _in_crowds(store, limit) if any(one.is_open and one.job is None for one in found) else ()
    is_open = [one.is_open for one in found]
    rows = [_row(one, _told(one)) for one in found]
    rows[sum(is_open) : sum(is_open)] = [_row(_view(one), "as one of many") for one in hidden]
    print_rows(rows, output, _COLUMNS, empty="no alert")
    return 1 if any(is_open) else 0


@alerts.command("test")
def try_telling(ctx: typer.Context, output: OutputOption = Output.TABLE) -> int:
    """Send a test message by this machine's settings, and say what became of it; exit code 1 if it was not taken.

    The settings are those that a node started here would have: `sexton.toml`, `SEXTON_ALERT`, `SEXTON_ALERT_COMMAND`.
    """
    from sexton_scheduler.alerting import deliver_by

    settings = invocation_of(ctx).settings().alerts
    if not settings.tells:
        raise Refused("neither alert nor alert_command is set here", hint="set one in sexton.toml, or SEXTON_ALERT")
    with open_cluster(ctx, read_only=True) as store:
        message = trial_message(store.terms.cluster().cluster_id, socket.gethostname(), store.now())
    way = "alert" if settings.alert is not None else "alert_command"
    error = deliver_by(settings)(message)
    print_record({"way": way, "told": "yes" if error is None else f"no: {error}"}, output)
    return 0 if error is None else 1


def _in_crowds(store: Store, limit: int) -> tuple[Condition, ...]:
    return in_crowds(store.alerts.signs(Turn(store.now(), None)), limit)


def _view(one: Condition) -> AlertView:
    return AlertView(one.kind.value, one.job, one.tick, one.sentence, one.since, None, None, None, 0, None, "")


def _row(alert: AlertView, told: str) -> dict[str, Any]:
    return {"state": "open" if alert.is_open else "recovered", **dataclasses.asdict(alert), "told": told}


def _told(alert: AlertView) -> str:
    """Whether the newest there is to tell of it was told."""
    told_at = alert.told_at if alert.is_open else alert.recovery_told_at
    if told_at is not None:
        return "yes"
    return f"no: {alert.error}" if alert.error else "not yet"
