"""Memory that a Python child shares with its worker and the zygote: what costs no system call to say and none to see.

The child notes the run that it begins, and the plain ends of runs (succeeded, wrote nothing) in a ring. The worker
counts how often it took some of the child's output. Neither waits for the other, and what the child wrote outlives it.
For the zygote, which ends runs when the worker cannot, the worker notes how long each may take and which has ended.

A record is believed only if its check fits and it names the token that is waited for: so a half-written or an old one
is none yet, whatever the order in which memory becomes visible. The worker never has more than ``RING`` runs in a
child's hands, so nothing is overwritten before it was read.
"""

from __future__ import annotations

import mmap
import os
import struct

RING = 128

_BEGUN = struct.Struct("qdq")  # token, elapsed seconds, check
_ENDED = struct.Struct("qddq")  # token, elapsed seconds of start and end, check
_COUNT = struct.Struct("q")
_MAILED_AT = 32
_TAKEN_AT = 40
_SETTLED_AT = 48  # the token of the last run whose end the worker knows
_PARTING_AT = 56  # whether the worker is ending the present run
_RING_AT = 64
_GIVEN = struct.Struct("qdd?q")  # token, seconds that it may take, seconds from SIGTERM to SIGKILL, leased, check
_LEASE = struct.Struct("d")
_GIVEN_AT = _RING_AT + RING * _ENDED.size
_CUT_AT = _GIVEN_AT + RING * _GIVEN.size  # the token of the run that the zygote ended
_CUT_FOR_AT = _CUT_AT + _COUNT.size  # why
_LEASE_AT = _CUT_FOR_AT + _COUNT.size  # until when the leased runs of the hand may go on (elapsed seconds)
_HAND_AT = _LEASE_AT + _LEASE.size
SIZE = _HAND_AT + _GIVEN.size


CUT_AT_DEADLINE, CUT_WITH_LEASE = 0, 1  # for what the zygote ended a run


class Present:
    """The run that a child is in: its token, its start (elapsed seconds), the seconds that it may take, those from
    SIGTERM to SIGKILL, and the end of its lease (elapsed seconds) if it must not outlive that."""

    __slots__ = ("deadline", "kill_after", "lease", "started", "token")

    def __init__(self, token: int, started: float, longest: float, kill_after: float, lease: float) -> None:
        self.token = token
        self.started = started
        self.deadline = started + longest
        self.kill_after = kill_after
        self.lease = lease

    @property
    def ends_by(self) -> float:
        return min(self.deadline, self.lease)

    @property
    def why_cut(self) -> int:
        """For what it is ended, if it is."""
        return CUT_WITH_LEASE if self.lease < self.deadline else CUT_AT_DEADLINE


class Board:
    """One side's view. The descriptor given is closed; ``close`` gives the memory back."""

    def __init__(self, descriptor: int) -> None:
        try:
            self._memory = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)
        self._next = 0  # in the ring, for the child the one to write, for the worker the one to read
        self._given = 0
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

    def note_hand(self, longest: float, kill_after: float, *, leased: bool) -> None:
        """What holds for all that the child gets until its hands are empty, but where ``note_given`` says otherwise."""
        check = hash((0, longest, kill_after, leased))
        _GIVEN.pack_into(self._memory, _HAND_AT, 0, longest, kill_after, leased, check)

    def note_given(self, token: int, longest: float, kill_after: float, *, leased: bool) -> None:
        """The child gets this run, which may take so many seconds, and if ``leased`` no longer than its lease."""
        offset = _GIVEN_AT + self._given * _GIVEN.size
        check = hash((token, longest, kill_after, leased))
        _GIVEN.pack_into(self._memory, offset, token, longest, kill_after, leased, check)
        self._given = (self._given + 1) % RING

    def note_lease(self, until: float) -> None:
        """The leased runs of the hand may go on until then. Eight bytes at once: never half of it is seen."""
        _LEASE.pack_into(self._memory, _LEASE_AT, until)

    def note_settled(self, token: int) -> None:
        """The end of this run has been heard."""
        _COUNT.pack_into(self._memory, _SETTLED_AT, token)

    def note_parting(self) -> None:
        """The worker ends the process, politely first."""
        _COUNT.pack_into(self._memory, _PARTING_AT, 1)

    def cut(self, token: int) -> int | None:
        """Why the zygote ended the run with this token; None: it did not."""
        if _COUNT.unpack_from(self._memory, _CUT_AT)[0] != token:
            return None
        return int(_COUNT.unpack_from(self._memory, _CUT_FOR_AT)[0])

    # --- the zygote's side ------------------------------------------------------------------------------------------

    def present(self) -> Present | None:
        """The run that the child is in, as far as is known."""
        token, started, check = _BEGUN.unpack_from(self._memory, 0)
        if check != hash((token, started)) or token == _COUNT.unpack_from(self._memory, _SETTLED_AT)[0]:
            return None
        ring = self._memory[_RING_AT : _RING_AT + RING * _ENDED.size]
        if any(ended == token and noted == hash((ended, *at)) for ended, *at, noted in _ENDED.iter_unpack(ring)):
            return None
        given = self._memory[_GIVEN_AT : _GIVEN_AT + RING * _GIVEN.size]
        hand = self._memory[_HAND_AT : _HAND_AT + _GIVEN.size]
        for one, longest, kill_after, leased, noted in _GIVEN.iter_unpack(given + hand):
            if one in (token, 0) and noted == hash((one, longest, kill_after, leased)):
                (lease,) = _LEASE.unpack_from(self._memory, _LEASE_AT) if leased else (float("inf"),)
                return Present(token, started, longest, kill_after, lease)
        return None

    def longest_end(self) -> float:
        """Seconds from SIGTERM to SIGKILL of the present run; 0 without one."""
        present = self.present()
        return present.kill_after if present else 0.0

    def is_parting(self) -> bool:
        return bool(_COUNT.unpack_from(self._memory, _PARTING_AT)[0])

    def note_cut(self, token: int, why: int) -> None:
        """This run was ended, for its time or its lease was over and the worker did nothing about it."""
        _COUNT.pack_into(self._memory, _CUT_FOR_AT, why)
        _COUNT.pack_into(self._memory, _CUT_AT, token)
