"""How a run is stopped and how it ends, as values: the words between loop, execution and completion.

Every started run ends exactly once, with one ``EndedRun``. Instants of a run are
seconds of the worker's elapsed clock; the loop turns them into database time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class StopReason(StrEnum):
    """Why a run is stopped from outside. The first reason given stands."""

    CANCELLED = "cancelled"  # an operator asked for it
    LEASE_LOST = "lease lost"  # the claim is no longer this worker's
    GIVEN_BACK = "given back"  # the worker ends and will not wait


class Ending(StrEnum):
    """How a run came to its end."""

    EXITED = "exited"  # by itself, with an exit code
    RAISED = "raised"  # the function raised an exception
    NOT_STARTED = "not started"  # nothing ran: no such command, cannot import, refused here
    MACHINE_FAULT = "machine fault"  # it could not be started, for want of descriptors, processes or memory
    VANISHED = "vanished"  # with the process that started it; nobody knows what it did
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    LEASE_LOST = "lease lost"
    GIVEN_BACK = "given back"


@dataclass(frozen=True, slots=True)
class Spooled:
    """The files that hold both outputs of a run whole, and how many bytes of them; one of none does not exist."""

    stdout: bytes
    stderr: bytes
    stdout_size: int
    stderr_size: int


class EndedRun(NamedTuple):
    """The end of the run that had ``token``.

    ``started`` and ``ended`` are elapsed seconds; ``started`` None: nothing ran. A process that a signal ended
    has exit code 128 + signal, as shells say it. ``exceptions``: the names of what was raised, most special
    first, bare and qualified. ``stdout`` and ``stderr`` are the kept parts, the counts all that was written; what of it
    is secret is masked. ``spooled``: the files that have it whole, which whoever takes the end must see to.
    """

    token: int
    ending: Ending
    started: float | None
    ended: float
    exit_code: int | None = None
    error: str = ""
    exceptions: tuple[str, ...] = ()
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    spooled: Spooled | None = None
