"""``sexton events``: the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from sexton.store.protocol import Store
from sexton.views import EventView
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import PAGE, JobOption, LimitOption
from sexton_tui.cli.output import Output, OutputOption, print_rows


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
    print_rows(rows, output, ("at", "actor", "action", "job", "detail"), empty="no event")


def _rows(store: Store, job: str, action: str, limit: int) -> Iterator[EventView]:
    before, found = None, 0
    while found < limit:
        page = store.reads.events_page(before, min(PAGE, limit - found), job, action)
        yield from page
        found += len(page)
        if not page:
            return
        before = page[-1].event_id
