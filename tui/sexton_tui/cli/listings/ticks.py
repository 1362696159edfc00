"""``sexton ticks JOB``: what was decided about a job's ticks, claims and skip records interleaved, and what comes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.claims import State
from sexton.holds import became_of
from sexton_tui.cli.completing import words_of
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.listings.options import PAGE, LimitOption, states_of
from sexton_tui.cli.output import Column, Output, OutputOption, instant_text, print_rows, printable
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.store.protocol import Store
    from sexton.views import ClaimView, EarlierJob, SkipView, TickPage

_COLUMNS = (
    *("tick", "state", Column("origin", gives_way=3, usual="schedule")),
    *(
        Column("count", align="right", gives_way=4, usual="1"),
        Column("attempts", align="right", gives_way=5, usual="1"),
    ),
    *(Column("lateness", gives_way=1), Column("worker", gives_way=2, folds=True), Column("reason", is_note=True)),
)


_STATES = tuple(state.word for state in State)


@watchable
def ticks(
    ctx: typer.Context,
    job: JobArgument,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only in this state; may be repeated.", autocompletion=words_of(_STATES)),
    ] = None,
    before: Annotated[str | None, typer.Option("--before", metavar="T", help="Only ticks before this.")] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="T", help="Only ticks after this.")] = None,
    upcoming: Annotated[int, typer.Option("--upcoming", min=0, max=1_000, help="So many to come as well.")] = 5,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List a job's ticks, newest first: the nearest to come (`claimed`: written ahead), then what was decided.

    What was decided is claims, and skip records with their reasons; --limit counts these. `sexton explain JOB TICK`
    tells all about one of them, and about an instant that is not in the list.
    """
    states = states_of(state)
    start = None if before is None else parse_instant(before, "--before")
    end = None if after is None else parse_instant(after, "--after")
    with open_cluster(ctx, read_only=True) as store:
        rows = _rows(store, job, states, start, upcoming, limit)
        if end is not None:
            rows = takewhile(lambda row: row["tick"] > end, rows)
        empty = f"no tick of {job} has been decided"
        if states:
            empty = f"no tick of {job} is {' or '.join(sorted(state.word for state in states))}"
        print_rows(list(rows), output, _COLUMNS, empty=empty)
    if output is Output.TABLE and sys.stdout.isatty():
        print(f"\n`sexton explain {printable(job)} TICK` tells why one ran, or why it did not", file=sys.stderr)


def _rows(
    store: Store, job: str, states: frozenset[State], before: datetime | None, upcoming: int, limit: int
) -> Iterator[dict[str, Any]]:
    found, is_first = 0, True
    while found < limit:
        page = store.reads.ticks_page(job, before, PAGE if states else min(PAGE, limit - found), upcoming)
        if is_first and before is None:
            yield from _to_come(page, states, upcoming)
        is_first = False
        for row in _decided(page):
            if states and row["state"] not in {state.word for state in states}:
                continue
            yield row
            found += 1
            if found == limit:
                return
        before = page.older
        if before is None:
            if page.earlier is not None:
                print(_earlier_note(page.earlier), file=sys.stderr)
            return


def _earlier_note(earlier: EarlierJob) -> str:
    retired = instant_text(earlier.retired_at.replace(microsecond=0))
    return f"sexton: an earlier job of this name was retired at {retired}: `sexton ticks {printable(earlier.address)}`"


def _to_come(page: TickPage, states: frozenset[State], count: int) -> list[dict[str, Any]]:
    """The nearest ticks, newest first: those claimed ahead, then those nobody has decided about."""
    claimed = [{**_claim_row(claim), "kind": "ahead", "state": "claimed"} for claim in page.ahead]
    if states:
        return claimed[:count][::-1] if State.READY in states else []
    bare = [{"kind": "upcoming", "tick": tick, "state": "to come", **_NOTHING} for tick in page.upcoming]
    return [*claimed, *bare][:count][::-1]


_NOTHING: dict[str, Any] = {
    "origin": None,
    "count": 1,
    "attempts": None,
    "lateness": None,
    "worker": None,
    "reason": "",
}


def _decided(page: TickPage) -> list[dict[str, Any]]:
    ran = [claim.scheduled_at for claim in page.claims]
    rows = [_claim_row(claim) for claim in page.claims]
    rows += [_skip_row(skip) for skip in page.skips if not _is_told_by_claims(skip, ran)]
    return sorted(rows, key=lambda row: row["tick"], reverse=True)


def _is_told_by_claims(skip: SkipView, ran: Sequence[datetime]) -> bool:
    """All ticks of a record that was resolved have claims: with these it is one decision, which they tell."""
    return skip.resolved_at is not None and sum(skip.after < tick <= skip.upto for tick in ran) >= skip.count


def _claim_row(claim: ClaimView) -> dict[str, Any]:
    late = None if claim.started_at is None else claim.started_at - claim.scheduled_at - claim.jitter
    return {
        "kind": "claim",
        "tick": claim.scheduled_at,
        "state": claim.state.word,
        "origin": claim.origin,
        "count": 1,
        "attempts": claim.attempt,
        "lateness": late,
        "worker": claim.worker or None,
        "reason": claim.reason,
        "available_at": claim.available_at,
        "started_at": claim.started_at,
        "finished_at": claim.finished_at,
        "written_at": claim.written_at,
        "term": claim.term,
        "revision": claim.revision,
    }


def _skip_row(skip: SkipView) -> dict[str, Any]:
    return {
        "kind": "skip",
        "tick": skip.upto,
        "after": skip.after,
        "state": became_of(skip.reason.value, skip.detail),
        "origin": None,
        "count": skip.count,
        "attempts": None,
        "lateness": None,
        "worker": None,
        "reason": skip.detail,
        "decided_at": skip.decided_at,
        "resolved_at": skip.resolved_at,
        "term": skip.term,
        "revision": skip.revision,
    }
