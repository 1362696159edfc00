"""One call of a job's function in a Python child, and its end as the message to the worker.

    not started   what the request names is no function that can be called
    raised        it raised, returned more than is kept, or left threads at work
    exited        it raised SystemExit
    (None)        it returned

A coroutine is run to its end. SIGTERM cancels it; a plain function it ends, unless that asked ``context().cancelled``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Awaitable, Iterator
from typing import Any

from sexton.run_context import ask_to_stop, other_threads
from sexton_worker.targets.surroundings import Request

LONGEST_ERROR = 2000
LONGEST_NAME, MOST_NAMES = 200, 100  # of kinds of exceptions: a letter to the worker must fit into its socket
LARGEST_RESULT = 16 * 1024  # bytes of JSON
_BITS_OF_A_LONG = 64  # the interpreter exits with 255 for a number that is longer
THREADS_END_WITHIN = 5.0  # seconds

_OF_GENERATORS = 0x20 | 0x200  # CO_GENERATOR, CO_ASYNC_GENERATOR: inspect takes long to load
_OWN_FILES = (__file__, importlib.__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")

_WRITE_A_FUNCTION = "write a plain function or a coroutine"
_NO_THREADS: frozenset[threading.Thread] = frozenset()
_encode = json.JSONEncoder().encode  # bound before any job can put something of its own in its place
_told: set[str] = set()  # import errors whose traceback was printed


class Ended(Exception):
    """The run has failed, for a reason of Sexton's; ``spoils``: so is the process."""

    def __init__(self, ending: str, error: str, cause: BaseException | None = None, *, spoils: bool = False) -> None:
        self.message = ending_message(ending, error, cause or self)
        self.message["exit_code"] = 1 if ending == "raised" else None
        self.spoils = spoils


def call(request: Request) -> tuple[dict[str, Any] | None, bool]:
    """Call what the request names: its end as a message, None if it succeeded; whether the process may go on."""
    known = _NO_THREADS
    try:
        function = _load(request.reference)
        known = _threads()
        result = function(*request.args, **request.kwargs)
        if result is not None:
            if isinstance(result, types.CoroutineType) or hasattr(type(result), "__await__"):
                result = _run_to_its_end(result)
            if isinstance(result, types.GeneratorType | types.AsyncGeneratorType):
                raise Ended("raised", "it returned a generator, whose code has not run; " + _WRITE_A_FUNCTION)
            _tell_result(result)
        _end_threads(known)
    except Ended as ended:
        return ended.message, not ended.spoils
    except SystemExit as error:
        return _exit(error), not _left(known)
    except BaseException as error:
        _print_traceback(error)
        return {**ending_message("raised", _said(error), error), "exit_code": 1}, not _left(known)
    return None, True


# --- what is called -------------------------------------------------------------------------------------------------


def _load(reference: str) -> Any:
    """The function. A module that failed to load is loaded anew each time: it may have been mended meanwhile."""
    module_name, _, path = reference.partition(":")
    try:
        target: Any = sys.modules.get(module_name) or importlib.import_module(module_name)
    except BaseException as error:
        raise Ended("not started", _why_not_loaded(reference, module_name, error), error) from error
    try:
        for name in path.split("."):
            target = getattr(target, name)
    except Exception as error:
        raise Ended("not started", f"cannot import {reference!r}: {_said(error)}", error) from error
    if not callable(target):
        why = f"TypeError: {reference} is no function but {type(target).__name__}"
        raise Ended("not started", f"cannot import {reference!r}: {why}", TypeError())
    code = getattr(target, "__code__", None)
    if code is not None and code.co_flags & _OF_GENERATORS:
        why = f"is a generator function, and calling it would run nothing; {_WRITE_A_FUNCTION}"
        raise Ended("not started", f"{reference} {why}", TypeError())
    return target


def _why_not_loaded(reference: str, module_name: str, error: BaseException) -> str:
    """One sentence with the line that failed; the first time in this process its traceback goes to the run's log."""
    said, where = _said(error), ""
    if isinstance(error, SyntaxError) and error.filename:
        said, where = f"{type(error).__name__}: {error.msg}", f"{error.filename}, line {error.lineno}: "
    elif frames := list(_frames_of_job(error)):
        where = f"{frames[-1].tb_frame.f_code.co_filename}, line {frames[-1].tb_lineno}: "
    sentence = f"cannot import {reference!r}: {where}{' '.join(said.split())}"
    is_missing = isinstance(error, ModuleNotFoundError) and error.name is not None
    if is_missing and f"{module_name}.".startswith(f"{error.name}."):  # type: ignore[attr-defined]  # as just seen
        return f"{sentence}; install it where the worker runs, or name its folder in the worker's PYTHONPATH"
    if sentence not in _told:
        _told.add(sentence)
        _print_traceback(error)
    return sentence


def _frames_of_job(error: BaseException) -> Iterator[types.TracebackType]:
    """From the first one that is not of Sexton or the import system, without those of the latter."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename not in _OWN_FILES:
            yield frame
        frame = frame.tb_next


# --- how it runs ----------------------------------------------------------------------------------------------------


def _run_to_its_end(awaitable: Awaitable[Any]) -> Any:
    import asyncio  # here, for it takes longer to load than all the rest of this process

    is_stopped = False

    async def run() -> Any:
        task = asyncio.current_task()

        def stop() -> None:
            nonlocal is_stopped
            is_stopped = True
            ask_to_stop()
            if task is not None:
                task.cancel()

        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # else the job has its own way to end
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        return await awaitable

    try:
        return asyncio.run(run())
    except asyncio.CancelledError as error:
        if is_stopped:
            raise Ended("raised", "cancelled", error) from error
        raise


def _tell_result(result: object) -> None:
    """Write what it returned as JSON to the run's output; what JSON cannot say is not kept."""
    if result is None:
        return
    try:
        text = _encode(result)
    except (TypeError, ValueError, RecursionError):
        return
    if len(text) > LARGEST_RESULT:
        most = f"more than the {LARGEST_RESULT:,} that are kept"
        raise Ended("raised", f"it returned {len(text):,} bytes of JSON, {most}; store it, and return where it is")
    with contextlib.suppress(Exception):  # the job may have closed or replaced the stream
        print(f"returned {text}", flush=True)  # noqa: T201 - into the run's output


def _threads() -> frozenset[threading.Thread]:
    return frozenset(threading.enumerate()) if other_threads() else _NO_THREADS


def _end_threads(known: frozenset[threading.Thread]) -> None:
    """The run is over when its threads have ended, as a program would be. Raises ``Ended`` if they do not."""
    if not (left := _left(known)):
        return
    until = time.monotonic() + THREADS_END_WITHIN
    for thread in left:
        thread.join(max(0.0, until - time.monotonic()))
    if left := _left(known):
        names = ", ".join(repr(thread.name) for thread in left[:5])
        count = "a thread" if len(left) == 1 else f"{len(left)} threads"
        why = f"it returned and left {count} at work ({names}); join what the job starts, or make it a daemon"
        raise Ended("raised", why, spoils=True)


def _left(known: frozenset[threading.Thread]) -> list[threading.Thread]:
    """The threads that the run began and that would keep a program from ending. Pools keep theirs for the next call."""
    if not other_threads():
        return []
    pools = sys.modules.get("concurrent.futures.thread")
    pooled = getattr(pools, "_threads_queues", ())
    return [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread not in known and thread not in pooled and thread is not threading.main_thread()
    ]


# --- how it ended ---------------------------------------------------------------------------------------------------


def _exit(error: SystemExit) -> dict[str, Any] | None:
    """As the interpreter takes it: nothing is 0, a number is the code, anything else is said and is 1."""
    code = 0 if error.code is None else error.code
    text = ""
    with contextlib.suppress(Exception):  # its own __str__ may raise
        text = str(code)
    said = f"SystemExit: {text}"[:LONGEST_ERROR] if text else "SystemExit"
    if not isinstance(code, int):
        with contextlib.suppress(Exception):
            sys.stderr.write(f"{text}\n")
        return {"ending": "exited", "exit_code": 1, "error": said}
    number = code & 0xFF if code.bit_length() < _BITS_OF_A_LONG else 0xFF
    return {"ending": "exited", "exit_code": number, "error": said} if code else None


def ending_message(ending: str, error: str, cause: BaseException) -> dict[str, Any]:
    """For the worker; the names of the cause's kinds are what ``retries.on`` may name."""
    names = [name for kind in type(cause).__mro__[:-1] for name in (kind.__qualname__, _qualified(kind))]
    names = [name[:LONGEST_NAME] for name in names[:MOST_NAMES]]
    return {"ending": ending, "exit_code": None, "error": error[: 2 * LONGEST_ERROR], "exceptions": names}


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _said(error: BaseException) -> str:
    with contextlib.suppress(Exception):  # an exception's own __str__ may raise
        if text := str(error):
            return f"{type(error).__name__}: {text}"[:LONGEST_ERROR]
    return type(error).__name__[:LONGEST_ERROR]


def _print_traceback(error: BaseException) -> None:
    with contextlib.suppress(Exception):
        first = next(_frames_of_job(error), None)
        traceback.print_exception(type(error), error, first)
