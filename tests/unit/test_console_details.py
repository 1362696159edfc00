"""What tables and opened things say, over the values that the scene's ledger gives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from sexton.claims import Overlap, State
from sexton.job_rules import ConcurrencyKey, Limits
from sexton.jobs import JobDefinition
from sexton.queue_rules import QueueRule
from sexton.store import indexes
from sexton.store.reads import LedgerReader
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, PythonTarget, ShellTarget, Target
from sexton.views import DecisionTotals, RunFilter
from sexton_tui.console.core import details, table_shape, tables
from sexton_tui.console.core.job_page import overview_lines
from sexton_tui.console.core.keys import PANES, help_lines
from sexton_tui.console.core.lines import Row, row
from sexton_tui.console.core.overview import feed_lines, takeover_lines
from sexton_tui.console.core.run_page import run_lines
from tests.support import scene
from tests.support.scene import NOW, SECOND


@pytest.fixture(scope="module")
def reader() -> LedgerReader:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    indexes.metadata.create_all(engine)
    with engine.begin() as connection:
        scene.seed(connection, hostile=True)
    return LedgerReader(engine.connect, now=lambda: NOW)


def texts(row: object) -> list[str]:
    assert isinstance(row, Row)
    return [cell.text for cell in row.cells]


def test_every_row_has_a_cell_for_every_column(reader: LedgerReader) -> None:
    overview = reader.overview()
    takeover = reader.takeover(41)
    for columns, made in (
        (tables.TAKEOVER_COLUMNS, tables.takeover_row(takeover.takeover, NOW)),
        (tables.DECISION_COLUMNS, tables.decision_row(takeover.decisions[0], NOW)),
        (tables.JOB_COLUMNS, tables.job_row(reader.jobs_page().jobs[0], NOW)),
        (tables.RUN_COLUMNS, tables.run_row(reader.runs_page().runs[0], NOW)),
        (tables.RUN_COLUMNS, tables.running_row(reader.running()[0], NOW)),
        (tables.WORKER_COLUMNS, tables.worker_row(overview.workers[0], NOW)),
        (tables.QUEUE_COLUMNS, tables.queue_row(overview.queues[0], NOW)),
        (tables.EVENT_COLUMNS, tables.event_row(reader.events_page()[0], NOW)),
    ):
        assert len(made.cells) == len(columns)


def test_a_queue_row_tells_its_limits_in_short(reader: LedgerReader) -> None:
    queue = replace(reader.overview().queues[0], running=3)
    limits = [QueueRule(), QueueRule(slots=4), QueueRule(rate=0.5), QueueRule(4, 10.0)]
    told = [texts(tables.queue_row(replace(queue, rule=rule), NOW))[-1] for rule in limits]
    assert told == ["-", "3 of 4 run", "30/m", "3 of 4 run, 10/s"]


def test_a_takeover_row_tells_gap_and_decisions(reader: LedgerReader) -> None:
    newest, older, _ = reader.takeovers()
    assert texts(tables.takeover_row(newest, NOW)) == [
        *("41", "sched-2", "02:13:07", "now", "-", "12m40s"),
        *("17", "2", "12", "1", "0", "2"),
    ]
    assert texts(tables.takeover_row(older, NOW))[3:5] == ["02:13:07", "vanished"]
    first = replace(newest, gap_from=None, gap_until=None)
    assert texts(tables.takeover_row(first, NOW))[5] == "-"
    assert texts(tables.takeover_row(replace(newest, gap_until=None), NOW))[5] == "open"


def test_a_decision_row_has_the_reason_where_it_is_seen(reader: LedgerReader) -> None:
    decision = next(one for one in reader.takeover(41).decisions if one.job == "minutely-sync")
    assert texts(tables.decision_row(decision, NOW)) == [
        *("minutely-sync", "13", "latest: 02:13:00 fired, 12 merged into it"),
        *("after 02:00:00 to 02:13:00", "1 fired, 12 merged", "latest", "takeover"),
    ]


def test_a_job_row_tells_state_next_last_and_strip(reader: LedgerReader) -> None:
    jobs = {job.name: tables.job_row(job, NOW) for job in reader.jobs_page().jobs}
    assert texts(jobs["sync-eu"]) == [
        *("sync-eu", "active", "02:35:00", "02:30:00 failed", "407 ms", "11 ms"),
        *("✗✗✗✗✗✗✗".rjust(tables.STRIP_WIDTH), "*/5 * * * * Europe/Berlin", "default", "data"),
    ]
    assert texts(jobs["backup-db"])[1:4] == ["paused", "-", "never"]


def test_a_worker_row_says_whether_it_serves(reader: LedgerReader) -> None:
    worker = reader.workers()[0]
    assert texts(tables.worker_row(worker, NOW))[1] == "serves"
    assert texts(tables.worker_row(replace(worker, is_draining=True), NOW))[1] == "drains"
    assert texts(tables.worker_row(replace(worker, age=31 * SECOND), NOW))[1] == "silent"
    assert texts(tables.worker_row(replace(worker, stopped_at=NOW), NOW))[1] == "stopped"


def test_what_started_before_its_tick_by_another_clock_is_not_late(reader: LedgerReader) -> None:
    run = replace(reader.runs_page().runs[0], lateness=timedelta(milliseconds=-4))
    assert texts(tables.run_row(run, NOW))[4] == "0 ms"
    claim = replace(reader.running()[0], started_at=NOW + timedelta(milliseconds=12))
    assert texts(tables.running_row(claim, NOW))[5] == "0 ms"


def test_the_feed_keeps_to_its_room_and_shows_what_runs_first(reader: LedgerReader) -> None:
    overview, runs = reader.overview(), reader.runs_page().runs
    lines = [one.text for one in feed_lines(reader.running(), runs, overview, 6)]
    assert len(lines) == 6
    assert lines[0] == "    02:19:01  running    weekly-report  for 11m40s  worker-2"
    assert "running" in lines[1]
    assert "running" not in lines[2]
    assert [one.text for one in feed_lines((), (), overview, 6)] == ["no runs yet"]


def test_newest_takeovers_on_one_line_each(reader: LedgerReader) -> None:
    lines = [one.text for one in takeover_lines(reader.takeovers(2), reader.overview())]
    assert lines == [
        "   41  sched-2  02:13:07  gap 12m40s  17 missed: 2 fired, 12 merged, 1 skipped, 2 held",
        "   40  sched-1  Mar 28 17:13  gap 7.0 s  nothing missed",
    ]


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (60, "   41  sched-2  02:13:07  gap 12m40s  17 missed, 2 held"),
        (45, "   41  sched-2  02:13:07  17 missed, 2 held"),
        (34, "   41  02:13:07  17 missed, 2 held"),
    ],
)
def test_what_a_takeover_left_held_has_room_on_a_narrow_screen(reader: LedgerReader, width: int, told: str) -> None:
    assert takeover_lines(reader.takeovers(1), reader.overview(), width)[0].text == told


def test_what_nobody_started_is_told_of_a_takeover_that_missed_nothing(reader: LedgerReader) -> None:
    quiet = replace(reader.takeovers(2)[1], not_started=DecisionTotals(1, 1, held=1))
    (told,) = takeover_lines([quiet], reader.overview())
    assert told.text == "   40  sched-1  Mar 28 17:13  gap 7.0 s  1 not started: 1 held"


def test_a_job_opens(reader: LedgerReader) -> None:
    text = "\n".join(one.text for one in overview_lines(reader.opened_job("backup-db"), NOW, 80))
    for part in ("paused", "ana: storage moves tonight", "0 3 * * *  UTC", "target    true", "at 03:00 every day"):
        assert part in text
    ticks = "\n".join(one.text for one in overview_lines(reader.opened_job("gl-export"), NOW, 80))
    assert "Sun 2026-03-29 02:45:00 UTC" in ticks
    assert "in 14m19s" in ticks
    assert "Next ticks in UTC\n" in ticks
    held = overview_lines(reader.opened_job("gl-export"), NOW, 80, reader.overview().proposals)
    assert "held      2 ticks in proposal 1, until Apr 05 02:13: pane 3 answers" in [one.text for one in held]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (CommandTarget(("echo", "a b")), "echo a b"),
        (ShellTarget("\nset -e\nrm x\n"), "sh: set -e …"),
        (ShellTarget("rm x"), "sh: rm x"),
        (PythonTarget("module:function"), "python: module:function"),
        (HttpTarget("https://me:pw@h/run?token=abc", "PUT"), "PUT https://me:(hidden)@h/run?token=(hidden)"),
        (CeleryTarget("redis://:pw@b/0", "billing.nightly"), "celery: billing.nightly"),
    ],
)
def test_a_target_on_one_line(target: Target, words: str) -> None:
    assert details.target_words(target) == words


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({}, "skip"),
        ({"overlap": Overlap.QUEUE, "queue_limit": 5}, "queue, at most 5 wait"),
        ({"concurrency_key": ConcurrencyKey("tape", 2)}, "skip, of 2 at once with the key tape"),
    ],
)
def test_what_an_overlapping_tick_meets(rules: dict[str, Any], words: str) -> None:
    assert details.overlap_words(JobDefinition("a", (), CommandTarget(("x",)), **rules)) == words


def test_limits_are_told_as_files_write_them() -> None:
    limits = Limits(512_000_000, timedelta(minutes=10), 64)
    assert details.limits_words(limits) == "memory 512MB, processor time 10m, 64 open files"
    assert details.limits_words(Limits(open_files=8)) == "8 open files"


def test_a_run_opens_into_what_was_kept_of_its_output(reader: LedgerReader) -> None:
    run = reader.runs_page(RunFilter(job="sync-eu"), limit=1).runs[0]
    output = reader.run_output(run.token)
    text = "\n".join(one.text for one in run_lines(output, NOW))
    for part in ("failed, exit code 7  on worker-2", "stdout  120 B written, the last 45 B kept", "\\x1b[31mretry"):
        assert part in text
    nothing = run_lines(replace(output, stdout=None, stderr=None), NOW)
    assert any("stdout  120 B written, nothing kept" in one.text for one in nothing)
    retried = replace(output, run=replace(run, outcome=State.READY))
    assert "ended, to be tried again" in run_lines(retried, NOW)[1].text


def test_a_takeover_opens(reader: LedgerReader) -> None:
    lines = [one.text for one in details.takeover_lines(reader.takeover(41, limit=1), NOW)]
    assert lines[0] == "term 41: sched-2 took over from sched-1, which vanished: its heartbeat stopped"
    assert "4 jobs, 17 missed: 2 fired, 12 merged, 1 skipped, 2 held" in lines
    assert "only the first 1 decisions are shown" in lines
    quiet = [one.text for one in details.takeover_lines(reader.takeover(40), NOW)]
    assert "no tick was missed: claims had been written ahead" in quiet


def test_hostile_text_is_cleaned_in_every_view(reader: LedgerReader) -> None:
    job = reader.opened_job(scene.HOSTILE_NAME)
    output = reader.run_output(9999)
    lines = [
        *overview_lines(job, NOW, 80),
        *run_lines(output, NOW),
        *details.takeover_lines(reader.takeover(41), NOW),
        *feed_lines((), [output.run], reader.overview(), 9),
    ]
    rows = [
        tables.job_row(job.job, NOW),
        tables.run_row(output.run, NOW),
        tables.event_row(reader.events_page(limit=1)[0], NOW),
        *(tables.decision_row(decision, NOW) for decision in reader.takeover(41).decisions),
    ]
    text = "".join(one.text for one in lines) + "".join(cell.text for row in rows for cell in row.cells)
    assert text.count("a [/x] b\\x1b[2J\\u202e[@click=app.quit]x") > 8
    assert not any(character in text for character in "\x1b\x07\u202e")


@pytest.mark.parametrize(
    ("keys", "key", "place", "kept"),
    [(["a", "b", "c"], "c", 0, 2), (["a", "c"], "b", 1, 1), (["a"], "b", 5, 0), ([], None, 3, 0)],
)
def test_the_cursor_keeps_its_row_or_its_place(keys: list[str], key: str | None, place: int, kept: int) -> None:
    assert table_shape.keep_place(keys, key, place) == kept


def test_a_cursor_on_the_newest_follows_the_newest() -> None:
    assert table_shape.keep_place(["c", "b", "a"], "b", 0, follows_top=True) == 0
    assert table_shape.keep_place(["c", "b", "a"], "a", 1, follows_top=True) == 2


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [row("1", "ab", "東京"), row("2", "a", "")]
    assert table_shape.column_widths(("abc", "x"), rows) == [3, 4]


def test_an_event_tells_the_reason_first_and_its_job_once(reader: LedgerReader) -> None:
    detail = {"effective_at": "now", "job": "a", "revision": 2, "why": "it moves", "predecessor": None}
    event = replace(reader.events_page()[-1], detail=detail)
    assert tables.detail_text(event) == "why it moves, revision 2, effective_at now"


def test_help_names_what_is_offered() -> None:
    def told(*, can_kill: bool, read_only: bool) -> str:
        return "\n".join(one.text for one in help_lines(can_kill=can_kill, read_only=read_only))

    assert "kill the leader" in told(can_kill=True, read_only=False)
    assert "kill the leader" not in told(can_kill=False, read_only=False)
    assert "pause the job" not in told(can_kill=True, read_only=True)
    assert [pane.key for pane in PANES] == [str(number) for number in range(1, len(PANES) + 1)]
