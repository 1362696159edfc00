"""An opened job as values: figures, the plot of durations, ticks in three zones, revisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sexton.claims import Origin, State
from sexton.history_views import HistoryEntry, HistoryKind
from sexton.job_page_views import DayOfRuns, OpenedJob, OpenedRevision, OpenedTicks
from sexton.jobfiles.differences import differences_between
from sexton.jobs import JobDefinition
from sexton.store.read_jobs import upcoming
from sexton.targets import CommandTarget
from sexton.views import ClaimView, JobView, RunView
from sexton.zones import load_zone
from sexton_tui.console.core.job_page import calendar_lines, overview_lines
from sexton_tui.console.core.job_rows import opened_tick_rows, revision_lines, revision_row
from sexton_tui.console.core.plot import newest_columns
from sexton_tui.console.core.run_figures import figures_of
from sexton_tui.console.core.subjects import OfJob, OfRevision, OfTick
from sexton_tui.console.core.words import ShownNow

NOW = datetime(2026, 10, 24, 22, 0, tzinfo=UTC)
MS = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)


def definition(cron: str = "30 2 * * *", **keys: object) -> JobDefinition:
    part = {"cron": cron}
    return JobDefinition("nightly", (part,), CommandTarget(("true",)), timezone="Europe/Berlin", **keys)  # type: ignore[arg-type]  # any key of a job


def run(number: int, outcome: State = State.SUCCEEDED, *, attempt: int = 1, late: int = 5, took: int = 400) -> RunView:
    at = NOW - number * timedelta(hours=1)
    started = at + late * MS
    ended = (outcome, 0, "", started, started + took * MS, late * MS, 0, 0)
    return RunView(1000 - number, 1, "nightly", at, attempt, 1, "w", *ended)


def opened(*runs: RunView, cron: str = "30 2 * * *", state: str = "active") -> OpenedJob:
    made = definition(cron)
    ticks = upcoming(made.schedule_text("nightly"), NOW, 2) if state == "active" else ()
    strip = tuple(one.outcome for one in reversed(runs))
    last = runs[0] if runs else None
    names = ("nightly", 3, state, "", cron, "Europe/Berlin", "default", "ana", ("money",), "")
    return OpenedJob(JobView(1, *names, ticks, last, strip), made, "nightly", NOW, runs, ())


def page(one: OpenedJob, now: datetime = NOW) -> str:
    return "\n".join(line.text for line in overview_lines(one, now, 78))


def test_figures_leave_the_lateness_of_retries_out() -> None:
    runs = [run(0, late=30, took=900), run(1, State.FAILED, late=10), run(2, attempt=2, late=60_000), run(3, late=20)]
    figures = figures_of(runs)
    assert (figures.runs, figures.succeeded, figures.success_rate) == (4, 3, 0.75)
    assert (figures.lateness.number, figures.lateness.p50, figures.lateness.max) == (3, 20 * MS, 30 * MS)
    assert (figures.took.p50, figures.took.p99) == (400 * MS, 900 * MS)
    assert figures_of([]).success_rate is None


def test_a_job_opens_with_its_schedule_in_words_and_its_figures() -> None:
    text = page(opened(run(0), run(1, State.FAILED)))
    assert "at 02:30 every day" in text
    assert "✗▪  1 of the newest 2 succeeded" in text
    assert "late      p50 5 ms  p99 5 ms  max 5 ms  of 2 runs" in text
    assert "owner     ana; tags money" in text
    assert "none: the job is paused" in page(opened(state="paused"))


def test_the_next_ticks_are_told_in_the_jobs_zone_and_utc_with_what_the_clock_does() -> None:
    lines = page(opened()).splitlines()
    first = next(line for line in lines if line.startswith("Sun 2026-10-25"))
    assert first.split("  ")[:2] == ["Sun 2026-10-25 02:30:00 CEST", "10-25 00:30:00Z"] or "10-25 00:30:00Z" in first
    assert "first of two" in first
    assert "in 2h30m" in first
    tokyo = page(opened(), ShownNow.of(NOW, load_zone("Asia/Tokyo")))
    assert "Sun 09:30:00 JST" in tokyo


def test_durations_stand_side_by_side_the_newest_at_the_right() -> None:
    rows = newest_columns([None, 200 * MS, 3 * SECOND], width=12, height=3, ascii_only=True)
    assert rows == ("  10 s      ", "           *", "100 ms    **")
    assert newest_columns([], width=12, height=2)[0].strip() == "10 ms"


def test_ticks_to_come_stand_above_what_was_decided_and_name_their_marks() -> None:
    made = definition()
    tick = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    past = datetime(2026, 10, 24, 0, 30, tzinfo=UTC)
    job = opened().job
    claim = ClaimView(
        *(1, "nightly", past, 1, Origin.SCHEDULE, State.SUCCEEDED, "default", 0, past, None, False, 0 * MS, 1, 0),
        *(7, "w", past, None, past, past, "", 1, past),
    )
    found = opened_tick_rows(OpenedTicks(job, made, "nightly", (claim,), (), (), (tick,), None), NOW)
    assert [one.cells[2].text for one in found] == ["to come", "succeeded"]
    assert found[0].cells[-1].text == "first of two"
    assert [one.about for one in found] == [OfTick("nightly", tick), OfTick("nightly", past)]


def test_a_revision_tells_who_when_and_what_it_changed() -> None:
    old, new = definition(), definition("0 3 * * *", owner="ben")
    entry = HistoryEntry(NOW, "ben", HistoryKind.REVISED, 1, "nightly", "later\x1b", 3, NOW, None, new, old)
    changed = differences_between(old, new)
    shown = revision_row(entry, changed, "nightly", NOW)
    assert [cell.text for cell in shown.cells][1:] == ["3", "revised", "ben", "owner, schedule", "later\\x1b"]
    assert shown.about == OfRevision("nightly", 3)
    texts = [line.text for line in revision_lines(OpenedRevision(entry, 3), changed, NOW)]
    assert "nightly  revision 3, the newest" in texts
    assert "  - 30 2 * * *" in texts
    assert "  + 0 3 * * *" in texts
    pause = HistoryEntry(NOW, "ana", HistoryKind.PAUSED, 1, "nightly")
    assert revision_row(pause, (), "nightly", NOW).about == OfJob("nightly")


def test_the_calendar_tells_runs_and_failures_and_where_a_day_was_cut() -> None:
    today = NOW.date()
    midnight = datetime(2026, 10, 24, tzinfo=UTC)
    quiet = [line.text for line in calendar_lines({today: DayOfRuns(midnight, 2, 0)}, today)]
    assert quiet[0] == "Runs a day  2 in 1 day"
    assert quiet[-1].strip() == "none"
    cut = [line.text for line in calendar_lines({today: DayOfRuns(midnight, 300, 4, is_whole=False)}, today)]
    assert "Failures a day  4 or more in 1 day" in cut
    assert cut[-1] == "only the newest 300 runs of a day are looked at"
