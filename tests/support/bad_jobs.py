"""Functions that end, or give, or raise what no function should: each is a run with one sentence of reason."""

# ruff: noqa: T201 - jobs print

from __future__ import annotations

import asyncio
import functools
import os
import sys
import warnings
from collections.abc import Coroutine, Iterator
from typing import Any

NO_FUNCTION = 5


class Unnamed(Exception):
    """Whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Unspoken(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # as wrong as it looks

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Fatal(BaseException):
    """No Exception at all."""


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Caller:
    """Called, it makes an object: nothing is wrong with that."""


def raise_unnamed() -> None:
    raise Unnamed


def raise_unspoken() -> None:
    raise Unspoken


def raise_fatal() -> None:
    raise Fatal("not an Exception")


def raise_text(text: str) -> None:
    raise ValueError(text)


def raise_long(length: int) -> None:
    raise ValueError("x" * length)


def raise_surrogate() -> None:
    raise ValueError("half \ud800 a character")


def raise_number() -> None:
    raise 5  # type: ignore[misc]  # noqa: B016 - as wrong as it looks


def raise_local() -> None:
    class OnlyHere(Exception):
        pass

    raise OnlyHere("of a class that nobody can import")


def raise_group() -> None:
    raise ExceptionGroup("two at once", [ValueError("one"), KeyError("two")])


def raise_stop() -> None:
    raise StopIteration("stop")


def raise_cancelled() -> None:
    raise asyncio.CancelledError


async def raise_cancelled_later() -> None:
    await asyncio.sleep(0)
    raise asyncio.CancelledError


def recurse() -> None:
    recurse()


def exhaust() -> None:
    raise MemoryError


def leave(code: object = None) -> None:
    sys.exit(code)  # type: ignore[arg-type]  # anything may come


def leave_silent() -> None:
    sys.exit(Silent())  # type: ignore[arg-type]  # anything may come


def leave_long() -> None:
    sys.exit("x" * 1_000_000)


async def leave_later() -> None:
    await asyncio.sleep(0)
    sys.exit(4)


def leave_at_once(code: int) -> None:
    os._exit(code)


def abort() -> None:
    os.abort()


async def work() -> None:
    await asyncio.sleep(0)


def forget_to_await() -> Coroutine[Any, Any, None]:
    return work()


def forget_within() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work()  # type: ignore[unused-coroutine]  # as wrong as it looks


def give_generator() -> Iterator[int]:
    return (number for number in range(3))


def give_nul() -> str:
    return "a\0b"


def give_nan() -> float:
    return float("nan")


def give_deep() -> object:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


def print_anything() -> None:
    sys.stdout.buffer.write(b"\xff\x00\xfe\n")
    print("a\0b")


def take_one(one: object) -> None:
    print(type(one).__name__)


partial_of_generator = functools.partial(lambda: (yield 1))
