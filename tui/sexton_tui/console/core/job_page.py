"""A job, opened: what it is, how its newest runs went, what it fires next, its pauses, and its days as heat maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime

from sexton.cluster_views import ProposalView
from sexton.cron_expression import CronExpression
from sexton.errors import SextonError
from sexton.job_page_views import DayOfRuns, OpenedJob
from sexton.job_rules import NO_LIMITS
from sexton.jobs import JobDefinition
from sexton.schedule_words import cron_words
from sexton.settings import format_duration
from sexton.views import JobView, PauseView, RunView
from sexton_tui.console.core.details import limits_words, overlap_words, target_words
from sexton_tui.console.core.heat_map import heat_map, scale_words
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Line, Part, line
from sexton_tui.console.core.plot import newest_columns
from sexton_tui.console.core.run_figures import figure_lines
from sexton_tui.console.core.upcoming import TickToCome, ticks_of_job, ticks_to_come
from sexton_tui.console.core.words import count, duration, full_instant, instant, plural

_PLOT_ROWS = 5
_LABEL = 10


def schedule_in_words(definition: JobDefinition, hash_seed: str) -> str:
    """What the schedule's cron expressions mean; empty where it has none."""
    texts = [str(part["cron"]) for part in definition.schedule_parts if "cron" in part]
    return "; and ".join(cron_words(CronExpression.parse(text, hash_seed=hash_seed)) for text in texts)


def overview_lines(
    opened: OpenedJob, now: datetime, width: int, proposals: Sequence[ProposalView] = (), *, ascii_only: bool = False
) -> list[Line]:
    """The first page of an opened job. ``proposals``: those that are open, of any job."""
    lines = [*head_lines(opened.job, opened.definition, opened.hash_seed)]
    if opened.cursor is not None:
        lines.append(_told("decided", f"up to {full_instant(opened.cursor, now)}"))
    for held in proposals:
        if held.job == opened.job.name:
            told = f"{plural(held.count, 'tick')} in proposal {held.proposal_id}, until {instant(held.lapses_at, now)}"
            lines.append(line((f"{'held':<{_LABEL}}", DIM), (f"{told}: pane 3 answers", WARN)))
    lines += figure_lines(opened.runs, ascii_only=ascii_only)
    lines += [line(), *upcoming_lines(opened, now)]
    if plot := duration_lines(opened.runs, width, ascii_only=ascii_only):
        lines += [line(), *plot]
    if opened.pauses:
        lines += [line(), line(("Pauses", STRONG)), *pause_lines(opened.pauses, now)]
    return lines


def head_lines(job: JobView, definition: JobDefinition, hash_seed: str) -> Iterator[Line]:
    """What the job is."""
    missed = f"missed {definition.missed.policy.value}, grace {format_duration(definition.missed.grace)}"
    state = (job.state, WARN if job.state != "active" else DIM)
    yield line((job.name, STRONG), f"  revision {job.revision}  ", state)
    if job.detail:
        yield line((job.detail, WARN))
    if job.description:
        yield line(job.description)
    try:
        in_words = schedule_in_words(definition, hash_seed)
    except SextonError as error:  # no schedule any more in this release: the job is in quarantine, which says why
        in_words = str(error)
    told = {
        "schedule": f"{job.schedule}  {job.timezone}",
        "": in_words,
        "target": target_words(definition.target),
        "queue": f"{job.queue}, priority {definition.priority}",
        "overlap": f"{overlap_words(definition)}; {missed}",
        "limits": limits_words(definition.limits) if definition.limits != NO_LIMITS else "",
        "owner": job.owner + (f"{'; ' if job.owner else ''}tags {', '.join(job.tags)}" if job.tags else ""),
    }
    for title, text in told.items():
        if text:
            yield _told(title, text)


def _told(title: str, text: str) -> Line:
    return line((f"{title:<{_LABEL}}", DIM), text)


def duration_lines(runs: Sequence[RunView], width: int, *, ascii_only: bool) -> list[Line]:
    """A plot of how long the newest runs took, oldest first; ``runs``: newest first. Nothing of fewer than two."""
    took = [run.duration for run in reversed(runs)]
    if sum(one is not None for one in took) < 2:
        return []
    rows = newest_columns(took, width=max(min(width, 90), 20), height=_PLOT_ROWS, ascii_only=ascii_only)
    return [
        line(("How long the newest runs took, the newest at the right", STRONG)),
        *(line(row) for row in rows),
    ]


def upcoming_lines(opened: OpenedJob, now: datetime) -> list[Line]:
    """The next ticks in the job's zone, in the zone of `now` where that is another, and in UTC."""
    job = opened.job
    skipped = [line(f"{instant(tick, now)}  ", ("skipped (skip-next)", WARN)) for tick in job.skipped]
    if not job.next_ticks:
        why = "" if job.state == "active" else f": the job is {job.state}"
        return [line(("Next ticks", STRONG)), line((f"none{why}", DIM)), *skipped]
    ticks = ticks_to_come(ticks_of_job(opened.definition, opened.hash_seed, now), job.next_ticks)
    zones = "UTC" if job.timezone == "UTC" else f"{job.timezone} and UTC"
    lines = [line((f"Next ticks in {zones}", STRONG))]
    return lines + [_tick_line(tick, now) for tick in ticks] + skipped


def _tick_line(tick: TickToCome, now: datetime) -> Line:
    parts: list[Part] = [f"{tick.local:<28}"]
    if not tick.local.endswith(" UTC"):
        parts.append((f" {tick.utc}Z", DIM))
    if tick.shown:
        parts.append(f"  {tick.shown}")
    parts.append((f"  in {duration(tick.tick - now)}", DIM))
    if tick.available:
        parts.append(f"  from {tick.available}")
    if tick.note:
        parts.append((f"  {tick.note}", WARN))
    return line(*parts)


def pause_lines(pauses: Sequence[PauseView], now: datetime) -> list[Line]:
    """One line for each pause, newest first."""
    return [
        line(
            f"{instant(pause.since, now)} to {'now' if pause.until is None else instant(pause.until, now)}"
            f"  {pause.who}: {pause.why or 'no reason given'}"
        )
        for pause in pauses
    ]


def calendar_lines(days: Mapping[date, DayOfRuns], today: date, *, ascii_only: bool = False) -> list[Line]:
    """Two heat maps of half a year: runs a day, and those of them that failed; with what the shades stand for."""
    lines: list[Line] = []
    for title, counts in (
        ("Runs a day", {day: one.runs for day, one in days.items()}),
        ("Failures a day", {day: one.failed for day, one in days.items()}),
    ):
        most = max(counts.values(), default=0)
        total = sum(counts.values())
        more = "" if all(one.is_whole for one in days.values()) else " or more"
        head = f"  {count(total)}{more} in {plural(len(days), 'day')}"
        lines.append(line((title, STRONG), (head, DIM)))
        if most:
            lines += [line(text) for text in heat_map(counts, today, ascii_only=ascii_only)]
            lines.append(line((f"    {scale_words(most, ascii_only=ascii_only)}", DIM)))
        else:
            lines.append(line(("    none", DIM)))
    if any(not one.is_whole for one in days.values()):
        crowded = max(one.runs for one in days.values())
        lines.append(line((f"only the newest {crowded} runs of a day are looked at", DIM)))
    return lines
