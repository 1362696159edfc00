"""``sexton jobs``: the jobs with their schedules, next ticks and newest runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.claims import State
from sexton.views import JobFilter, JobOrder, JobView
from sexton_tui.cli.completing import complete_job, words_of
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.options import PAGE, TO_RETRY, OwnerOption, QueueOption, TagOption
from sexton_tui.cli.listings.printing import is_ascii_output
from sexton_tui.cli.output import Column, Output, OutputOption, print_rows
from sexton_tui.cli.watching import screen_rows, watchable
from sexton_tui.console.core.words import strip

if TYPE_CHECKING:
    from sexton.store.protocol import Store

_COLUMNS = (
    *(Column("job", folds=True), "state", "next", Column("last_run", "last run", gives_way=3, in_seconds=True)),
    *(Column("outcome", gives_way=2), Column("lateness", "late", gives_way=8), Column("took", gives_way=9)),
    *(
        Column("signs", "newest runs", gives_way=10),
        Column("schedule", gives_way=1, folds=True),
        Column("timezone", gives_way=4, usual="UTC"),
    ),
    *(Column("queue", gives_way=5, usual="default"), Column("owner", gives_way=6), Column("tags", gives_way=7)),
)
_TABLE_ROWS = 1_000
_STATES = ("active", "paused", "quarantined")


class Sort(StrEnum):
    """What the list goes by."""

    NAME = "name"
    STATE = "state"
    FAILURE = "failure"


_ORDERS = {Sort.STATE: JobOrder.STATE, Sort.FAILURE: JobOrder.FAILED}


@watchable
def jobs(
    ctx: typer.Context,
    job: Annotated[
        str | None, typer.Argument(metavar="JOB", help="One job, opened.", autocompletion=complete_job)
    ] = None,
    find: Annotated[str, typer.Option("--find", metavar="TEXT", help="Only with this in the name.")] = "",
    state: Annotated[
        str, typer.Option("--state", help="active, paused, or quarantined.", autocompletion=words_of(_STATES))
    ] = "",
    queue: QueueOption = "",
    owner: OwnerOption = "",
    tag: TagOption = "",
    sort: Annotated[Sort, typer.Option("--sort", help="name, state, or failure: the newest first.")] = Sort.NAME,
    retired: Annotated[bool, typer.Option("--retired", help="Retired jobs too.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            max=10_000_000,
            help="At most so many; unless given, 1000 in a table and all in json and jsonl.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the jobs by name; with a JOB, open that one."""
    if state and state not in _STATES:
        raise typer.BadParameter(f"--state: {state!r} is no state of a job; they are {', '.join(_STATES)}")
    with open_cluster(ctx, read_only=True) as store:
        if job is not None:
            from sexton_tui.cli.listings.one_job import print_job

            print_job(store, job, output)
            return
        which = JobFilter(text=find, state=state, queue=queue, owner=owner, tag=tag, include_retired=retired)
        if output is not Output.TABLE:
            print_rows(map(_row, _jobs(store, which, sort, limit)), output, _COLUMNS)
            return
        listed = list(_jobs(store, which, sort, limit or screen_rows(ctx) or _TABLE_ROWS))
        rows = [{**_row(one), "signs": _signs(one)} for one in listed]
        print_rows(rows, output, _COLUMNS, empty="no job; `sexton apply PATH` brings some")
        if (total := store.reads.jobs_page(which, 0, 1).total) > len(listed):
            print(f"showing {len(listed)} of {total}; --limit {total} shows all", file=sys.stderr)


def _jobs(store: Store, which: JobFilter, sort: Sort, limit: int | None) -> Iterator[JobView]:
    """Every job that matches, page by page, up to `limit`."""
    for offset in count(0, PAGE):
        size = PAGE if limit is None else min(PAGE, limit - offset)
        if sort is Sort.NAME:
            page = store.reads.jobs_page(which, offset, size)
        else:
            page = store.reads.job_list(which, _ORDERS[sort], offset, size)
        yield from page.jobs
        reached = offset + len(page.jobs)
        if not page.jobs or reached >= page.total or reached == limit:
            return


def _signs(job: JobView) -> str:
    return strip(job.strip, len(job.strip), ascii_only=is_ascii_output())


def _row(job: JobView) -> dict[str, Any]:
    last, ran = job.last_run, len(job.strip)
    return {
        "job": job.name,
        "state": job.state,
        "detail": job.detail,
        "next": job.next_ticks[0] if job.next_ticks else None,
        "last_run": None if last is None else last.finished_at,
        "outcome": None if last is None else TO_RETRY if last.outcome is State.READY else last.outcome,
        "lateness": None if last is None else last.lateness,
        "took": None if last is None else last.duration,
        "newest_outcomes": job.strip,
        "success_rate": job.strip.count(State.SUCCEEDED) / ran if ran else None,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "queue": job.queue,
        "owner": job.owner,
        "tags": job.tags,
        "description": job.description,
        "revision": job.revision,
    }
