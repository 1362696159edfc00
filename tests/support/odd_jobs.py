"""Functions that the tests run as Python jobs: coroutines, askers after their own run, and more kinds of bad ones."""

# ruff: noqa: T201 - jobs print

from __future__ import annotations

import asyncio
import ctypes
import io
import os
import resource
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sexton.errors import OutsideRun
from sexton_worker.context import context

_pool = ThreadPoolExecutor(1)
_asked = threading.Event()


# --- coroutines -----------------------------------------------------------------------------------------------------


async def ask_everywhere() -> None:
    """The context in a coroutine, its tasks, and the threads of both kinds."""
    print("coroutine", context().token)
    print("task", await asyncio.create_task(_token()))
    print("to_thread", await asyncio.to_thread(lambda: context().token))
    print("gather", *await asyncio.gather(_token(), _token()))


async def _token() -> int:
    await asyncio.sleep(0)
    return context().token


async def tidy_up_when_cancelled(note: str) -> None:
    try:
        Path(note).write_text(str(os.getpid()))
        await asyncio.Event().wait()
    finally:
        Path(note).write_text(f"tidy, cancelled {context().cancelled}")


async def fail_later() -> None:
    await asyncio.sleep(0)
    raise ValueError("later")


async def produce() -> AsyncIterator[int]:
    yield 1


def generate() -> Iterator[int]:
    yield 1


# --- askers ---------------------------------------------------------------------------------------------------------


def ask_in_thread() -> None:
    told: list[int] = []
    thread = threading.Thread(target=lambda: told.append(context().token))
    thread.start()
    thread.join()
    print("thread", *told, "of", context().worker)


def leave_asker_behind(note: str) -> None:
    """A thread that asks for its context only when `let_asker_ask` is called, in a later run."""

    def ask() -> None:
        _asked.wait()
        try:
            told = str(context().token)
        except OutsideRun as error:
            told = f"refused: {error}"
        Path(note).write_text(told)

    threading.Thread(target=ask, name="asker", daemon=True).start()


def let_asker_ask(note: str) -> None:
    _asked.set()
    while not Path(note).exists() or not Path(note).read_text():
        threading.Event().wait(0.01)
    print(Path(note).read_text())


def return_when_cancelled(note: str) -> None:
    while not context().cancelled:
        Path(note).touch()
        threading.Event().wait(0.01)
    Path(note).write_text("returned")


def tell_sigterm() -> None:
    """Whether SIGTERM ends this process."""
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)


# --- what is returned, raised and left behind -----------------------------------------------------------------------


def give(value: object) -> object:
    return value


def give_much(size: int) -> str:
    return "x" * size


def give_no_json() -> object:
    return {object()}


def interrupt() -> None:
    raise KeyboardInterrupt


def crash() -> None:
    """As a fault in a library written in C."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    print("before", flush=True)
    ctypes.string_at(0)


def leave_thread_at_work() -> None:
    threading.Thread(target=threading.Event().wait, name="still at it").start()


def leave_thread_that_ends() -> None:
    def end_soon() -> None:
        threading.Event().wait(0.05)
        print("thread done")

    threading.Thread(target=end_soon).start()


def leave_pool() -> None:
    print(_pool.submit(os.getpid).result())


def close_streams() -> None:
    sys.stdout.close()
    sys.stderr.close()


def measure(*args: Any) -> None:
    print(*(len(str(one)) for one in args))


def grow(megabytes: int) -> None:
    """Keep so much memory for ever."""
    _kept.append(os.urandom(1) * (megabytes << 20))
    print(os.getpid())


_kept: list[bytes] = []


def ask_once() -> None:
    print(context().cancelled)


def wait_for(gate: str) -> None:
    while not Path(gate).exists():
        threading.Event().wait(0.01)


def tell_environment() -> None:
    """All of it."""
    print(sorted(os.environ.items()))


def detach_stdout() -> None:
    """As is done to have another encoding."""
    print("kept", flush=True)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.detach()


def tell_code_of_clone(deed: str) -> None:
    """Print the exit code of a fork that ends by this deed."""
    clone = os.fork()
    if clone:
        print(os.waitstatus_to_exitcode(os.waitpid(clone, 0)[1]))
    elif deed == "exit":
        sys.exit(7)
    elif deed == "raise":
        raise ValueError(deed)
