"""Jobs that behave as badly as they can, each as a Python job (`tests.support.hostile_jobs:NAME`) and as a command.

As a command: `python -m tests.support.hostile_jobs NAME ARGUMENTS`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from pathlib import Path

MEGABYTE = bytes(1 << 20)


def eat_memory() -> None:
    """More than any limit of a test."""
    hoard = [bytearray(64 << 20) for _ in range(1024)]
    sys.exit(len(hoard))


def eat_processor_time() -> None:
    while True:
        pass


def open_files() -> None:
    """More than any limit of a test."""
    kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(100_000)]
    sys.exit(len(kept))


def fork_a_tree(note: str) -> None:
    """Twelve processes, in groups and sessions of their own, deaf to SIGTERM, whose parents are gone; then hang."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for number in range(4):
        if os.fork() == 0:
            if number % 2:
                os.setsid()
            for _ in range(2):
                if os.fork() == 0:
                    _say_and_hang(note)
            _say_and_hang(note)
    _say_and_hang(note)


def leave_the_group(note: str) -> None:
    """In another session; the one who waits for it dies of SIGTERM."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _say_and_hang(note)
    _say_and_hang(note)


def ignore_sigterm(note: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _say_and_hang(note)


def never_return(note: str) -> None:
    """Busy, and not to be woken."""
    _say(note)
    while True:
        pass


def stop_itself(note: str) -> None:
    _say(note)
    os.kill(os.getpid(), signal.SIGSTOP)


def print_megabytes(count: str) -> None:
    for _ in range(int(count)):
        left = memoryview(MEGABYTE)
        while left:
            left = left[os.write(1, left) :]


def write_binary() -> None:
    sys.stdout.buffer.write(bytes(range(256)))


def close_outputs() -> None:
    os.close(1)
    os.close(2)


def raise_system_exit() -> None:
    raise SystemExit(3)


def crash_in_c() -> None:
    faulthandler._sigsegv()  # type: ignore[attr-defined]  # what typeshed does not tell of


def _say(note: str) -> None:
    with Path(note).open("a") as file:
        file.write(f"{os.getpid()}\n")


def _say_and_hang(note: str) -> None:
    _say(note)
    while True:
        signal.pause()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
