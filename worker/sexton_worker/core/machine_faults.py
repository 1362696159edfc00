"""Faults of the machine and not of a job: which errors they are, and how long a worker takes no claims after one.

A *spell* begins with the first fault. Each fault that comes after the pause of
the one before makes the next pause twice as long, up to ``LONGEST_PAUSE``; a
spell is over when none came for ``QUIET`` seconds after its last pause.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from datetime import timedelta

# No descriptors (of this process, of the machine), no processes, no memory.
ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS})
FIRST_PAUSE = 1.0  # seconds, as all below
LONGEST_PAUSE = 30.0
QUIET = 30.0
RETURN_AFTER = 1.0


def is_machine_fault(error: Exception) -> bool:
    """Whether this error at the start of a process says something of the machine, and nothing of the job."""
    return isinstance(error, OSError) and error.errno in ERRNOS


def return_delay(draw: float) -> timedelta:
    """How long a claim given back is left alone; ``draw`` in [0, 1) keeps those of one fault apart."""
    return timedelta(seconds=RETURN_AFTER * (1 + draw))


@dataclass(frozen=True, slots=True)
class Spell:
    """Faults in a row. ``pause``: the present one's length, 0 outside a spell; ``until``: elapsed seconds."""

    pause: float = 0.0
    until: float = 0.0

    def after_fault(self, now: float) -> Spell:
        """The spell with a fault noted at ``now``; those that come while the worker pauses are one."""
        if self.is_over(now):
            return Spell(FIRST_PAUSE, now + FIRST_PAUSE)
        if now < self.until:
            return self
        pause = min(2 * self.pause, LONGEST_PAUSE)
        return Spell(pause, now + pause)

    def remaining(self, now: float) -> float:
        """Seconds for which no claims are to be taken yet."""
        return max(0.0, self.until - now) if self.pause else 0.0

    def is_over(self, now: float) -> bool:
        """Whether the next fault begins a new spell."""
        return not self.pause or now >= self.until + QUIET


NO_SPELL = Spell()
