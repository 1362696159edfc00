"""Python jobs that lay hands on what is Sexton's in their process: its modules, its socket."""

# ruff: noqa: T201 - jobs print

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any


def spoil_modules() -> None:
    """Leave a stand-in behind in a module, as a test that was never cleaned up."""

    def odd(*_: Any, **__: Any) -> str:
        return "{}"

    json.dumps = json.loads = odd  # that is the point
    time.clock_gettime = lambda _: 0.0
    print("spoilt")


def write_to_socket(text: str, *, print_first: bool = False) -> None:
    """As a job does that goes through all of ``/proc/self/fd``."""
    if print_first:
        print("said")
    for descriptor in _sockets():
        os.write(descriptor, text.encode())


def _sockets() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                found.append(int(name))
        except OSError:  # the listing's own
            continue
    return found


def raise_a_long_name() -> None:
    raise type("N" * 3_000_000, (Exception,), {})


def forget_alarm(seconds: int) -> None:
    """As a job does that gave itself a time limit of its own."""
    signal.alarm(seconds)


def tell_alarm() -> None:
    print(signal.alarm(0))


def tell() -> None:
    print("told", os.getcwd())


def where() -> None:
    """Print the folder, or that it is gone."""
    try:
        print(os.getcwd())
    except FileNotFoundError:
        print("gone")
