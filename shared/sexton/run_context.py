"""What a run may ask about itself, in its own process: ``context()``.

In the processes in which a worker runs Python jobs the run at hand is entered and left. A thread or task that inherited
a context (``contextvars``) is asked by that: it sees the run that began it, even if it outlives it. A plain thread sees
the run at hand, unless it is older than that run: so what a job left behind never gets the token of a later run.

Everywhere else (a command, a script that a job started, a test) the environment tells: ``SEXTON_JOB`` and so on.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from sexton.errors import InvalidInput, OutsideRun

_MUST_BE_SET = ("SEXTON_JOB", "SEXTON_TICK", "SEXTON_TOKEN")
_NO_DEADLINE = datetime.max.replace(tzinfo=UTC)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RunContext:
    """The run at hand. ``token`` grows with every grant: hand it to whatever must refuse a stale writer.

    ``tick`` and ``deadline`` are UTC; the run is stopped after the deadline. ``worker`` is the name of its worker.
    """

    job: str
    tick: datetime
    attempt: int
    token: int
    deadline: datetime = _NO_DEADLINE
    worker: str = ""

    @property
    def claim(self) -> str:
        """``JOB@TICK``: the same text for every attempt at this claim, and for no other's."""
        return f"{self.job}@{_iso(self.tick)}"

    @property
    def cancelled(self) -> bool:
        """Whether this run was asked to end: cancelled, past its deadline, given back, or its lease is lost.

        A run that never asks is ended by SIGTERM at once. One that asks, in its main thread, is told so here from
        then on, and has the job's ``kill_after`` to return.
        """
        return _stop.is_asked_for()


def context() -> RunContext:
    """The run in which the caller works. Raises ``OutsideRun`` where there is none."""
    entered = _inherited.get() or _of_this_thread()
    if entered is not None:
        return entered.context()
    if not _is_between_runs and "SEXTON_TOKEN" in os.environ:
        return from_environment(os.environ)
    raise OutsideRun(
        "there is no run here: context() works inside a job that a Sexton worker runs",
        hint=f"elsewhere, as in a test, set {', '.join(_MUST_BE_SET)}",
    )


def from_environment(environ: Mapping[str, str]) -> RunContext:
    """The run that these variables tell of. Raises ``OutsideRun`` or ``InvalidInput``, naming the variable."""
    missing = [name for name in _MUST_BE_SET if not environ.get(name)]
    if missing:
        raise OutsideRun(f"there is no run here: {', '.join(missing)} not set", hint="a worker sets all of them")
    deadline = environ.get("SEXTON_DEADLINE")
    return RunContext(
        job=environ["SEXTON_JOB"],
        tick=_read("SEXTON_TICK", environ["SEXTON_TICK"], _instant),
        attempt=_read("SEXTON_ATTEMPT", environ.get("SEXTON_ATTEMPT", "1"), int),
        token=_read("SEXTON_TOKEN", environ["SEXTON_TOKEN"], int),
        deadline=_read("SEXTON_DEADLINE", deadline, _instant) if deadline else _NO_DEADLINE,
        worker=environ.get("SEXTON_WORKER", ""),
    )


# --- for Sexton's own child processes -------------------------------------------------------------------------------


def enter(make: Callable[[], RunContext]) -> None:
    """Make that run the current one; it is made when it is asked for."""
    global _at_hand, _strangers
    _at_hand = _Entered(make)
    _inherited.set(_at_hand)
    _strangers = frozenset(threading.enumerate()) if other_threads() else _NOBODY


def other_threads() -> int:
    """How many there are beside the main one: ``threading.active_count`` without its lock, for each run asks."""
    return _thread._count()


def leave() -> None:
    """There is no run here, until the next ``enter``."""
    global _at_hand, _is_between_runs
    _at_hand = None
    _is_between_runs = True
    _inherited.set(None)
    _stop.hush()


def ask_to_stop() -> None:
    """Have the run see that it is ``cancelled``."""
    _stop.note()


class _Entered:
    """A run that was entered."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], RunContext]) -> None:
        self._make = make
        self._made: RunContext | None = None

    def context(self) -> RunContext:
        if self._made is None:
            self._made = self._make()
        return self._made


class _Stop:
    """Whether this process was told to end. It is told by SIGTERM, which ends it unless somebody asks."""

    def __init__(self) -> None:
        self._is_noted = False
        self._listens = False

    def is_asked_for(self) -> bool:
        if (
            not self._listens
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # else the job has its own way to end
        ):
            signal.signal(signal.SIGTERM, self.note)
            self._listens = True
        return self._is_noted

    def note(self, *_: object) -> None:
        self._is_noted = True

    def hush(self) -> None:
        if self._listens:
            self._listens = False
            if signal.getsignal(signal.SIGTERM) == self.note:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)


_NOBODY: frozenset[threading.Thread] = frozenset()
_inherited: ContextVar[_Entered | None] = ContextVar("sexton_run", default=None)
_at_hand: _Entered | None = None
_strangers = _NOBODY  # threads that were there before the run at hand
_is_between_runs = False  # where runs are entered and left the environment may still tell of the last one
_stop = _Stop()


def _of_this_thread() -> _Entered | None:
    if _at_hand is not None and threading.current_thread() in _strangers:
        if threading.current_thread() is threading.main_thread():
            return _at_hand  # in a context that the job emptied
        raise OutsideRun(
            f"thread {threading.current_thread().name!r} is older than the run at hand, and may belong to another",
            hint="ask context() in the function that the worker calls, and hand it on",
        )
    return _at_hand


def _read(name: str, text: str, reading: Callable[[str], _T]) -> _T:
    try:
        return reading(text)
    except ValueError:
        raise InvalidInput(f"{name} is {text!r}", hint="leave it as the worker set it") from None


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError
    return instant.astimezone(UTC)


def _iso(instant: datetime) -> str:
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
