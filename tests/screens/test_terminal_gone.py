"""`sexton up` with its console ends all its processes in order: its terminal was closed or stands still, or its
database was restarted meanwhile."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.screens.test_console_hang import OnTerminal
from tests.support import reaper
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually

JOBS = """\
version: 1
jobs:
  often:
    schedule: {every: 1s}
    command: ["true"]
"""
UP = ["up", "jobs.yaml", "--schedulers", "1", "--workers", "1"]
LEFT = b"\x1b[?1049l"  # the console gives the screen back


def close_terminal(up: OnTerminal) -> None:
    up.close()


def hang_up(up: OnTerminal) -> None:
    """As a closed window does: the terminal goes, and two signals say so."""
    up.close()
    up.process.send_signal(signal.SIGHUP)
    up.process.send_signal(signal.SIGHUP)


def close_then_terminate(up: OnTerminal) -> None:
    up.close()
    up.process.send_signal(signal.SIGTERM)


def stand_still_then_terminate(up: OnTerminal) -> None:
    """Nobody reads what is drawn any more; the terminal stays open."""
    up.stop_reading()
    for _ in range(400):  # the help opens and closes: more than the terminal takes
        up.type(b"?")
    up.process.send_signal(signal.SIGTERM)


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Borne by all processes that are started, in a folder with a job file."""
    (tmp_path / "jobs.yaml").write_text(JOBS)
    mark = f"terminal-{secrets.token_hex(8)}"
    reaper.watch("mark", mark)  # which may start the reaper: it does not bear the mark
    monkeypatch.setenv(reaper.MARK, mark)
    monkeypatch.chdir(tmp_path)
    yield mark
    reaper.kill_marked(mark)
    reaper.forget("mark", mark)


def assert_all_ended_in_order(mark: str) -> None:
    eventually(lambda: not reaper.marked(mark), within=60, what="no process is left")
    logs = Path(".sexton", "logs")
    for name, last_word in (("node-1", "node.stopped"), ("worker-1", "worker.ended")):  # asked, not left to die
        assert last_word in (logs / f"{name}.log").read_text()


@pytest.mark.parametrize(
    "end", [close_terminal, hang_up, close_then_terminate, stand_still_then_terminate], ids=lambda end: end.__name__
)
def test_up_ends_with_all_its_processes(end: Callable[[OnTerminal], None], mark: str) -> None:
    with OnTerminal(UP) as up:
        eventually(lambda: b"Needs a human" in up.drawn, within=90, what="the console is drawn")
        end(up)
        assert up.process.wait(120) == 0
    assert_all_ended_in_order(mark)


def is_left(up: OnTerminal) -> bool:
    """Whether it has ended; else answers that it may. A key that comes before one can have read it is no answer."""
    if up.process.poll() is None:
        up.type(b"y")
    return up.process.poll() is not None


def test_up_can_be_left_after_its_database_was_restarted(
    own_postgres_server: PostgresServer, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = own_postgres_server.create_database()
    with OnTerminal([*UP, "--database", url]) as up:
        eventually(lambda: b"Needs a human" in up.drawn, within=90, what="the console is drawn")
        monkeypatch.delenv(reaper.MARK)  # not borne by the server
        own_postgres_server.restart()
        up.type(b"q")
        eventually(lambda: b"stop the cluster" in up.drawn, within=60, what="it is asked")
        eventually(lambda: is_left(up), within=120, every=1.5, what="it is left")
        assert up.process.returncode == 0
    assert b"does not answer" not in up.drawn.rpartition(LEFT)[2]
    assert_all_ended_in_order(mark)
