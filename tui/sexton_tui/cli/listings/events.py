"""``sexton events``: the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from sexton.store.protocol import Store
from sexton.views import EventView
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import PAGE, JobOption, LimitOption
from sexton_tui.cli.output import Column, Output, OutputOption, cell_text, print_rows
from sexton_tui.cli.watching import watchable

_COLUMNS = (
    Column("at", in_seconds=True),
    Column("actor", folds=True),
    Column("action", folds=True),
    Column("job", folds=True),
    Column("detail", is_note=True),
)


@watchable
def events(
    ctx: typer.Context,
    job: JobOption = "",
    action: Annotated[str, typer.Option("--action", metavar="NAME", help="Only this, or what begins so.")] = "",
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List who did what, newest first."""
    with open_cluster(ctx, read_only=True) as store:
        if job:
            store.reads.job(job, 0)  # a wrong name is an error, not an empty list
        rows = list(_rows(store, job, action, limit))
    if output is Output.TABLE:
        print_rows([{**_fields(event), "detail": _detail(event)} for event in rows], output, _COLUMNS, empty="no event")
        return
    print_rows(rows, output, _COLUMNS, empty="no event")


def _fields(event: EventView) -> dict[str, Any]:
    return {"at": event.at, "actor": event.actor, "action": event.action, "job": event.job}


def _detail(event: EventView) -> str:
    """`key value, key value`, without the job's name once more."""
    told = {key: value for key, value in event.detail.items() if key != "job" or value != event.job}
    return ", ".join(f"{key} {cell_text(value)}" for key, value in told.items())


def _rows(store: Store, job: str, action: str, limit: int) -> Iterator[EventView]:
    before, found = None, 0
    while found < limit:
        page = store.reads.events_page(before, min(PAGE, limit - found), job, action)
        yield from page
        found += len(page)
        if not page:
            return
        before = page[-1].event_id
