"""One worker, queue or scheduler node opened: what the one runs, what waits in the other, the terms the third led."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sexton.errors import NotFound
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import Column, Output, print_record, print_rows
from sexton_tui.console.core.members import node_lines, queue_lines, worker_lines
from sexton_tui.console.core.tables import worker_state

if TYPE_CHECKING:
    from datetime import datetime

    from sexton.store.protocol import Store
    from sexton.views import ClaimView, TakeoverView

_TERMS = 200  # among which those that a node led are looked for

_HELD_COLUMNS = (
    *(Column("job", folds=True), Column("scheduled_at", "tick"), Column("runs_for", "runs for")),
    *(Column("attempt", "try", align="right", gives_way=4, usual="1"), Column("queue", gives_way=3, usual="default")),
    *(Column("lease_expires_at", "lease ends", gives_way=1, in_seconds=True), Column("token", gives_way=2)),
    Column("revision", align="right", gives_way=5),
)
_WAITING_COLUMNS = (
    *(Column("job", folds=True), Column("scheduled_at", "tick"), Column("waits_for", "waits for")),
    *(Column("priority", align="right", gives_way=2), Column("origin", gives_way=3, usual="schedule")),
    *(Column("attempt", "tries", align="right", gives_way=4, usual="0"), Column("start_by", "start by", gives_way=1)),
)
_LED_COLUMNS = (
    *(Column("term", align="right"), Column("taken_at", in_seconds=True), Column("until", in_seconds=True)),
    *(Column("ended_by", "ended by"), Column("gap", "gap before it")),
)


def print_worker(store: Store, name: str, output: Output) -> None:
    """Print the newest process of that name and what it runs. Raises ``NotFound``."""
    found, now = store.reads.opened_worker(name), store.now()
    claims = [_claim_row(claim, now) for claim in found.claims]
    if output is not Output.TABLE:
        worker, *before = ({**_fields(one), "state": worker_state(one)} for one in found.workers)
        print_record({**worker, "before": before, "claims": claims}, output)
        return
    print_lines(worker_lines(found, now, with_keys=False), coloured=True)
    if claims:
        print_rows(claims, output, _HELD_COLUMNS)


def print_queue(store: Store, name: str, output: Output) -> None:
    """Print a queue by priority, who serves it, and what waits longest in it. Raises ``NotFound``."""
    found, now = store.reads.opened_queue(name), store.now()
    waiting = [_claim_row(claim, now) for claim in found.waiting]
    if output is not Output.TABLE:
        rule = {"limit": found.queue.rule.slots, "rate": found.queue.rule.rate}
        depths = {"depths": found.depths, "served_by": found.workers, "waiting": waiting}
        print_record({**_fields(found.queue), **rule, **depths}, output)
        return
    print_lines(queue_lines(found, now), coloured=True)
    if waiting:
        print_rows(waiting, output, _WAITING_COLUMNS)


def print_node(store: Store, name: str, output: Output) -> None:
    """Print what a node says of itself, and the terms it led of the newest ones. Raises ``NotFound``."""
    overview, takeovers = store.reads.overview(), store.reads.takeovers(_TERMS)
    node = next((one for one in overview.nodes if one.name == name), None)
    if node is None:
        hint = "`sexton cluster` lists those that were"
        raise NotFound(f"node {name!r} was not heard of in the last 10 minutes", hint=hint)
    led = [_led_row(takeover) for takeover in takeovers if takeover.node == name]
    if output is not Output.TABLE:
        may_lead = node.inputs_id == overview.inputs_id
        print_record({**_fields(node), "may_lead": may_lead, "led": led, "of_newest_terms": len(takeovers)}, output)
        return
    print_lines(node_lines(name, overview, takeovers, with_keys=False), coloured=True)
    if led:
        print_rows(led, output, _LED_COLUMNS)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _claim_row(claim: ClaimView, now: datetime) -> dict[str, Any]:
    """A claim that runs, or waits to."""
    since = claim.started_at or claim.granted_at
    runs_for = None if since is None else _seconds_since(since, now)
    return {**_fields(claim), "runs_for": runs_for, "waits_for": _seconds_since(claim.available_at, now)}


def _seconds_since(at: datetime, now: datetime) -> timedelta:
    return timedelta(seconds=max(round((now - at).total_seconds()), 0))


def _led_row(takeover: TakeoverView) -> dict[str, Any]:
    return {
        "term": takeover.term,
        "taken_at": takeover.taken_at,
        "until": takeover.until,
        "ended_by": takeover.ended_by,
        "gap": takeover.gap,
    }
