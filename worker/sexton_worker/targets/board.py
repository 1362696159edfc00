"""Memory that a Python child shares with its worker: what costs no system call to say and none to see.

The child notes the run that it begins, and the plain ends of runs (succeeded, wrote nothing) in a ring. The worker
counts how often it took some of the child's output. Neither waits for the other, and what the child wrote outlives it.

A record is believed only if its check fits and it names the token that is waited for: so a half-written or an old one
is none yet, whatever the order in which memory becomes visible. The worker never has more than ``RING`` runs in a
child's hands, so nothing is overwritten before it was read.
"""

from __future__ import annotations

import mmap
import os
import struct

RING = 64

_BEGUN = struct.Struct("qdq")  # token, elapsed seconds, check
_ENDED = struct.Struct("qddq")  # token, elapsed seconds of start and end, check
_COUNT = struct.Struct("q")
_MAILED_AT = 32
_TAKEN_AT = 40
_RING_AT = 64
SIZE = _RING_AT + RING * _ENDED.size


class Board:
    """One side's view. The descriptor given is closed; ``close`` gives the memory back."""

    def __init__(self, descriptor: int) -> None:
        try:
            self._memory = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)
        self._next = 0  # in the ring, for the child the one to write, for the worker the one to read
        self.takings = 0  # noted, by the worker
        self._mailed = 0

    @staticmethod
    def descriptor() -> int:
        """New memory for a board, not inherited. Raises OSError."""
        descriptor = os.memfd_create("sexton board", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, SIZE)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def close(self) -> None:
        self._memory.close()

    # --- the child's side -------------------------------------------------------------------------------------------

    def note_begun(self, token: int, now: float) -> None:
        _BEGUN.pack_into(self._memory, 0, token, now, hash((token, now)))

    def note_ended(self, token: int, started: float, ended: float) -> None:
        """The run succeeded and there is nothing else to say of it."""
        offset = _RING_AT + self._next * _ENDED.size
        _ENDED.pack_into(self._memory, offset, token, started, ended, hash((token, started, ended)))
        self._next = (self._next + 1) % RING

    def note_mail(self) -> None:
        """One more message lies in the socket."""
        self._mailed += 1
        _COUNT.pack_into(self._memory, _MAILED_AT, self._mailed)

    def taken(self) -> int:
        """How often the worker took output of this child."""
        return int(_COUNT.unpack_from(self._memory, _TAKEN_AT)[0])

    # --- the worker's side ------------------------------------------------------------------------------------------

    def begun(self, token: int) -> float | None:
        """When the run with this token began, if it is the one that began last."""
        noted, now, check = _BEGUN.unpack_from(self._memory, 0)
        return now if noted == token and check == hash((noted, now)) else None

    def ended(self, token: int) -> tuple[float, float] | None:
        """Start and end of the run with this token, once, if it is the next in the ring."""
        noted, started, ended, check = _ENDED.unpack_from(self._memory, _RING_AT + self._next * _ENDED.size)
        if noted != token or check != hash((noted, started, ended)):
            return None
        self._next = (self._next + 1) % RING
        return started, ended

    def mailed(self) -> int:
        """How many messages the child has sent."""
        return int(_COUNT.unpack_from(self._memory, _MAILED_AT)[0])

    def note_taking(self) -> None:
        """Output of the child is about to be taken: said before, so that the child cannot miss it after."""
        self.takings += 1
        _COUNT.pack_into(self._memory, _TAKEN_AT, self.takings)
