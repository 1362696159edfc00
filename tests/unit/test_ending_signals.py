"""What asks a process to end, with real signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from sexton.ending_signals import on_ending_signals


@pytest.fixture(autouse=True)
def _a_terminal_is_heard() -> Iterator[None]:
    """Whatever this process was started under."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_closed_terminal_asks_once_however_often_it_says_so() -> None:
    heard: list[signal.Signals] = []
    with on_ending_signals(heard.append):
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert heard == [signal.SIGHUP]
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        assert heard == [signal.SIGHUP, signal.SIGTERM]


def test_nohup_keeps_a_closed_terminal_away() -> None:
    heard: list[signal.Signals] = []
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with on_ending_signals(heard.append):
        os.kill(os.getpid(), signal.SIGHUP)
        assert heard == []
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
