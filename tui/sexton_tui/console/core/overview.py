"""The overview: what the first screen says, block by block. ``sexton status`` prints the same lines."""

from __future__ import annotations

from collections.abc import Sequence

from sexton.cluster_views import FailingJob, Overview, QueueView
from sexton.views import ClaimView, DecisionTotals, RunView, TakeoverView
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.lines import BAD, DIM, GOOD, PLAIN, STRONG, WARN, Line, Part, line
from sexton_tui.console.core.needs import WORKER_SILENCE, Need, needs
from sexton_tui.console.core.plot import plot
from sexton_tui.console.core.words import count, duration, instant, late_words, plural, since_words, state_style


def need_lines(overview: Overview, failing: Sequence[FailingJob]) -> list[Line]:
    """What needs a human, or that nothing does."""
    found = needs(overview, failing)
    if not found:
        return [line(("● ", GOOD), "nothing")]
    return [need_line(need, under_banner=True) for need in found]


def need_line(need: Need, *, under_banner: bool = False) -> Line:
    """A need, with what to do about it; shortly where the console's banner tells it in full."""
    sign: Part = ("! ", BAD) if need.is_urgent else ("· ", WARN)
    if under_banner and need.alarm:
        return line(sign, (need.alarm, STRONG), (" (above)", DIM))
    todo: Part = (f". Next: {need.todo}", DIM) if need.todo else ""
    return line(sign, (need.text, STRONG if need.is_urgent else PLAIN), todo)


def lateness_lines(
    overview: Overview, history: LatenessHistory, *, width: int, height: int, ascii_only: bool = False
) -> list[Line]:
    """Lateness now, its peaks over half an hour, and where leadership changed."""
    late = overview.lateness
    if late.count:
        lines = [line(f"p50 {duration(late.p50)}  p99 {duration(late.p99)}  max {duration(late.max)}")]
    else:
        lines = [line(("no run started in 5 minutes", DIM))]
    rows = height - 2
    if rows >= 1:
        drawn = plot(
            history.minutes,
            sorted(history.takeovers),
            overview.now,
            width=width,
            height=rows,
            ascii_only=ascii_only,
        )
        lines += [line(row) for row in drawn.rows]
        lines.append(line((drawn.marks, WARN)))
    return lines


def work_lines(overview: Overview) -> list[Line]:
    """Claims by state, jobs, workers, queues."""
    failed: Part = (f"{count(overview.failed_last_hour)} failed", BAD if overview.failed_last_hour else PLAIN)
    alive = [worker for worker in overview.workers if worker.age <= WORKER_SILENCE]
    slots = sum(worker.slots for worker in alive)
    busy = sum(worker.busy for worker in alive)
    lines = [
        line(f"ready {count(overview.due)} due, {count(overview.ahead)} ahead", _catch_up(overview)),
        line(f"{count(overview.running)} run, {count(overview.parked)} parked, ", failed, (" in 1 h", DIM)),
        line(f"{plural(len(alive), 'worker')}, {busy} of {slots} slots busy"),
        line(plural(overview.jobs, "job"), *([f", {count(overview.paused)} paused"] if overview.paused else [])),
    ]
    lines += [_queue_line(queue) for queue in overview.queues]
    refused = overview.counters.get("stale_results", 0) + overview.counters.get("stale_commits", 0)
    lost = overview.counters.get("race_conflicts", 0)
    lines.append(line((f"{count(lost)} lost races, {count(refused)} stale writes refused", DIM)))
    return lines


def _catch_up(overview: Overview) -> str:
    return f", {count(overview.catch_up)} catch-up" if overview.catch_up else ""


def _queue_line(queue: QueueView) -> Line:
    served: Part = (
        (f"  {plural(queue.workers, 'worker')}", DIM)
        if queue.workers
        else ("  no worker", BAD if queue.due or queue.ahead else DIM)
    )
    return line(f"queue {queue.name}  {count(queue.due)} due", served)


def feed_lines(running: Sequence[ClaimView], runs: Sequence[RunView], overview: Overview, height: int) -> list[Line]:
    """What runs now (a third of the room at most), then the newest runs."""
    now = overview.now
    lines = []
    for claim in running[: max(height // 3, 1)]:
        since = claim.started_at or claim.granted_at
        age = "" if since is None else f"  for {since_words(since, now)}"
        lines.append(
            line(
                (f"{instant(since, now):>12}  ", DIM),
                ("running    ", PLAIN),
                f"{claim.job}",
                (f"{age}  {claim.worker}", DIM),
            )
        )
    for run in runs[: max(height - len(lines), 0)]:
        lines.append(run_line(run, overview))
    return lines or [line(("no runs yet", DIM))]


def run_line(run: RunView, overview: Overview) -> Line:
    word = "to retry" if run.outcome == 0 else run.outcome.word
    details = f"  {late_words(run.lateness)} late, ran {duration(run.duration)}  {run.worker}"
    return line(
        (f"{instant(run.finished_at, overview.now):>12}  ", DIM),
        (f"{word:<11}", state_style(run.outcome)),
        run.job,
        (details, DIM),
        *([("  " + run.error, BAD)] if run.error else []),
    )


def gap_words(takeover: TakeoverView) -> str:
    """``12m40s``; ``open`` while the first pass is not done; ``-`` for a first leader, which has none."""
    if takeover.gap is not None:
        return duration(takeover.gap)
    return "-" if takeover.gap_from is None else "open"


def decided_words(totals: DecisionTotals) -> str:
    """``16 missed: 2 fired, 12 merged, 2 held``."""
    counts = (totals.fired, totals.merged, totals.skipped, totals.expired, totals.held)
    parts = zip(counts, ("fired", "merged", "skipped", "expired", "held"), strict=True)
    became = ", ".join(f"{count(number)} {word}" for number, word in parts if number)
    return f"{count(totals.missed)} missed: {became or 'not decided yet'}"


def takeover_lines(takeovers: Sequence[TakeoverView], overview: Overview) -> list[Line]:
    """The newest takeovers, one line each."""
    lines = []
    for takeover in takeovers:
        totals = takeover.totals
        decided = decided_words(totals) if totals.missed else "nothing missed"
        lines.append(
            line(
                (f"{takeover.term:>5}  ", STRONG),
                f"{takeover.node}  {instant(takeover.taken_at, overview.now)}",
                (f"  gap {gap_words(takeover)}  ", WARN if totals.missed else DIM),
                decided,
            )
        )
    return lines or [line(("no takeover yet", DIM))]
