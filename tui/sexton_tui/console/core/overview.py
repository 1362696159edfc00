"""The overview: what the first screen says, block by block. ``sexton status`` prints the same lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from sexton.catch_up import CatchUp, coarse
from sexton.cluster_views import Overview, QueueView
from sexton.settings import settings_from_rows
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.lines import BAD, DIM, PLAIN, STRONG, WARN, Line, Part, line
from sexton_tui.console.core.needs import WORKER_SILENCE, Need
from sexton_tui.console.core.plot import plot
from sexton_tui.console.core.words import count, duration, instant, late_words, plural, since_words, state_style

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.views import ClaimView, DecisionTotals, GapView, RunView, TakeoverView

_WIDE = 42  # cells, from which on a block has room for whole words


def need_line(need: Need, *, under_banner: bool = False, with_keys: bool = False) -> Line:
    """A need, with what to do about it; shortly where the console's banner tells it in full. ``with_keys``: which keys
    of the console act on it, in the place of commands."""
    sign: Part = ("! ", BAD) if need.is_urgent else ("· ", WARN)
    if under_banner and need.alarm:
        return line(
            sign, (need.alarm, STRONG), (" (above)", DIM), (f" · {need.keys}" if with_keys and need.keys else "", DIM)
        )
    # What enter opens, the list says once for all.
    todo = need.keys or ("" if need.about else need.todo) if with_keys else need.todo
    told: Part = (f"{' ·' if with_keys else '. Next:'} {todo}", DIM) if todo else ""
    return line(sign, (need.text, STRONG if need.is_urgent else PLAIN), told)


def lateness_lines(
    overview: Overview, history: LatenessHistory, *, width: int, height: int, ascii_only: bool = False
) -> list[Line]:
    """Lateness now, its peaks over half an hour, and where leadership changed."""
    late = overview.lateness
    if late.count:
        lines = [line(f"p50 {duration(late.p50)}  p99 {duration(late.p99)}  max {duration(late.max)}")]
    else:
        lines = [line(("no run started in 5 minutes", DIM))]
    lines.append(pace_line(overview, width))
    rows = height - 3
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


def pace_line(overview: Overview, width: int = 80) -> Line:
    """How many ticks start a second, and how often something was decided or written twice in vain."""
    record = pace_record(overview)
    pace, lost, refused = record["ticks_a_second"] or 0.0, record["lost_races"], record["stale_writes_refused"]
    told = f"{pace:.0f}" if pace >= 10 or not pace else f"{pace:.2f}" if pace < 0.1 else f"{pace:.1f}"
    stale = f"{count(refused)} stale" + (" writes refused" if width >= _WIDE else "")
    return line(f"{told} ticks/s", (f"  {count(lost)} lost races  {stale}", DIM))


def pace_record(overview: Overview) -> dict[str, Any]:
    """The same as values; ticks a second of the last 5 minutes, the counts of all time."""
    counters = overview.counters
    return {
        "ticks_a_second": overview.lateness.a_second,
        "lost_races": counters.get("race_conflicts", 0),
        "stale_writes_refused": counters.get("stale_results", 0) + counters.get("stale_commits", 0),
    }


def work_lines(
    overview: Overview, catch_up: CatchUp | None = None, *, width: int = 80, height: int | None = None
) -> list[Line]:
    """Claims by state, the catch-up (where it was read), workers, jobs, queues: of `height` lines at most, those
    queues first that need somebody."""
    failed: Part = (f"{count(overview.failed_last_hour)} failed", BAD if overview.failed_last_hour else PLAIN)
    alive = [worker for worker in overview.workers if worker.age <= WORKER_SILENCE]
    slots = sum(worker.slots for worker in alive)
    busy = sum(worker.busy for worker in alive)
    lines = [
        line(f"ready {count(overview.due)} due, {count(overview.ahead)} ahead", _oldest(overview)),
        line(f"{count(overview.running)} run, {count(overview.parked)} parked, ", failed, (" in 1 h", DIM)),
        *catch_up_lines(overview, catch_up),
        line(f"{plural(len(alive), 'worker')}, {busy} of {slots} slots busy"),
        line(plural(overview.jobs, "job"), *([f", {count(overview.paused)} paused"] if overview.paused else [])),
    ]
    if height is not None and height < len(lines) + min(len(overview.queues), 3):  # no room for jobs and queues
        lines[-2:] = [line(f"{plural(len(alive), 'worker')} {busy}/{slots} busy; {lines[-1].text}")]
    queues = sorted(overview.queues, key=lambda queue: (bool(queue.workers), queue.oldest is None, queue.oldest))
    room = len(queues) if height is None else max(height - len(lines), 0)
    shown = queues if len(queues) <= room else queues[: max(room - 1, 0)]
    lines += [_queue_line(queue, overview, is_named=width >= _WIDE) for queue in shown]
    if room and len(shown) < len(queues):
        lines.append(line((f"{len(queues) - len(shown)} more queues: key 7", DIM)))
    return lines


def _oldest(overview: Overview) -> Part:
    return "" if overview.oldest is None else (f", oldest {since_words(overview.oldest, overview.now)}", DIM)


def catch_up_lines(overview: Overview, catch_up: CatchUp | None) -> list[Line]:
    """What is caught up with, until when, and how much of its budget is in use."""
    if catch_up is None:
        settings = settings_from_rows(overview.settings)
        budget = f"{settings.catch_up_rate:g}/s, {settings.catch_up_concurrency} at once"
        waits = f"catch-up {count(overview.catch_up)}" if overview.catch_up else "no catch-up"
        return [line(waits, (f"; {budget}", DIM))]
    budget = f"budget {catch_up.rate:g}/s, {catch_up.running} of {catch_up.concurrency} at once"
    if catch_up.is_idle:
        return [line("no catch-up", (f"; {budget.removeprefix('budget ')}", DIM))]
    more = "" if catch_up.is_whole else "+"
    return [
        line((f"catch-up {catch_up.count:,}{more}", STRONG), f", {drain_words(catch_up)}"),
        line((f"  {budget}", DIM)),
    ]


def drain_words(catch_up: CatchUp) -> str:
    """When all of it has run: ``done in about 5m``."""
    if not catch_up.count:
        return "the last of it runs"
    if catch_up.done_in is not None:
        return f"done {'in about' if catch_up.is_whole else 'not before'} {coarse(catch_up.done_in)}"
    if catch_up.unserved:
        return f"{count(catch_up.unserved)} without a worker"
    return f"last starts in {coarse(catch_up.last_start_in)}" if catch_up.last_start_in else "all may start"


def _queue_line(queue: QueueView, overview: Overview, *, is_named: bool) -> Line:
    served: Part = (
        (f"  {plural(queue.workers, 'worker')}", DIM)
        if queue.workers
        else ("  no worker", BAD if queue.due or queue.ahead else DIM)
    )
    oldest = "" if queue.oldest is None else f" for {since_words(queue.oldest, overview.now)}"
    return line("queue " if is_named else "", f"{queue.name}  {count(queue.due)} due", oldest, served)


def feed_lines(
    running: Sequence[ClaimView], runs: Sequence[RunView], overview: Overview, height: int, width: int = 80
) -> list[Line]:
    """What runs now (a third of the room at most), then the newest runs."""
    now, column = overview.now, 12 if width >= _WIDE else 8
    lines = []
    for claim in running[: max(height // 3, 1)]:
        since = claim.started_at or claim.granted_at
        age = "" if since is None else f"  for {since_words(since, now)}"
        lines.append(
            line(
                (f"{instant(since, now):>{column}}  ", DIM),
                ("running    ", PLAIN),
                f"{claim.job}",
                (f"{age}  {claim.worker}", DIM),
            )
        )
    for run in runs[: max(height - len(lines), 0)]:
        lines.append(run_line(run, overview, column))
    return lines or [line(("no runs yet", DIM))]


def run_line(run: RunView, overview: Overview, column: int = 12) -> Line:
    word = "to retry" if run.outcome == 0 else run.outcome.word
    details = f"  {late_words(run.lateness)} late, ran {duration(run.duration)}  {run.worker}"
    return line(
        (f"{instant(run.finished_at, overview.now):>{column}}  ", DIM),
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


def decided_words(totals: DecisionTotals, word: str = "missed") -> str:
    """``16 missed: 2 fired, 12 merged, 2 held``."""
    counts = (totals.fired, totals.merged, totals.skipped, totals.expired, totals.held)
    parts = zip(counts, ("fired", "merged", "skipped", "expired", "held"), strict=True)
    became = ", ".join(f"{count(number)} {word}" for number, word in parts if number)
    return f"{count(totals.missed)} {word}: {became or 'not decided yet'}"


def takeover_lines(takeovers: Sequence[TakeoverView], overview: Overview, width: int = 200) -> list[Line]:
    """The newest takeovers, one line each, with what was decided: what is held has room first."""
    lines = []
    for takeover in takeovers:
        lines += [gap_line(gap, overview.now, width) for gap in takeover.gaps]
        totals, late = takeover.totals, takeover.not_started
        full = [decided_words(totals)] if totals.missed else []
        short = [_held_words(totals, "missed")] if totals.missed else []
        if late.missed:
            full.append(decided_words(late, "not started"))
            short.append(_held_words(late, "not started"))
        of_gap: Part = (f"gap {gap_words(takeover)}  ", WARN if totals.missed else DIM)
        head = takeover.term, takeover.node, instant(takeover.taken_at, overview.now)
        lines.append(_takeover_line(head, of_gap, full, short, width))
    return lines[: max(len(takeovers), 1)] or [line(("no takeover yet", DIM))]


def gap_line(gap: GapView, now: datetime, width: int = 200) -> Line:
    """A gap within a term, which goes on."""
    of_gap: Part = (f"gap {duration(gap.gap)}, led on  ", WARN)
    full, short = decided_words(gap.totals), _held_words(gap.totals, "missed")
    return _takeover_line((gap.term, gap.node, instant(gap.gap_until, now)), of_gap, [full], [short], width)


def _takeover_line(
    head: tuple[int, str, str], of_gap: Part, full: Sequence[str], short: Sequence[str], width: int
) -> Line:
    """Term, node and time, the gap, and what was decided; in fewer words, and without the gap, where that is wider."""
    term, node, at = head
    number: Part = (f"{term:>5}  ", STRONG)
    lines = [line(number, f"{node}  {at}  ", of_gap, "; ".join(said or ["nothing missed"])) for said in (full, short)]
    if short:
        lines += [line(number, f"{node}  {at}  ", "; ".join(short)), line(number, f"{at}  ", "; ".join(short))]
    return next((one for one in lines if cell_len(one.text) <= width), lines[-1])


def _held_words(totals: DecisionTotals, word: str) -> str:
    """``16 missed, 2 held``."""
    return f"{count(totals.missed)} {word}" + (f", {count(totals.held)} held" if totals.held else "")
