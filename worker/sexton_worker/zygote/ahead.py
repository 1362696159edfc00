"""Orders that are sent ahead: they lie in a socket until one of both sides takes them.

The zygote takes the next when one of its runs has ended, and does not wait for the worker's word; the worker takes back
what is to wait elsewhere or not to begin at all. The kernel hands each message to one of them: what was taken back is
never begun. What lies there when the zygote dies has not begun either.
"""

from __future__ import annotations

import contextlib
import os

MOST_BYTES = 16 * 1024  # of an order that is sent ahead; others wait in the worker


# Both descriptors do not block.


def put(descriptor: int, frame: bytes) -> bool:
    """Whether there was room for it."""
    try:
        return len(frame) <= MOST_BYTES and os.write(descriptor, frame) > 0
    except OSError:
        return False


def taken(descriptor: int) -> bytes | None:
    """The frame that was put there first, the caller's now; None: there is none."""
    with contextlib.suppress(OSError):
        return os.read(descriptor, MOST_BYTES) or None
    return None
