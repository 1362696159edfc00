"""The terminal this process was started on, which may go away or stand still at any moment.

A terminal that was closed answers writes with EIO and reads with an end; one that stands still (Ctrl-S, a frozen
multiplexer) takes nothing and lets a writer wait for ever. Whoever ends processes in order must do neither: fail at
such a terminal, or wait for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys

_STANDARD = (0, 1, 2)


def is_terminal_gone() -> bool:
    """Whether a terminal on a standard descriptor was closed. False where there never was one."""
    return any(_is_gone(descriptor) for descriptor in _STANDARD)


def leave_terminal_if_gone() -> None:
    """Put nothing (/dev/null) where a closed terminal was: from now on, no print fails because of it."""
    for descriptor in _STANDARD:
        if _is_gone(descriptor):
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, descriptor)
            os.close(nothing)


def tell(text: str) -> None:
    """Print a line on stderr, unless its terminal is gone or takes nothing: never raises, never waits for a screen."""
    leave_terminal_if_gone()
    if _is_device(2) and not _events(2, select.POLLOUT) & select.POLLOUT:
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _is_gone(descriptor: int) -> bool:
    # A pipe's end looks the same and is not meant: `sexton up | head` ends as every command does.
    return _is_device(descriptor) and bool(_events(descriptor, 0) & (select.POLLHUP | select.POLLERR))


def _is_device(descriptor: int) -> bool:
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _events(descriptor: int, wanted: int) -> int:
    poll = select.poll()
    poll.register(descriptor, wanted)
    return next((events for _, events in poll.poll(0)), 0)
