"""``--watch`` of listings, over the scene in a SQLite file; what happens between two looks happens in its sleep."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, update

from sexton.errors import DatabaseUnreachable
from sexton.store import tables
from sexton.store.reads import LedgerReader
from sexton_tui.cli import watching
from sexton_tui.cli.main import run
from sexton_tui.cli.watching import WATCH_SECONDS, screen_lines
from tests.support import scene
from tests.support.ledgers import make_ledger

Between = list[Callable[[], None]]
LISTINGS = (
    *(("status",), ("cluster",), ("jobs",), ("jobs", "sync-eu"), ("ticks", "minutely-sync"), ("runs",), ("workers",)),
    *(("queues",), ("queues", "list"), ("holds",), ("holds", "list"), ("takeovers",), ("takeovers", "41"), ("alerts",)),
    *(("events",), ("history",), ("cursors", "list"), ("clock",), ("inputs",), ("settings",), ("settings", "list")),
    *(("next", "--job", "sync-eu"), ("explain", "sync-eu", "last"), ("runs", "minutely-sync", "--calendar")),
    *(("workers", "show", "worker-1"), ("queues", "show", "gpu"), ("cluster", "sched-2"), ("events", "1")),
    *(("settings", "show", "horizon"), ("history", "gl-export", "--revision", "1"), ("holds", "show", "1")),
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        scene.seed(connection, datetime.now(UTC).replace(microsecond=0))
    yield engine
    engine.dispose()


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """What happens after each look, in order; then Ctrl-C."""
    steps: Between = []
    sleep = time.sleep

    def go_on(seconds: float) -> None:
        if seconds != WATCH_SECONDS:  # another thread's, or of a database that is busy
            sleep(seconds)
        elif steps:
            steps.pop(0)()
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", go_on)
    return steps


def on_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is a terminal of 80 by 12 from now on."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=None: os.terminal_size((80, 12)))
    monkeypatch.setenv("TERM", "xterm")


def watch(engine: Engine, *arguments: str) -> int:
    return run([*arguments, "--watch", "--database", str(engine.url)])


def test_every_listing_is_watched_and_ended_by_an_interrupt(
    engine: Engine, between: Between, capsys: pytest.CaptureFixture[str]
) -> None:
    for listing in LISTINGS:
        between.append(lambda: None)
        assert watch(engine, *listing, "--output", "json") == 130, listing
        out, err = capsys.readouterr()
        assert err == "", listing
        decoder, documents = json.JSONDecoder(), []
        while out := out.lstrip():
            document, end = decoder.raw_decode(out)
            documents.append(document)
            out = out[end:]
        assert len(documents) == 2, listing


def test_a_screen_shows_each_look_in_place_of_the_one_before(
    engine: Engine, between: Between, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def quarantine_all() -> None:
        with engine.begin() as connection:
            connection.execute(update(tables.jobs).values(quarantined_at=datetime.now(UTC), quarantine_reason="loops"))

    on_a_screen(monkeypatch)
    between.append(quarantine_all)
    assert watch(engine, "jobs") == 130
    first, second = capsys.readouterr().out.split("\x1b[H")[1:]
    assert first.startswith("\x1b[2J")
    assert not second.startswith("\x1b[2J")
    assert "active" in first
    assert "active" not in second
    assert second.count("quarantined") >= 3
    for shown in (first, second):
        assert len(shown.strip().splitlines()) <= 12
        assert "every 2 s" in shown
        assert "below" in shown


def test_while_the_database_is_away_the_last_look_stays_with_its_age(
    engine: Engine, between: Between, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queues = LedgerReader.queues

    def away(self: LedgerReader) -> Any:
        raise DatabaseUnreachable("the database does not answer")

    between += [
        lambda: monkeypatch.setattr(LedgerReader, "queues", away),
        lambda: None,
        lambda: monkeypatch.setattr(LedgerReader, "queues", queues),
    ]
    on_a_screen(monkeypatch)
    assert watch(engine, "queues") == 130
    before, gone, still_gone, back = capsys.readouterr().out.split("\x1b[H")[1:]
    for shown in (gone, still_gone):
        assert re.search(r"!! AWAY: the database does not answer; what follows is \d+ s old, of ..:..:.. UTC", shown)
    for shown in (before, gone, still_gone, back):
        assert "gpu" in shown
    assert "AWAY" not in before + back


def test_a_database_that_hangs_holds_up_neither_the_age_nor_an_interrupt(
    engine: Engine, between: Between, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queues, show_again, is_told = LedgerReader.queues, watching._Screen.show_again, threading.Event()

    def hanging(self: LedgerReader) -> Any:
        assert is_told.wait(60)
        monkeypatch.setattr(LedgerReader, "queues", queues)
        return queues(self)

    def telling(self: Any, look: Any, why: str) -> None:
        show_again(self, look, why)
        is_told.set()

    monkeypatch.setattr(watching._Screen, "show_again", telling)
    monkeypatch.setattr(watching, "SILENT_SECONDS", 0.0)
    between.append(lambda: monkeypatch.setattr(LedgerReader, "queues", hanging))
    on_a_screen(monkeypatch)
    monkeypatch.setattr(watching._Looking, "answer_within", quickly(watching._Looking.answer_within))
    assert watch(engine, "queues") == 130
    _, hung, *_, back = capsys.readouterr().out.split("\x1b[H")[1:]
    assert "!! AWAY: the database does not answer; what follows is" in hung
    assert "AWAY" not in back


def test_an_interrupt_does_not_wait_for_a_database_that_hangs(
    engine: Engine, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_hanging, is_released, out = threading.Event(), threading.Event(), sys.stdout
    answer_within = watching._Looking.answer_within

    def hanging(self: LedgerReader) -> Any:
        is_hanging.set()
        assert is_released.wait(60)
        return ()

    def interrupted(looking: Any, seconds: float) -> Any:
        if LedgerReader.queues is hanging:
            assert is_hanging.wait(60)
            raise KeyboardInterrupt
        return answer_within(looking, seconds)

    monkeypatch.setattr(watching._Looking, "answer_within", interrupted)
    between.append(lambda: monkeypatch.setattr(LedgerReader, "queues", hanging))
    assert watch(engine, "queues") == 130
    assert sys.stdout is out
    is_released.set()  # what was left behind ends, and closes its connection
    for thread in threading.enumerate():
        if thread.name == "watch":
            thread.join(60)


def quickly(answer_within: Callable[[Any, float], Any]) -> Callable[[Any, float], Any]:
    """The wait for an answer, a hundred times shorter."""
    return lambda looking, seconds: answer_within(looking, seconds / 100)


def test_a_pipe_is_told_once_that_the_database_is_away_and_once_that_it_is_back(
    engine: Engine, between: Between, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queues = LedgerReader.queues

    def away(self: LedgerReader) -> Any:
        raise DatabaseUnreachable("the database does not answer")

    between += [
        lambda: monkeypatch.setattr(LedgerReader, "queues", away),
        lambda: None,
        lambda: monkeypatch.setattr(LedgerReader, "queues", queues),
    ]
    assert watch(engine, "queues", "-o", "jsonl") == 130
    out, err = capsys.readouterr()
    assert [line.split(";")[0] for line in err.splitlines()] == [
        "sexton: the database does not answer",
        "sexton: the database answers again",
    ]
    assert len(out.splitlines()) % 2 == 0


def test_what_cannot_be_read_at_first_is_an_error_as_ever(between: Between, capsys: pytest.CaptureFixture[str]) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    assert run(["jobs", "--watch", "--database", url]) == 3
    assert "127.0.0.1" in capsys.readouterr().err
    assert between == []


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["a", "b"], ["a", "b", "foot"]),
        (["a", "b", "c"], ["a", "b", "c", "foot"]),
        (["a", "b", "c", "d", "e"], ["a", "b", "c", "foot, 2 more lines below"[:20]]),
        (["x" * 41, "b"], ["x" * 41, "foot, 1 more line below"[:20]]),  # three rows of 20 cells
        (["日本語" * 5, "b", "c"], ["日本語" * 5, "b", "foot, 1 more line below"[:20]]),  # of two cells each
        (["\x1b[31m" + "x" * 20 + "\x1b[0m", "b", "c"], ["\x1b[31m" + "x" * 20 + "\x1b[0m", "b", "c", "foot"]),
    ],
)
def test_as_much_is_shown_as_a_screen_of_20_by_4_holds(lines: list[str], shown: list[str]) -> None:
    assert screen_lines(lines, 20, 4, "foot") == shown
