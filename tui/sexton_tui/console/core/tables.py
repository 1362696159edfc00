"""Rows of the tables: takeovers, proposals, jobs, runs, workers, queues, events, settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from sexton.claims import State
from sexton.cluster_views import QueueView, WorkerView
from sexton.hold_views import HoldView
from sexton.races import THE_RACE
from sexton.views import (
    ClaimView,
    DecisionTotals,
    DecisionView,
    EventView,
    GapView,
    JobView,
    RunView,
    TakeoverView,
)
from sexton_tui.console.core.lines import BAD, DIM, GOOD, PLAIN, STRONG, WARN, Part, Row, row
from sexton_tui.console.core.needs import WORKER_SILENCE
from sexton_tui.console.core.overview import gap_words
from sexton_tui.console.core.subjects import (
    OfDecisions,
    OfEvent,
    OfJob,
    OfProposal,
    OfQueue,
    OfRun,
    OfTakeover,
    OfWorker,
    Subject,
)
from sexton_tui.console.core.words import count, duration, instant, late_words, since_words, state_style, strip

TAKEOVER_COLUMNS = (
    *("term", "leader", "from", "until", "ended by", "gap"),
    *("missed", "fired", "merged", "skipped", "expired", "held"),
)
JOB_COLUMNS = ("job", "state", "next", "last run", "took", "late", "newest runs", "schedule", "queue", "owner")
RUN_COLUMNS = ("ended", "job", "tick", "outcome", "late", "took", "try", "worker", "error")
WORKER_COLUMNS = ("worker", "state", "slots", "queues", "seen", "since", "version", "address")
QUEUE_COLUMNS = ("queue", "due", "oldest", "ahead", "catch-up", "workers", "slots busy", "limit")
EVENT_COLUMNS = ("at", "who", "action", "job", "detail")
DECISION_COLUMNS = ("job", "missed", "reason", "ticks", "decided", "policy", "cause")
HOLD_COLUMNS = ("id", "job", "ticks", "first", "last", "waits", "lapses", "why")
STRIP_WIDTH = 20
RUNNING = "running "  # how the key of a run that goes on begins; a token follows
_WORKER_STYLES = {"stopped": DIM, "silent": BAD, "drains": WARN, "drained": DIM, "serves": GOOD}


def takeover_rows(takeovers: Sequence[TakeoverView], now: datetime) -> list[Row]:
    """Each term, and above it the gaps within it, newest first."""
    return [
        made
        for takeover in takeovers
        for made in (*(gap_row(gap, now) for gap in takeover.gaps), takeover_row(takeover, now))
    ]


def chosen_takeover(
    takeovers: Sequence[TakeoverView], selected: Subject | None
) -> tuple[TakeoverView, GapView | None] | None:
    """The takeover or the gap within it that is selected; where it is not there any more, that of the first row."""
    every = [(takeover, gap) for takeover in takeovers for gap in (*takeover.gaps, None)]
    of = (one for one in every if selected == _of(*one))
    return next(of, next(iter(every), None))


def _of(takeover: TakeoverView, gap: GapView | None) -> OfTakeover:
    return OfTakeover(takeover.term, None if gap is None else gap.gap_until)


def takeover_row(takeover: TakeoverView, now: datetime) -> Row:
    totals = takeover.totals
    return row(
        str(takeover.term),
        str(takeover.term),
        takeover.node,
        instant(takeover.taken_at, now),
        "now" if takeover.until is None else instant(takeover.until, now),
        "-" if takeover.ended_by is None else takeover.ended_by.value,
        (gap_words(takeover), WARN if totals.missed else PLAIN),
        *_counts(totals),
        about=OfTakeover(takeover.term),
    )


def gap_row(gap: GapView, now: datetime) -> Row:
    """A gap within a term: from when until when nobody wrote claims, and that the same leader ended it."""
    return row(
        f"{gap.term}/{gap.gap_until.isoformat()}",
        str(gap.term),
        gap.node,
        instant(gap.gap_from, now),
        instant(gap.gap_until, now),
        (gap_ended_by(gap), WARN),
        (duration(gap.gap), WARN),
        *_counts(gap.totals),
        about=OfTakeover(gap.term, gap.gap_until),
    )


def gap_ended_by(gap: GapView) -> str:
    """``same leader``, as a takeover's end is told."""
    return "same race" if gap.node == THE_RACE else "same leader"


def _counts(totals: DecisionTotals) -> tuple[Part, ...]:
    return (
        (count(totals.missed), STRONG if totals.missed else PLAIN),
        count(totals.fired),
        count(totals.merged),
        count(totals.skipped),
        (count(totals.expired), BAD if totals.expired else PLAIN),
        (count(totals.held), WARN if totals.held else PLAIN),
    )


def decision_row(decision: DecisionView, now: datetime) -> Row:
    counts = (decision.fired, decision.merged, decision.skipped, decision.expired, decision.held)
    parts = zip(counts, ("fired", "merged", "skipped", "expired", "held"), strict=True)
    decided = ", ".join(f"{count(number)} {word}" for number, word in parts if number)
    return row(
        f"{decision.job_id}/{decision.after.isoformat()}/{decision.cause.value}",
        decision.job,
        count(decision.missed),
        decision.reason,
        stretch(decision.after, decision.upto, now),
        decided or "none",
        decision.policy,
        (decision.cause.value, DIM),
        about=OfDecisions(decision.job, decision.term, decision.after, decision.upto),
    )


def stretch(after: datetime, upto: datetime, now: datetime) -> str:
    """Ticks in ``(after, upto]``."""
    return f"after {instant(after, now)} to {instant(upto, now)}"


def hold_row(hold: HoldView, now: datetime) -> Row:
    return row(
        str(hold.proposal_id),
        str(hold.proposal_id),
        hold.job,
        count(hold.count),
        instant(hold.first, now),
        instant(hold.last, now),
        (since_words(hold.made_at, now), WARN),
        instant(hold.lapses_at, now),
        hold.reason,
        about=OfProposal(hold.job, hold.proposal_id),
    )


def job_row(job: JobView, now: datetime, *, ascii_only: bool = False) -> Row:
    state: Part = (job.state, {"active": GOOD, "paused": WARN, "quarantined": BAD}.get(job.state, DIM))
    last = job.last_run
    if last is None:
        ran: tuple[Part, Part, Part] = (("never", DIM), "-", "-")
    else:
        word = "to retry" if last.outcome is State.READY else last.outcome.word
        ran = ((f"{instant(last.finished_at, now)} {word}", state_style(last.outcome)), "", "")
        ran = (ran[0], duration(last.duration), late_words(last.lateness))
    return row(
        job.name,
        job.name,
        state,
        instant(job.next_ticks[0], now) if job.next_ticks else "-",
        *ran,
        strip(job.strip, STRIP_WIDTH, ascii_only=ascii_only),
        f"{job.schedule} {job.timezone}",
        job.queue,
        job.owner,
        about=OfJob(job.name),
    )


def run_row(run: RunView, now: datetime) -> Row:
    word = "to retry" if run.outcome is State.READY else run.outcome.word
    return row(
        str(run.token),
        instant(run.finished_at, now),
        run.job,
        instant(run.scheduled_at, now),
        (word, state_style(run.outcome)),
        late_words(run.lateness),
        duration(run.duration),
        str(run.attempt),
        run.worker,
        (run.error, BAD),
        about=OfRun(run.job, run.scheduled_at, run.token),
    )


def running_row(claim: ClaimView, now: datetime) -> Row:
    """A claim that runs now, in the columns of runs."""
    since = claim.started_at or claim.granted_at
    late = None if since is None else since - claim.scheduled_at - claim.jitter
    return row(
        f"{RUNNING}{claim.token}",
        ("now", STRONG),
        claim.job,
        instant(claim.scheduled_at, now),
        ("running", STRONG),
        late_words(late),
        "-" if since is None else since_words(since, now),
        str(claim.attempt),
        claim.worker,
        "",
        about=None if claim.token is None else OfRun(claim.job, claim.scheduled_at, claim.token, goes_on=True),
    )


def worker_state(worker: WorkerView) -> str:
    """One word: stopped, drained (stopped as an operator asked), silent (it may be dead), drains, or serves."""
    if worker.stopped_at is not None:
        return "drained" if worker.is_drain_requested else "stopped"
    if worker.age > WORKER_SILENCE:
        return "silent"
    return "drains" if worker.is_draining else "serves"


def worker_row(worker: WorkerView, now: datetime) -> Row:
    state = worker_state(worker)
    return row(
        str(worker.worker_id),
        worker.name,
        (state, _WORKER_STYLES[state]),
        f"{worker.busy} of {worker.slots}",
        ", ".join(worker.queues),
        f"{duration(worker.age)} ago",
        instant(worker.started_at, now),
        worker.version,
        f"{worker.address} pid {worker.pid}",
        about=OfWorker(worker.name),
    )


def queue_row(queue: QueueView, now: datetime) -> Row:
    unserved = not queue.workers and bool(queue.due or queue.ahead)
    return row(
        queue.name,
        queue.name,
        count(queue.due),
        "-" if queue.oldest is None else f"{duration(now - queue.oldest)} ago",
        count(queue.ahead),
        count(queue.catch_up),
        ("none", BAD if unserved else DIM) if not queue.workers else str(queue.workers),
        f"{queue.busy} of {queue.slots}",
        _limit(queue),
        about=OfQueue(queue.name),
    )


def _limit(queue: QueueView) -> Part:
    """What its rule allows: of the slots, how many run."""
    slots, rate = queue.rule.slots, queue.rule.words()["rate"]
    parts = [] if slots is None else [f"{count(queue.running)} of {slots} run"]
    return ", ".join([*parts, rate] if queue.rule.rate is not None else parts) or ("-", DIM)


def event_row(event: EventView, now: datetime) -> Row:
    return row(
        str(event.event_id),
        instant(event.at, now),
        event.actor,
        event.action,
        event.job or "",
        detail_text(event),
        about=OfEvent(event.event_id, event.job),
    )


def detail_text(event: EventView) -> str:
    """The event's detail on one line, the reason first: ``why storage moves, revision 2``. The job has its column."""
    parts = []
    for key, value in sorted(event.detail.items(), key=lambda item: _DETAIL_ORDER.get(item[0], 1)):
        if key == "job" or value in (None, ""):
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"{key} {text}")
    return ", ".join(parts)


_DETAIL_ORDER = {"why": 0, "reason": 0, "effective_at": 2}
