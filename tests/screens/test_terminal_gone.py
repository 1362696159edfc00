"""`sexton up` with its console, whose terminal is closed or stands still: all its processes are ended in order."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.screens.test_console_hang import OnTerminal
from tests.support import reaper
from tests.support.waiting import eventually

JOBS = """\
version: 1
jobs:
  often:
    schedule: {every: 1s}
    command: ["true"]
"""


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


@pytest.mark.parametrize(
    "end", [close_terminal, hang_up, close_then_terminate, stand_still_then_terminate], ids=lambda end: end.__name__
)
def test_up_ends_with_all_its_processes(
    end: Callable[[OnTerminal], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs.yaml").write_text(JOBS)
    mark = f"terminal-{secrets.token_hex(8)}"
    reaper.watch("mark", mark)  # which may start the reaper: it does not bear the mark
    monkeypatch.setenv(reaper.MARK, mark)
    monkeypatch.chdir(tmp_path)
    try:
        with OnTerminal(["up", "jobs.yaml", "--schedulers", "1", "--workers", "1"]) as up:
            eventually(lambda: b"Needs a human" in up.drawn, within=90, what="the console is drawn")
            end(up)
            assert up.process.wait(120) == 0
        eventually(lambda: not reaper.marked(mark), within=60, what="no process is left")
        logs = tmp_path / ".sexton" / "logs"
        for name, last_word in (("node-1", "node.stopped"), ("worker-1", "worker.ended")):  # asked, not left to die
            assert last_word in (logs / f"{name}.log").read_text()
    finally:
        reaper.kill_marked(mark)
        reaper.forget("mark", mark)
