"""Functions that the tests run as Python jobs: good ones, and every kind of bad one."""

# ruff: noqa: T201 - jobs print

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from sexton_worker.context import context


class DiskFull(OSError):
    """An exception with a base class that `retries.on` may name."""


def noop() -> None:
    """Nothing at all."""


def tell(*args: Any, **kwargs: Any) -> None:
    """Write down all that a run can know of itself."""
    run = context()
    print(f"args={args} kwargs={kwargs}")
    print(f"context={run.job} {run.tick.isoformat()} {run.attempt} {run.token} {run.deadline.isoformat()}")
    for name in ("SEXTON_JOB", "SEXTON_TICK", "SEXTON_ATTEMPT", "SEXTON_TOKEN", "SEXTON_DEADLINE", "COLOUR"):
        print(f"{name}={os.environ.get(name)}")
    print(f"cwd={os.getcwd()} stdin={sys.stdin.read()!r} secret={os.environ.get('WORKER_SECRET')}")


def tell_pid() -> None:
    print(os.getpid())


def write_both(text: str) -> None:
    """Write to both streams, by Python and past it."""
    print(f"{text} by print")
    print(f"{text} by stderr", file=sys.stderr)
    os.write(1, f"{text} by descriptor\n".encode())


def write_binary(size: int) -> None:
    os.write(1, bytes(range(256)) * (size // 256))


def fail(message: str) -> None:
    raise ValueError(message)


def fill_disk() -> None:
    raise DiskFull("no room")


def leave(code: object) -> None:
    raise SystemExit(code)


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def exit_hard(code: int) -> None:
    os._exit(code)


def close_outputs() -> None:
    os.close(1)
    os.close(2)


def close_everything() -> None:
    os.closerange(0, 256)


def leave_something_that_hangs(what: str) -> None:
    """Something that keeps an interpreter from ending; and lose the descriptors by which to hear of more work."""
    if what == "thread":
        threading.Thread(target=threading.Event().wait).start()
    else:
        atexit.register(threading.Event().wait)
    os.closerange(3, 256)


def close_descriptors() -> None:
    os.closerange(3, 256)


def spoil_surroundings() -> None:
    os.environ["COLOUR"] = "left over"
    os.chdir("/")


def wait_for_ever(note: str | None = None) -> None:
    """Hang; first write the process id into the file `note`."""
    if note is not None:
        Path(note).write_text(str(os.getpid()))
    while True:
        signal.pause()


async def nap(seconds: float) -> None:
    """A coroutine that takes so long."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)


def wait_for_file(note: str, gate: str) -> None:
    """Add the process id as a line to the file `note`; return once there is the file `gate`."""
    with Path(note).open("a") as file:
        file.write(f"{os.getpid()}\n")
    while not Path(gate).exists():
        threading.Event().wait(0.05)


def refuse_to_end(note: str) -> None:
    """Hang through SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait_for_ever(note)


def wait_for_a_tidy_process(note: str) -> None:
    """Wait for a shell that, told to end by SIGTERM, still has something to write into the file `note`."""
    tidy = "trap 'while [ ! -e $0.go ]; do sleep 0.05; done; echo tidy > $0; exit 0' TERM; echo up > $0; "
    subprocess.run(["/bin/sh", "-c", tidy + "while :; do sleep 0.05; done", note], check=False)


def survive_sigterm(note: str) -> None:
    """Return on SIGTERM."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: told.set())
    Path(note).write_text("up")
    while not told.wait(0.05):
        pass


def leave_process_behind(note: str) -> None:
    """Start a process that holds the outputs and outlives the run."""
    child = subprocess.Popen(["sleep", "300"])
    Path(note).write_text(str(child.pid))


def fork_and_return(note: str) -> None:
    """Return twice; the second process's id is in the file `note`."""
    clone = os.fork()
    if clone:
        Path(note).write_text(str(clone))


def act(log: str, name: str, deed: str = "") -> None:
    """Note in the file `log` that it began, and in which process; then do the deed."""
    with Path(log).open("a") as file:
        file.write(f"{name} {os.getpid()}\n")
    match deed:
        case "die":
            kill_self()
        case "hang":
            wait_for_ever()
        case "print":
            print(name)
        case "write":
            os.write(2, f"{name}\n".encode())
        case "raise":
            raise ValueError(name)
        case "close":
            close_outputs()
        case "wait":
            threading.Event().wait(0.2)


def count(text: str) -> None:
    print(len(text))


async def later() -> None:
    print("awaited")


class Unprintable(Exception):
    """Whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raise_unprintable() -> None:
    raise Unprintable


not_a_function = 3


def raise_unstorable() -> None:
    """Say half a character and a NUL."""
    raise ValueError("\ud800 and \0")


def write_slowly(gate: str) -> None:
    """Its secret, and something after the gate has opened."""
    print("before", os.environ["KEY"], flush=True)
    while not Path(gate).exists():
        threading.Event().wait(0.05)
    print("after")


def write_secret(text: str) -> None:
    """Its secret, on both ways that a run may tell it."""
    print(text, os.environ["KEY"])
    raise ValueError(f"{text} {os.environ['KEY']}")


def write_and_die(text: str) -> None:
    print(text, flush=True)
    os._exit(3)
