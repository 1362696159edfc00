"""The console while the database hangs: it answers keys, says how old its data is, comes back by itself, and can be
left at once. The server and its backends are stopped (SIGSTOP), so that connections stay open and nothing answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import select
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from sexton_tui.console import polling
from sexton_tui.console.app import ConsoleOptions, SextonConsole
from tests.screens.conftest import shown, until
from tests.support import reaper, scene
from tests.support.ledgers import make_ledger
from tests.support.postgres import PostgresServer
from tests.support.processes import SEXTON
from tests.support.waiting import eventually


@pytest.fixture
def ledger_url(own_postgres_server: PostgresServer) -> Iterator[str]:
    url = own_postgres_server.create_database()
    make_ledger(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        now = connection.exec_driver_sql("SELECT now()").scalar_one()
        scene.seed(connection, now)
    engine.dispose()
    yield url
    own_postgres_server.thaw()


def test_five_keys_are_answered_while_the_database_is_stopped(
    own_postgres_server: PostgresServer, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "READ_WITHIN", 3600.0)  # a screen that waited for a read would wait for ever

    async def scenario() -> None:
        app = SextonConsole(ConsoleOptions(ledger_url))
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await until(pilot, lambda: "sched-2" in shown(app), "the first data arrives")
            own_postgres_server.freeze()
            for key, pane in (("2", "takeovers"), ("4", "jobs"), ("5", "runs"), ("6", "workers"), ("1", "overview")):
                await pilot.press(key)
                assert app.pane.id == pane
            await until(pilot, lambda: "stale:" in shown(app) and "s old" in shown(app), "it says how old its data is")
            assert "sched-2" in shown(app)  # the last known data stays
            assert app.main.has_class("stale")
            await pilot.press("question_mark")
            assert "the command palette" in shown(app)
            await pilot.press("escape")
            own_postgres_server.thaw()
            await until(pilot, lambda: not app.main.has_class("stale"), "it comes back by itself")

    asyncio.run(scenario())


def test_it_can_be_left_while_the_database_is_stopped(own_postgres_server: PostgresServer, ledger_url: str) -> None:
    with OnTerminal(["console", "--database", ledger_url]) as console:
        eventually(lambda: b"sched-2" in console.drawn, within=60, what="the console shows the leader")
        own_postgres_server.freeze()
        eventually(lambda: b"stale:" in console.drawn, within=60, what="the console says that its data is stale")
        console.type(b"q")
        assert console.process.wait(60) == 0


def test_it_starts_without_data_and_can_be_left_when_the_database_never_answers(tmp_path: Path) -> None:
    """A database that cannot be opened: the sentence is on the screen, and keys work."""

    async def scenario() -> None:
        app = SextonConsole(ConsoleOptions(f"sqlite:///{tmp_path}/no/such/ledger.db"))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "no data yet" in shown(app), "it says that there is no data")
            said = "unable to open database file"  # lines break where the path ends
            await until(pilot, lambda: said in " ".join(shown(app).split()), "it says why")
            await pilot.press("4")
            assert app.pane.id == "jobs"

    asyncio.run(scenario())


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_dumb_terminal_gets_one_sentence(tmp_path: Path, term: str) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    with OnTerminal(["console", "--database", url], term=term) as console:
        assert console.process.wait(60) == 1
        eventually(lambda: b"sexton status --watch" in console.drawn, within=60, what="the sentence is printed")
        assert console.drawn.count(b"\n") == 1


def test_without_a_terminal_there_is_one_sentence_and_no_hang(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    done = subprocess.run(
        [SEXTON, "console", "--database", url],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sexton: the console needs a terminal; use `sexton status --watch`\n"


class OnTerminal:
    """A `sexton` command (or another program) on a terminal of its own; what it draws is read all the time."""

    def __init__(self, arguments: list[str], term: str = "xterm-256color", program: str | Path | None = SEXTON) -> None:
        self.drawn = b""
        self._master, slave = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TEXTUAL")}
        self.process = subprocess.Popen(
            arguments if program is None else [program, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": term, "COLUMNS": "120", "LINES": "40", "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(slave)
        reaper.watch("process", self.process.pid)
        self._is_reading = True
        self._is_open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the other end has gone
            while self._is_reading:
                if select.select([self._master], [], [], 0.1)[0]:
                    if not (data := os.read(self._master, 65_536)):
                        return
                    self.drawn += data

    def stop_reading(self) -> None:
        """From now on the terminal takes what fits into it and no more."""
        self._is_reading = False
        self._reader.join(60)

    def close(self) -> None:
        """Take the terminal away."""
        self.stop_reading()
        if self._is_open:
            self._is_open = False
            os.close(self._master)

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def __enter__(self) -> OnTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        reaper.forget("process", self.process.pid)
        self.close()
