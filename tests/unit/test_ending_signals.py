"""What asks a process to end, with real signals."""

from __future__ import annotations

import os
import signal

from sexton.ending_signals import on_ending_signals


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
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with on_ending_signals(heard.append):
            os.kill(os.getpid(), signal.SIGHUP)
            assert heard == []
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
