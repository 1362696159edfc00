"""Both output pipes of a process, drained into tails of constant size, and into files where they are wanted whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import threading
from collections.abc import Callable, Iterable

from sexton_worker.core.output_stream import OutputStream
from sexton_worker.core.runs import EndedRun, Spooled
from sexton_worker.zygote.frames import Seen
from sexton_worker.zygote.spool_file import SpoolFile

PIECE = 64 * 1024
Spools = Callable[[], tuple[SpoolFile, ...]]


def discard(spooled: Spooled | None) -> None:
    """Delete the files of a run whose whole output nobody will get."""
    for path in () if spooled is None else (spooled.stdout, spooled.stderr):
        with contextlib.suppress(OSError):
            os.unlink(path)


class Outputs:
    """The read ends of standard output and error. ``fresh_tails`` begins a new run on the same pipes.

    ``spools`` makes the files of a run, or none. What may be a secret of any run that this process was ever given is
    masked: a thread that a run left behind writes into whoever runs next. One thread drains; any may ``look``.
    """

    _files: tuple[SpoolFile, ...] = ()

    def __init__(self, stdout: int, stderr: int, spools: Spools = tuple) -> None:
        self._open = {stdout: 0, stderr: 1}
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        self.has_ended = False  # one of the streams was closed by all its writers
        self.spools = spools
        self._lock = threading.Lock()  # over the tails
        self._secrets: set[bytes] = set()
        self._begin()

    def mask(self, secrets: Iterable[bytes]) -> None:
        """These must not be shown from now on."""
        if fresh := set(secrets) - self._secrets:
            self._secrets |= fresh
            with self._lock:
                for tail in self._tails:
                    tail.mask(fresh)

    def fresh_tails(self) -> None:
        """What was drained is nobody's any more."""
        discard(self.take_spooled())
        self._begin()

    def _begin(self) -> None:
        self._files = self.spools()
        wholes = tuple(file.write for file in self._files) or (None, None)
        with self._lock:
            self._tails = tuple(OutputStream(self._secrets, whole) for whole in wholes)

    @property
    def stdout(self) -> OutputStream:
        return self._tails[0]

    @property
    def stderr(self) -> OutputStream:
        return self._tails[1]

    def told(self, ended: EndedRun) -> EndedRun:
        """With what the run wrote, all of which must have been drained."""
        with self._lock:
            for tail in self._tails:
                tail.finish()
        return ended._replace(
            stdout=self.stdout.kept(),
            stderr=self.stderr.kept(),
            stdout_bytes=self.stdout.total,
            stderr_bytes=self.stderr.total,
            spooled=self.take_spooled(),
        )

    def take_spooled(self) -> Spooled | None:
        """The files of the run that has ended, if it wrote anything into them: the caller's from now on."""
        sizes = [file.close() for file in self._files]
        paths = [file.path for file in self._files]
        self._files = ()
        return Spooled(paths[0], paths[1], *sizes) if any(sizes) else None

    def look(self, token: int) -> Seen:
        """What the run has written so far. From any thread."""
        with self._lock:
            stdout, stderr = self._tails
            return Seen(token, stdout.newest(), stderr.newest(), stdout.total, stderr.total)

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
        self._feed(descriptor, piece)
        return True

    def drain(self) -> None:
        """Take what lies in the pipes now, and no more: somebody may go on writing for ever."""
        for descriptor in self.descriptors():
            waiting = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"))[0]
            while waiting > 0 and (piece := os.read(descriptor, min(PIECE, waiting))):
                self._feed(descriptor, piece)
                waiting -= len(piece)

    def _feed(self, descriptor: int, piece: bytes) -> None:
        with self._lock:
            self._tails[self._open[descriptor]].feed(piece)

    def close(self) -> None:
        """Close both pipes; whoever still writes gets SIGPIPE."""
        for descriptor in self.descriptors():
            self._close(descriptor)

    def __del__(self) -> None:
        """The end of a run may be told after its pipes were closed; files that nobody took by now are nobody's."""
        discard(self.take_spooled())

    def _close(self, descriptor: int) -> None:
        del self._open[descriptor]
        os.close(descriptor)
