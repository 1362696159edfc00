"""The process of a tab: a Textual app that speaks the protocol of Textual's WebDriver on its pipes.

Packets both ways: a letter (``D`` for bytes of the terminal, ``M`` for JSON about it), four bytes of size, the payload.
After ``stop`` the process is gone and waited for, whatever it was doing: it is asked, then killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

LEAVE_WITHIN = 2.0
MOST_COLUMNS, MOST_ROWS = 1000, 500
_PRELUDE = b"__GANGLION__\n"
_HEAD_BYTES = 5
_MOST_UNREAD = 1 << 20
_MOST_WORDS = 16 * 1024  # of what it says about its end


class TabProcess:
    """One app in a process of its own."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._stdin, self._stdout, words = _pipes(process)
        self._words = bytearray()
        self._listening = asyncio.create_task(self._listen(words))

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> TabProcess:
        """Start it without a shell, and away from the signals of the server's terminal."""
        return cls(
            await asyncio.create_subprocess_exec(
                *command, env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def screens(self) -> AsyncIterator[bytes]:
        """What it draws, until it was left or has ended."""
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._stdout.readuntil(_PRELUDE)
            while True:
                head = await self._stdout.readexactly(_HEAD_BYTES)
                payload = await self._stdout.readexactly(int.from_bytes(head[1:], "big"))
                if head[:1] == b"D":
                    yield payload
                elif head[:1] == b"M" and json.loads(payload).get("type") == "exit":
                    return  # it opens no addresses and delivers no files: nothing else is passed on

    def type(self, text: str) -> None:
        """Send keys, as a terminal does."""
        self._send(b"D", text.encode("utf-8", "replace"))

    def tell(self, kind: str, **values: Any) -> None:
        """Send what is about the terminal: ``focus``, ``blur``, ``quit``."""
        self._send(b"M", json.dumps({"type": kind, **values}).encode())

    def resize(self, width: int, height: int) -> None:
        """Say how large the terminal is now."""
        columns, rows = fitting(width, height)
        self.tell("resize", width=columns, height=rows)

    async def stop(self) -> tuple[int, str]:
        """End it; its exit code and what it said about it."""
        self.tell("quit")
        try:
            await asyncio.wait_for(self._ended(), LEAVE_WITHIN)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._ended()
        await self._listening
        return await self._process.wait(), self._words.decode("utf-8", "replace").strip()

    async def _ended(self) -> None:
        while await self._stdout.read(1 << 16):  # it could not end while it waits to write
            pass
        await self._process.wait()

    def _send(self, kind: bytes, payload: bytes) -> None:
        # Never waits: what is typed into an app that takes nothing is dropped, and its end is told by `screens`.
        if not self._stdin.is_closing() and self._stdin.transport.get_write_buffer_size() < _MOST_UNREAD:
            self._stdin.write(kind + len(payload).to_bytes(4, "big") + payload)

    async def _listen(self, words: asyncio.StreamReader) -> None:
        while data := await words.read(1 << 12):
            self._words += data[: _MOST_WORDS - len(self._words)]


def _pipes(process: Process) -> tuple[asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamReader]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("the process was started without pipes")
    return process.stdin, process.stdout, process.stderr


def fitting(width: int, height: int) -> tuple[int, int]:
    """A size that a screen can have."""
    return max(1, min(width, MOST_COLUMNS)), max(1, min(height, MOST_ROWS))
