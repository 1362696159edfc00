"""Both output pipes of a process, drained into tails of constant size."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from sexton_worker.core.output_tail import OutputTail

PIECE = 64 * 1024


class Outputs:
    """The read ends of standard output and error. ``fresh_tails`` begins a new run on the same pipes."""

    def __init__(self, stdout: int, stderr: int) -> None:
        self._open = {stdout: 0, stderr: 1}
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        self.has_ended = False  # one of the streams was closed by all its writers
        self.fresh_tails()

    def fresh_tails(self) -> None:
        self._tails = (OutputTail(), OutputTail())

    @property
    def stdout(self) -> OutputTail:
        return self._tails[0]

    @property
    def stderr(self) -> OutputTail:
        return self._tails[1]

    def descriptors(self) -> tuple[int, ...]:
        """The pipes that may still bring something."""
        return tuple(self._open)

    def read(self, descriptor: int) -> bool:
        """Take one piece; false if the stream has ended (its descriptor is closed then)."""
        try:
            piece = os.read(descriptor, PIECE)
        except BlockingIOError:
            return True
        if not piece:
            self._close(descriptor)
            self.has_ended = True
            return False
        self._tails[self._open[descriptor]].feed(piece)
        return True

    def drain(self) -> None:
        """Take what lies in the pipes now, and no more: somebody may go on writing for ever."""
        for descriptor in self.descriptors():
            waiting = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"))[0]
            while waiting > 0 and (piece := os.read(descriptor, min(PIECE, waiting))):
                self._tails[self._open[descriptor]].feed(piece)
                waiting -= len(piece)

    def close(self) -> None:
        """Close both pipes; whoever still writes gets SIGPIPE."""
        for descriptor in self.descriptors():
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        del self._open[descriptor]
        os.close(descriptor)
