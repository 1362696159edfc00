"""What a worker, a queue and a scheduler node open into: lines and rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sexton.cluster_views import NodeView, Overview, QueueView, WorkerView
from sexton.member_views import OpenedQueue, OpenedWorker, PriorityDepth
from sexton.views import ClaimView, TakeoverView
from sexton_tui.console.core.lines import BAD, DIM, PLAIN, STRONG, WARN, Line, Part, Row, line, row
from sexton_tui.console.core.overview import gap_words
from sexton_tui.console.core.standing import NODE_SILENCE
from sexton_tui.console.core.subjects import OfNode, OfRun, OfTakeover, OfTick
from sexton_tui.console.core.tables import worker_state
from sexton_tui.console.core.words import count, duration, full_instant, instant, plural, since_words

HELD_COLUMNS = ("job", "tick", "runs for", "try", "queue", "lease ends", "revision")
WAITING_COLUMNS = ("job", "tick", "waits for", "priority", "origin", "try", "start by")
NODE_COLUMNS = ("node", "role", "seen", "behind", "clock", "claims to", "inputs", "ZooKeeper")
LED_COLUMNS = ("term", "from", "until", "ended by", "gap before it")
_LABEL = 11


def _fact(label: str, *parts: Part) -> Line:
    return line((f"{label:<{_LABEL}}", DIM), *parts)


# --- workers ----------------------------------------------------------------------------------------


def worker_lines(found: OpenedWorker, now: datetime, *, with_keys: bool = True) -> list[Line]:
    """Who it is, what it serves, and whether it lives, drains or has ended. ``with_keys``: and the console's keys."""
    worker = found.workers[0]
    state = worker_state(worker)
    lines = [
        line((worker.name, STRONG), "  ", (state, BAD if state == "silent" else WARN if state == "drains" else PLAIN)),
        _fact("is", _state_words(worker, now, with_keys=with_keys)),
        _fact("slots", f"{worker.busy} of {worker.slots} busy"),
        _fact("queues", ", ".join(worker.queues) or "-"),
        _fact("process", f"{worker.address} pid {worker.pid}, version {worker.version}, id {worker.worker_id}"),
        _fact("since", full_instant(worker.started_at, now)),
    ]
    if before := found.workers[1:]:
        lines.append(_fact("before", ", ".join(f"id {one.worker_id} {worker_state(one)}" for one in before[:5])))
    return [*lines, line(), line((f"Runs {plural(len(found.claims), 'claim')}", STRONG))]


def _state_words(worker: WorkerView, now: datetime, *, with_keys: bool) -> Part:
    match worker_state(worker):
        case "stopped" | "drained" as state:
            return f"{state} at {instant(worker.stopped_at, now)}"
        case "silent":
            return (f"silent for {duration(worker.age)}: what it runs is given to others when its leases end", BAD)
        case "drains":
            who = "as an operator asked" if worker.is_drain_requested else "as it was told to end"
            return (f"takes no more claims, {who}, and ends with its last run", WARN)
        case _:
            return f"serves, heard of {duration(worker.age)} ago{'; d drains it' if with_keys else ''}"


def held_row(claim: ClaimView, now: datetime) -> Row:
    """A claim that the worker runs."""
    since = claim.started_at or claim.granted_at
    expires = claim.lease_expires_at
    return row(
        f"{claim.job_id}/{claim.token}",
        claim.job,
        instant(claim.scheduled_at, now),
        ("not yet", DIM) if since is None else since_words(since, now),
        str(claim.attempt),
        claim.queue,
        (instant(expires, now), BAD if expires is not None and expires < now else PLAIN),
        str(claim.revision),
        about=None if claim.token is None else OfRun(claim.job, claim.scheduled_at, claim.token, goes_on=True),
    )


# --- queues -----------------------------------------------------------------------------------------


def queue_lines(found: OpenedQueue, now: datetime) -> list[Line]:
    """Its limits, depth by priority, and who serves it."""
    queue = found.queue
    limits = queue.rule.words()
    lines = [
        line((f"queue {queue.name}", STRONG)),
        _fact("limits", _limit_words(queue, limits)),
        _fact("runs", f"{count(queue.running)} now"),
        _fact("workers", *_worker_words(found)),
        *([_depth_line(depth, now) for depth in found.depths] or [_fact("depth", "nothing waits")]),
    ]
    told = "Waits longest" if found.waiting else "Nothing is due"
    return [*lines, line(), line((told, STRONG))]


def _limit_words(queue: QueueView, limits: dict[str, str]) -> Part:
    if not queue.rule:
        return ("none: as many as workers take", DIM)
    slots = f"{limits['slots']} at once" if queue.rule.slots is not None else "any number at once"
    return f"{slots}, {limits['rate'] if queue.rule.rate is not None else 'at any rate'}"


def _worker_words(found: OpenedQueue) -> list[Part]:
    if not found.workers:
        return [("none: start one with `sexton worker --queues`", BAD)]
    shown = [f"{one.name} {one.busy}/{one.slots}" for one in found.workers[:8]]
    more = f" and {len(found.workers) - 8} more" if len(found.workers) > 8 else ""
    return [", ".join(shown) + more]


def _depth_line(depth: PriorityDepth, now: datetime) -> Line:
    label = f"priority {depth.priority}"
    oldest = ""
    if depth.due and depth.oldest is not None:
        oldest = f", the oldest for {since_words(depth.oldest, now)}"
    paced = " under the catch-up budget" if depth.is_paced else ""
    return line((f"{label:<{_LABEL}} ", DIM), f"{count(depth.due)} due{oldest}, {count(depth.ahead)} ahead{paced}")


def waiting_row(claim: ClaimView, now: datetime) -> Row:
    """A claim that is due in the queue."""
    return row(
        f"{claim.job_id}/{claim.scheduled_at.isoformat()}",
        claim.job,
        instant(claim.scheduled_at, now),
        (since_words(claim.available_at, now), WARN),
        str(claim.priority),
        claim.origin.word,
        str(claim.attempt + 1),
        instant(claim.start_by, now),
        about=OfTick(claim.job, claim.scheduled_at),
    )


# --- nodes ------------------------------------------------------------------------------------------


def node_row(node: NodeView, overview: Overview) -> Row:
    """A scheduler node."""
    now, may_lead = overview.now, node.inputs_id == overview.inputs_id
    return row(
        node.name,
        node.name,
        (node.role, STRONG if node.role == "leader" else PLAIN),
        (f"{duration(node.age)} ago", BAD if node.age > NODE_SILENCE else PLAIN),
        duration(node.behind),
        f"{node.clock_offset / timedelta(milliseconds=1):+.0f} ms",
        instant(node.claims_upto, now),
        node.inputs_id if may_lead else (f"{node.inputs_id}: may not lead", BAD),
        node.coordinator_status,
        about=OfNode(node.name),
    )


def node_lines(
    name: str, overview: Overview, takeovers: Sequence[TakeoverView], *, with_keys: bool = True
) -> list[Line]:
    """What a node says of itself; above the terms it led. ``with_keys``: and the console's keys."""
    node = next((one for one in overview.nodes if one.name == name), None)
    if node is None:
        return [line((f"node {name} was not heard of in the last 10 minutes: `sexton cluster`", WARN))]
    now = overview.now
    silent: Part = ("  silent", BAD) if node.age > NODE_SILENCE else ""
    may_lead = node.inputs_id == overview.inputs_id
    may: Part = ("no, for its inputs are not the cluster's", BAD)
    if may_lead:
        may = "yes; F forces it to" if with_keys else "yes"
    inputs: Part = node.inputs_id if may_lead else (f"{node.inputs_id}; the cluster's are {overview.inputs_id}", BAD)
    lines = [
        line((node.name, STRONG), f"  {node.role}", silent),
        _fact("heard of", f"{duration(node.age)} ago"),
        _fact("process", f"{node.address} pid {node.pid}, version {node.version}"),
        _fact("since", full_instant(node.started_at, now)),
        _fact("warm", f"{plural(node.jobs_warm, 'job')}, {duration(node.behind)} behind the ledger"),
        _fact("clock", f"{node.clock_offset / timedelta(milliseconds=1):+.0f} ms: the database's beside its own"),
        _fact("session", node.coordinator_status or "-"),
        _fact("inputs", inputs),
        _fact("may lead", may),
    ]
    if node.claims_upto is not None:
        lines.append(_fact("claims", f"written to {instant(node.claims_upto, now)}"))
    if node.clock_jump is not None:
        lines.append(_fact("doubts", (f"the database's clock, which jumped by {duration(node.clock_jump)}", BAD)))
    if node.coordinator_servers:
        seen = ", ".join(f"{server.address} {server.state}" for server in node.coordinator_servers)
        lines.append(_fact("it sees", seen))
    led = sum(one.node == name for one in takeovers)
    return [*lines, line(), line((f"Led {plural(led, 'term')} of the last {len(takeovers)}", STRONG))]


def led_row(takeover: TakeoverView, now: datetime) -> Row:
    """A term that the node led."""
    return row(
        str(takeover.term),
        str(takeover.term),
        instant(takeover.taken_at, now),
        "now" if takeover.until is None else instant(takeover.until, now),
        "-" if takeover.ended_by is None else takeover.ended_by.value,
        gap_words(takeover),
        about=OfTakeover(takeover.term),
    )
