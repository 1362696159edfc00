"""What asks a process to end, with real signals."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton.ending_signals import ending_signals, on_ending_signals
from tests.support.waiting import eventually

LONG = 100.0


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


def test_signals_and_the_end_are_news_in_their_order() -> None:
    with ending_signals() as endings:
        assert not endings.came(within=0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert endings.came(within=0)
        os.kill(os.getpid(), signal.SIGINT)
        endings.put(None)
        assert [endings.next() for _ in range(3)] == [signal.SIGTERM, signal.SIGINT, None]
        assert not endings.came(within=0)


def test_a_signal_that_another_thread_took_is_not_lost() -> None:
    """It does not disturb what the main thread waits for: without the pipe it would be heard with the next news."""

    def take() -> None:
        state = Path(f"/proc/self/task/{threading.main_thread().native_id}/stat")
        eventually(lambda: state.read_text().rpartition(")")[2].split()[0] == "S", LONG, "the main thread waits")
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with ending_signals() as endings:
        taker = threading.Thread(target=take)
        began = time.monotonic()
        taker.start()
        assert endings.came(within=LONG)
        assert time.monotonic() - began < LONG
        assert endings.next() is signal.SIGTERM
        taker.join()
