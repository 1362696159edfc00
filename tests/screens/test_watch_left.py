"""What is watched on a terminal is left by a key, an interrupt or a signal, and the terminal is as it was."""

from __future__ import annotations

import signal
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.screens.test_console_hang import OnTerminal
from tests.support.ledgers import make_ledger
from tests.support.waiting import eventually


def takes_lines(terminal: OnTerminal) -> bool:
    """Whether what is typed is shown, and given to the program line by line."""
    local: int = termios.tcgetattr(terminal._master)[3]
    return bool(local & termios.ECHO and local & termios.ICANON)


@pytest.mark.parametrize(
    ("leave", "code"),
    [
        (lambda terminal: terminal.type(b"xq"), 0),
        (lambda terminal: terminal.process.send_signal(signal.SIGINT), 130),
        (lambda terminal: terminal.process.send_signal(signal.SIGTERM), 143),
    ],
    ids=["q", "interrupt", "terminate"],
)
def test_the_terminal_is_as_it_was_afterwards(leave: Callable[[OnTerminal], None], code: int, tmp_path: Path) -> None:
    make_ledger(url := f"sqlite:///{tmp_path}/ledger.db")
    with OnTerminal(["queues", "--watch", "--database", url]) as terminal:
        eventually(lambda: b"every 2 s" in terminal.drawn, 60.0, "a first look")
        assert not takes_lines(terminal)
        leave(terminal)
        assert terminal.process.wait(60) == code
        assert takes_lines(terminal)
        assert b"Traceback" not in terminal.drawn
