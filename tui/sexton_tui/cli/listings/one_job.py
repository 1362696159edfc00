"""``sexton jobs JOB``: one job opened: what it is, what it fires next, how it went, how it came to be so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sexton.claims import State
from sexton.errors import Refused
from sexton.job_rules import NO_LIMITS
from sexton.settings import format_duration
from sexton.views import JobDetail, JobView
from sexton_tui.cli.history import changes_of, show_entry
from sexton_tui.cli.invocation import find_job
from sexton_tui.cli.listings.printing import is_ascii_output, print_lines
from sexton_tui.cli.output import Column, Output, instant_text, print_record, print_rows
from sexton_tui.cli.tick_rows import tick_table
from sexton_tui.console.core.details import claim_line, limits_words, overlap_words, target_words
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Line, line
from sexton_tui.console.core.upcoming import ticks_of_job
from sexton_tui.console.core.words import strip

if TYPE_CHECKING:
    from sexton.history_views import HistoryEntry
    from sexton.jobfiles.differences import Difference
    from sexton.store.protocol import Store

_TICKS = 10
_ENTRIES = 10
_STRIP_WIDTH = 30

_Changes = Sequence[tuple["HistoryEntry", Sequence["Difference"]]]


def print_job(store: Store, name: str, output: Output) -> None:
    """Print it. Raises NotFound with near names."""
    detail, now = store.reads.job(name, _TICKS), store.now()
    seed = _seed(store, detail)
    columns, rows = _upcoming(detail, seed, now)
    history = store.reads.history(detail.job.name, _ENTRIES)
    changes = [(entry, changes_of(entry)) for entry in history.entries]
    if output is not Output.TABLE:
        record = _record(detail, rows, changes)
        print_record({**record, "schedule_in_words": _in_words(detail, seed) or detail.job.schedule}, output)
        return
    print_lines(_head(detail, _in_words(detail, seed)))
    _print_title("Next ticks")
    if rows:
        print_rows(rows, output, columns)
    else:
        print(f"none: the job is {detail.job.state}" if detail.job.state != "active" else "none")
    for tick in detail.job.skipped:
        print(f"{instant_text(tick)} is skipped: `sexton skip-next {detail.job.name} {instant_text(tick)} --undo`")
    _print_title("Newest ticks")
    print_lines([claim_line(claim, now) for claim in detail.claims[:_TICKS]] or [line("none")])
    print_lines(_pauses(detail))
    _print_title("Changes")
    for entry, changed in changes:
        show_entry(entry, changed)
    if not history.is_whole:
        print(f"... and older ones: `sexton history {detail.job.name} --diff`")


def _print_title(title: str) -> None:
    print_lines([line(), line((title, STRONG))], coloured=True)


def _seed(store: Store, detail: JobDetail) -> str:
    """What H and jitter hash; of a retired job the name, which is right unless a file said otherwise."""
    with suppress(Refused):
        return find_job(store, detail.job.name).hash_seed
    return detail.definition.hash_seed or detail.job.name


def _upcoming(detail: JobDetail, seed: str, now: datetime) -> tuple[list[Column], list[dict[str, Any]]]:
    if not detail.job.next_ticks:
        return [], []
    return tick_table(ticks_of_job(detail.definition, seed, now), detail.job.next_ticks)


def _in_words(detail: JobDetail, seed: str) -> str:
    """What the schedule's cron expressions mean; empty where it has none."""
    from sexton.cron_expression import CronExpression
    from sexton.schedule_words import cron_words

    texts = [str(part["cron"]) for part in detail.definition.schedule_parts if "cron" in part]
    return "; and ".join(cron_words(CronExpression.parse(text, hash_seed=seed)) for text in texts)


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
        "runs": _runs_text(job),
    }
    for title, text in told.items():
        if text:
            yield line((f"{title:<10}", DIM), text)


def _runs_text(job: JobView) -> str:
    """The newest runs as signs, oldest first, and how many of them succeeded."""
    if not job.strip:
        return "none has ended"
    newest = job.strip[-_STRIP_WIDTH:]
    signs = strip(newest, len(newest), ascii_only=is_ascii_output())
    return f"{signs}  {newest.count(State.SUCCEEDED)} of the newest {len(newest)} succeeded"


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
