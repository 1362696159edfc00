"""``sexton events``: the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import NotFound
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import LARGEST_ID, PAGE, JobOption, LimitOption
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import Column, Output, OutputOption, cell_text, print_record, print_rows
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.store.protocol import Store
    from sexton.views import EventView

_COLUMNS = (
    Column("event_id", "id", align="right", gives_way=1),
    Column("at", in_seconds=True),
    Column("actor", folds=True),
    Column("action", folds=True),
    Column("job", folds=True),
    Column("detail", is_note=True),
)


@watchable
def events(
    ctx: typer.Context,
    event_id: Annotated[
        int | None, typer.Argument(metavar="[ID]", min=1, max=LARGEST_ID, help="One event, with all its detail.")
    ] = None,
    job: JobOption = "",
    action: Annotated[str, typer.Option("--action", metavar="NAME", help="Only this, or what begins so.")] = "",
    before: Annotated[
        int | None, typer.Option("--before", metavar="ID", min=1, max=LARGEST_ID, help="Only older ones than this.")
    ] = None,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List who did what, newest first; with an ID, open that one."""
    with open_cluster(ctx, read_only=True) as store:
        if event_id is not None:
            _print_event(store, event_id, output)
            return
        if job:
            store.reads.job(job, 0)  # a wrong name is an error, not an empty list
        rows = list(_rows(store, job, action, before, limit))
    if output is Output.TABLE:
        print_rows([{**_fields(event), "detail": _detail(event)} for event in rows], output, _COLUMNS, empty="no event")
        return
    print_rows(rows, output, _COLUMNS, empty="no event")


def _fields(event: EventView) -> dict[str, Any]:
    return {"event_id": event.event_id, "at": event.at, "actor": event.actor, "action": event.action, "job": event.job}


def _detail(event: EventView) -> str:
    """`key value, key value`, without the job's name once more."""
    told = {key: value for key, value in event.detail.items() if key != "job" or value != event.job}
    return ", ".join(f"{key} {cell_text(value)}" for key, value in told.items())


def _print_event(store: Store, event_id: int, output: Output) -> None:
    page = store.reads.events_page(event_id + 1, 1)
    if not page or page[0].event_id != event_id:
        raise NotFound(f"there is no event {event_id}", hint="`sexton events` lists the newest with their ids")
    if output is not Output.TABLE:
        print_record(page[0], output)
        return
    from sexton_tui.console.core.records import event_lines

    print_lines(event_lines(page[0], store.now()), coloured=True)


def _rows(store: Store, job: str, action: str, before: int | None, limit: int) -> Iterator[EventView]:
    found = 0
    while found < limit:
        page = store.reads.events_page(before, min(PAGE, limit - found), job, action)
        yield from page
        found += len(page)
        if not page:
            return
        before = page[-1].event_id
