"""Memory that worker, zygote and the commands at their start share: which run has which process.

One place for each order that the zygote may have at once. The worker notes in it the end of the run's lease, before it
sends the order and whenever that is renewed. The zygote notes a run before it begins it, so of a zygote that died at
any instruction the worker knows what it had certainly not begun, and which processes to end. A process that could not
become its command notes why. But for the lease, nobody reads a place while its writer may be at it: the worker after
the zygote's death, the zygote after the process's.
"""

from __future__ import annotations

import mmap
import os
import struct

_RUN = struct.Struct("=qqdii")  # token, process (0: not known yet), start, how far it came, errno
_PROCESS = struct.Struct("=q")
_PROCESS_AT = 8
_FAILURE = struct.Struct("=ii")
_FAILURE_AT = 24
_LEASE = struct.Struct("=d")
_LEASE_AT = 32
_PLACE_SIZE = 40


class Roster:
    """One side's view. The descriptor given is closed."""

    def __init__(self, descriptor: int, places: int) -> None:
        try:
            self._memory = mmap.mmap(descriptor, places * _PLACE_SIZE)
        finally:
            os.close(descriptor)

    @staticmethod
    def descriptor(places: int) -> int:
        """New memory for a roster, not inherited. Raises OSError."""
        descriptor = os.memfd_create("sexton roster", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, places * _PLACE_SIZE)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def close(self) -> None:
        self._memory.close()

    def note(self, place: int, token: int, started: float) -> None:
        """The run with this token is about to begin."""
        _RUN.pack_into(self._memory, place * _PLACE_SIZE, token, 0, started, 0, 0)

    def note_lease(self, place: int, lease: float) -> None:
        """The run in this place may go on until then; infinity: it may outlive its lease. Eight bytes at once: never
        half of it is seen."""
        _LEASE.pack_into(self._memory, place * _PLACE_SIZE + _LEASE_AT, lease)

    def lease(self, place: int) -> float:
        """Until when the run in this place may go on."""
        (lease,) = _LEASE.unpack_from(self._memory, place * _PLACE_SIZE + _LEASE_AT)
        return float(lease)

    def note_process(self, place: int, pid: int) -> None:
        """The run has this process."""
        _PROCESS.pack_into(self._memory, place * _PLACE_SIZE + _PROCESS_AT, pid)

    def note_failure(self, place: int, how_far: int, errno: int) -> None:
        """The process in this place could not become its command."""
        _FAILURE.pack_into(self._memory, place * _PLACE_SIZE + _FAILURE_AT, how_far, errno)

    def begun(self, place: int, token: int) -> tuple[int, float] | None:
        """Process (0: not known) and start of the run, if it may have begun in this place."""
        noted, pid, started, _, _ = _RUN.unpack_from(self._memory, place * _PLACE_SIZE)
        return (pid, started) if noted == token else None

    def failure(self, place: int) -> tuple[int, int]:
        """How far the process came and the errno; zeros if it became its command."""
        how_far, errno = _FAILURE.unpack_from(self._memory, place * _PLACE_SIZE + _FAILURE_AT)
        return int(how_far), int(errno)
