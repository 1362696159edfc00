"""``sexton jobs JOB``: one job opened: what it is, what it fires next, how it went, how it came to be so."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sexton.claims import State
from sexton.job_rules import NO_LIMITS
from sexton.settings import format_duration
from sexton.views import JobDetail
from sexton_tui.cli.history import changes_of, show_entry
from sexton_tui.cli.listings.printing import is_ascii_output, print_lines
from sexton_tui.cli.output import Column, Output, instant_text, print_record, print_rows
from sexton_tui.cli.tick_rows import tick_table
from sexton_tui.console.core.details import claim_line, limits_words, overlap_words, target_words
from sexton_tui.console.core.job_page import duration_lines, schedule_in_words
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Line, line
from sexton_tui.console.core.run_figures import figure_lines, figures_of
from sexton_tui.console.core.upcoming import ticks_of_job

if TYPE_CHECKING:
    from sexton.history_views import HistoryEntry
    from sexton.jobfiles.differences import Difference
    from sexton.store.protocol import Store

_TICKS = 10
_ENTRIES = 10
_RUNS = 180  # what figures are of
_STRIP_WIDTH = 30

_Changes = Sequence[tuple["HistoryEntry", Sequence["Difference"]]]


def print_job(store: Store, name: str, output: Output) -> None:
    """Print it. Raises NotFound with near names."""
    detail, now = store.reads.job(name, _TICKS), store.now()
    opened = store.reads.opened_job(name, 0, _RUNS)
    seed, in_words = opened.hash_seed, schedule_in_words(detail.definition, opened.hash_seed)
    columns, rows = _upcoming(detail, seed, now)
    history = store.reads.history(detail.job.name, _ENTRIES)
    changes = [(entry, changes_of(entry)) for entry in history.entries]
    if output is not Output.TABLE:
        record = _record(detail, rows, changes)
        figures = {
            "schedule_in_words": in_words or detail.job.schedule,
            "figures": figures_of(opened.runs),
            "durations": [{"tick": run.scheduled_at, "took": run.duration} for run in reversed(opened.runs)],
        }
        print_record({**record, **figures}, output)
        return
    print_lines([*_head(detail, in_words), *figure_lines(opened.runs, ascii_only=is_ascii_output())])
    _print_title("Next ticks")
    if rows:
        print_rows(rows, output, columns)
    else:
        print(f"none: the job is {detail.job.state}" if detail.job.state != "active" else "none")
    for tick in detail.job.skipped:
        print(f"{instant_text(tick)} is skipped: `sexton skip-next {detail.job.name} {instant_text(tick)} --undo`")
    if plot := duration_lines(opened.runs, _width(), ascii_only=is_ascii_output()):
        print_lines([line(), *plot], coloured=True)
    _print_title("Newest ticks")
    print_lines([claim_line(claim, now) for claim in detail.claims[:_TICKS]] or [line("none")])
    print_lines(_pauses(detail))
    _print_title("Changes")
    for entry, changed in changes:
        show_entry(entry, changed)
    if not history.is_whole:
        print(f"... and older ones: `sexton history {detail.job.name} --diff`")


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 80


def _print_title(title: str) -> None:
    print_lines([line(), line((title, STRONG))], coloured=True)


def _upcoming(detail: JobDetail, seed: str, now: datetime) -> tuple[list[Column], list[dict[str, Any]]]:
    if not detail.job.next_ticks:
        return [], []
    return tick_table(ticks_of_job(detail.definition, seed, now), detail.job.next_ticks)


def _head(detail: JobDetail, in_words: str) -> Iterator[Line]:
    job, definition = detail.job, detail.definition
    missed = f"{definition.missed.policy.value}, grace {format_duration(definition.missed.grace)}"
    state = (job.state, WARN if job.state != "active" else DIM)
    yield line((job.name, STRONG), f"  revision {job.revision}  ", state)
    if job.detail:
        yield line((job.detail, WARN))
    if job.description:
        yield line(job.description)
    told = {
        "schedule": f"{job.schedule}  {job.timezone}",
        "": in_words,
        "target": target_words(definition.target),
        "queue": f"{job.queue}, priority {definition.priority}",
        "overlap": overlap_words(definition),
        "missed": missed,
        "limits": limits_words(definition.limits) if definition.limits != NO_LIMITS else "",
        "owner": job.owner,
        "tags": ", ".join(job.tags),
        "decided": f"up to {instant_text(detail.cursor)}" if detail.cursor is not None else "",
    }
    for title, text in told.items():
        if text:
            yield line((f"{title:<10}", DIM), text)


def _pauses(detail: JobDetail) -> Iterator[Line]:
    if detail.pauses:
        yield line()
        yield line(("Pauses", STRONG))
    for pause in detail.pauses:
        until = "now" if pause.until is None else _second(pause.until)
        yield line(f"{_second(pause.since)} to {until}  {pause.who}: {pause.why or 'no reason given'}")


def _second(at: datetime) -> str:
    return instant_text(at.replace(microsecond=0))


def _record(detail: JobDetail, upcoming: Sequence[dict[str, Any]], changes: _Changes) -> dict[str, Any]:
    newest = detail.job.strip[-_STRIP_WIDTH:]
    return {
        **{field.name: getattr(detail, field.name) for field in fields(detail)},
        "upcoming": upcoming,
        "success_rate": newest.count(State.SUCCEEDED) / len(newest) if newest else None,
        "changes": [
            {
                "at": entry.at,
                "what": entry.kind,
                "who": entry.who,
                "why": entry.why,
                "revision": entry.revision,
                "changes": [{"key": one.key, "old": one.old, "new": one.new} for one in changed],
            }
            for entry, changed in changes
        ],
    }
