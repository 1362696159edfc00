"""Both output pipes of a run, from its start to its end.

A run that is over in a moment is not listened to: what it wrote lies in its pipes until then. And of a run that wrote
nothing nothing is made.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from sexton_worker.core.output_stream import OutputStream
from sexton_worker.zygote.frames import Order, Seen
from sexton_worker.zygote.spool_file import spool_files
from sexton_worker.zygote.waiting import Waiting

PIECE = 64 * 1024

_NOTHING = struct.pack("i", 0)


class RunOutputs:
    """The read ends of standard output and error; they are this object's to close."""

    __slots__ = ("_is_heard", "_open", "_secrets", "_spools", "_streams", "_waiting")

    def __init__(self, order: Order, stdout: int, stderr: int, waiting: Waiting) -> None:
        self._open = {stdout: 0, stderr: 1}
        self._waiting = waiting
        self._is_heard = False
        self._secrets = order.secrets
        self._spools = spool_files(order.spool, order.spool_limit)
        self._streams: list[OutputStream | None] = [None, None]

    def listen(self, whose: object) -> None:
        """Have the waiting tell of them, as ``whose``. Raises OSError."""
        self._make_ready()
        for descriptor in self._open:
            self._waiting.add(descriptor, whose)

    def _make_ready(self) -> None:
        """Who writes may also read, and take away what was there a moment ago: no read may block."""
        if not self._is_heard:
            self._is_heard = True
            for descriptor in self._open:
                os.set_blocking(descriptor, False)

    def read(self, descriptor: int) -> None:
        """Take one piece of an output; nothing if it was closed a moment ago."""
        if descriptor not in self._open:
            return
        try:
            piece = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        if piece:
            self._feed(descriptor, piece)
        else:
            self._close(descriptor)

    def drain(self) -> None:
        """Take what lies in the pipes now, and no more: somebody may go on writing for ever."""
        for descriptor in self._open:
            waiting = fcntl.ioctl(descriptor, termios.FIONREAD, _NOTHING)
            if waiting == _NOTHING:
                continue
            self._make_ready()
            (left,) = struct.unpack("i", waiting)
            try:
                while left > 0 and (piece := os.read(descriptor, min(PIECE, left))):
                    self._feed(descriptor, piece)
                    left -= len(piece)
            except BlockingIOError:
                continue

    def _feed(self, descriptor: int, piece: bytes) -> None:
        number = self._open[descriptor]
        stream = self._streams[number]
        if stream is None:
            whole = self._spools[number].write if self._spools else None
            stream = self._streams[number] = OutputStream(self._secrets, whole)
        stream.feed(piece)

    def look(self, token: int) -> Seen:
        """What was taken so far."""
        stdout, stderr = (stream or OutputStream() for stream in self._streams)
        return Seen(token, stdout.newest(), stderr.newest(), stdout.total, stderr.total)

    def finish(self) -> list[tuple[bytes, int, int]]:
        """Of standard output and error: what is kept of it, how many bytes it had, how many of them are written down
        whole. Nothing more is taken; the pipes are closed."""
        found = [(b"", 0, 0), (b"", 0, 0)]
        for number, stream in enumerate(self._streams):
            if stream is not None:
                stream.finish()
                spooled = self._spools[number].close() if self._spools else 0
                found[number] = stream.kept(), stream.total, spooled
        self.close()
        return found

    def close(self) -> None:
        """Close the pipes that are open; whoever still writes gets SIGPIPE."""
        for descriptor in tuple(self._open):
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        del self._open[descriptor]
        self._waiting.remove(descriptor)
        os.close(descriptor)
