"""``q`` ends what is watched on a terminal, as Ctrl-C does: keys are taken as they come and not shown.

The terminal is as it was afterwards, also where a SIGTERM ends the program. Whoever has no terminal to read from, or
stands in the background, is left alone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_KEYS = b"qQ"


@contextmanager
def leaving_by_key() -> Iterator[threading.Event]:
    """Within, ``q`` interrupts the main thread as Ctrl-C does; the event is set where it was that key."""
    pressed = threading.Event()
    if not _may_read():
        yield pressed
        return
    keyboard, before = sys.stdin.fileno(), termios.tcgetattr(sys.stdin)
    woken, wakes = os.pipe()
    listening = threading.Thread(target=_listen, args=(keyboard, woken, pressed), name="keys", daemon=True)
    terminated = signal.signal(signal.SIGTERM, _end)
    try:
        tty.setcbreak(keyboard)
        listening.start()
        yield pressed
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTERM, terminated)
        os.close(wakes)
        listening.join()
        os.close(woken)


def _may_read() -> bool:
    if threading.current_thread() is not threading.main_thread() or not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # a terminal that does not control this process: nobody stops it for reading
        return True


def _listen(keyboard: int, woken: int, pressed: threading.Event) -> None:
    """Until a key of ``_KEYS``, the terminal's end, or the other end of ``woken`` is closed."""
    while True:
        ready, _, _ = select.select([keyboard, woken], [], [])
        if woken in ready:
            return
        try:
            key = os.read(keyboard, 1)
        except OSError:
            return
        if not key:
            return
        if key in _KEYS:
            pressed.set()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            return


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
