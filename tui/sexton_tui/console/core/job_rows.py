"""Rows of an opened job: its ticks to come and those decided, its runs, and its revisions with what each changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sexton.claims import State
from sexton.history_views import HistoryEntry
from sexton.job_page_views import OpenedRevision, OpenedRuns, OpenedTicks
from sexton.views import ClaimView, RunView
from sexton_tui.console.core.decided import tick_rows
from sexton_tui.console.core.lines import BAD, DIM, GOOD, STRONG, Line, Row, line, row
from sexton_tui.console.core.subjects import OfJob, OfRevision, OfRun, OfTick
from sexton_tui.console.core.tables import running_row
from sexton_tui.console.core.upcoming import notes_of, ticks_of_job
from sexton_tui.console.core.words import duration, full_instant, instant, late_words, state_style

JOB_RUN_COLUMNS = ("tick", "outcome", "late", "took", "try", "ended", "worker", "error")
REVISION_COLUMNS = ("at", "rev", "what", "who", "changed", "why")


class Changed(Protocol):
    """A key whose value a revision changed (``sexton.jobfiles.differences.Difference``)."""

    @property
    def key(self) -> str: ...
    @property
    def old(self) -> str | None: ...
    @property
    def new(self) -> str | None: ...
    @property
    def is_long(self) -> bool: ...
    def lines(self) -> tuple[str, ...]: ...


def opened_tick_rows(page: OpenedTicks, now: datetime) -> list[Row]:
    """In the columns of decided ticks: what lies ahead, the farthest first, then what fell due, the newest first."""
    ahead = [*(claim.scheduled_at for claim in page.ahead), *page.upcoming]
    notes = notes_of(ticks_of_job(page.definition, page.hash_seed, now), ahead) if ahead else []
    by_tick = dict(zip(ahead, notes, strict=True))
    to_come = [
        row(
            f"next {tick.isoformat()}",
            *(instant(tick, now), "1", ("to come", DIM), "-", f"in {duration(tick - now)}", "-", "-"),
            by_tick[tick],
            about=OfTick(page.job.name, tick),
        )
        for tick in reversed(page.upcoming)
    ]
    written = tick_rows(page.ahead, (), now)
    return [*to_come, *written, *tick_rows(page.claims, page.skips, now)]


def opened_run_rows(page: OpenedRuns, now: datetime) -> list[Row]:
    """What runs now, then what ran, the newest tick first."""
    return [
        *(job_running_row(claim, now) for claim in page.running),
        *(job_run_row(run, now) for run in page.runs),
    ]


def job_running_row(claim: ClaimView, now: datetime) -> Row:
    """A claim that runs now, in the columns of a job's runs."""
    one = running_row(claim, now)
    ended, _, tick, outcome, late, took, attempt, worker, error = one.cells
    return Row(one.key, (tick, outcome, late, took, attempt, ended, worker, error), one.about)


def job_run_row(run: RunView, now: datetime) -> Row:
    """A run that ended, of one job or of one tick."""
    code = f" {run.exit_code}" if run.exit_code else ""
    return row(
        str(run.token),
        instant(run.scheduled_at, now),
        ("to retry" if run.outcome is State.READY else f"{run.outcome.word}{code}", state_style(run.outcome)),
        late_words(run.lateness),
        duration(run.duration),
        str(run.attempt),
        instant(run.finished_at, now),
        run.worker,
        (run.error, BAD),
        about=OfRun(run.job, run.scheduled_at, run.token),
    )


def revision_row(entry: HistoryEntry, changed: Sequence[Changed], job: str, now: datetime) -> Row:
    """An entry of the job's history; enter opens what is a revision."""
    about = OfJob(job) if entry.revision is None else OfRevision(job, entry.revision)
    return row(
        f"{entry.kind.value} {entry.revision} {entry.at.isoformat()}",
        instant(entry.at, now),
        "-" if entry.revision is None else str(entry.revision),
        entry.kind.value,
        entry.who,
        ", ".join(change.key for change in changed) or "-",
        entry.why,
        about=about,
    )


def revision_lines(found: OpenedRevision, changed: Sequence[Changed], now: datetime) -> list[Line]:
    """A revision opened: who made it, when and why, when it was in force, and what it changed of the one before."""
    entry = found.entry
    newest = "the newest" if entry.revision == found.newest else f"of {found.newest}"
    lines = [
        line((entry.job, STRONG), f"  revision {entry.revision}", (f", {newest}", DIM)),
        line((f"{entry.kind.value:<10}", DIM), f"by {entry.who}, {full_instant(entry.at, now)}"),
    ]
    if entry.why:
        lines.append(line(("why       ", DIM), entry.why))
    if entry.in_force_since is not None:
        until = "now" if entry.in_force_until is None else full_instant(entry.in_force_until, now)
        lines.append(line(("in force  ", DIM), f"ticks after {full_instant(entry.in_force_since, now)}"))
        lines.append(line(("until     ", DIM), until))
    lines.append(line())
    if entry.before is None:
        lines.append(line(("the first revision: there is none before it", DIM)))
    elif not changed:
        lines.append(line(("nothing that a job file says changed", DIM)))
    for change in changed:
        lines += _changed_lines(change)
    return lines


def _changed_lines(change: Changed) -> list[Line]:
    lines = [line((change.key, STRONG))]
    if change.is_long:
        styles = {"-": BAD, "+": GOOD}
        return lines + [line((f"  {text}", styles.get(text[:1], DIM))) for text in change.lines()]
    if change.old is not None:
        lines.append(line((f"  - {change.old}", BAD)))
    if change.new is not None:
        lines.append(line((f"  + {change.new}", GOOD)))
    return lines
