"""What worker and zygote say to each other: frames on a stream socket, in numbers and bytes.

    length (4 bytes) | kind (1) | numbers of that kind | pieces: length (4), bytes

To the zygote: ``RUN`` (an ``Order``, which may also come by the way of ``ahead``), ``STOP`` (a token, and whether the
worker ends), ``WATCH`` (a Python process; its pidfd and its board travel with the frame), ``LOOK`` (a token: what has
its run written so far?), ``PING``. From it: ``ENDED`` (an ``End``), ``SEEN`` (a ``Seen``, if there is such a run),
``PONG``. A frame is at most ``LARGEST`` bytes long. Both sides are of one version: the worker starts its zygote from
its own files.

Only what costs a small interpreter little is imported here and in the whole of this package.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sexton_worker.zygote.program import unpacked

RUN, STOP, WATCH, PING, ENDED, PONG, LOOK, SEEN = range(1, 9)
LARGEST = 64 * 1024 * 1024

# Who ended a run: nobody, its deadline, the worker's word (for a reason that the worker knows), the end of its lease.
BY_ITSELF, TIMED_OUT, STOPPED, LEASE_OVER = range(4)
# How far a run came: its process ran; the lease of its claim was over; no process; no such folder; no such program.
RAN, TOO_LATE, NO_PROCESS, NO_FOLDER, NO_PROGRAM, KILLED_AT_ONCE = range(6)

UNLIMITED = -1

_HEAD = struct.Struct("=IB")
_PIECE = struct.Struct("=I")
_RUN = struct.Struct("=qIdddqqqqHHBBB")
_STOP = struct.Struct("=qB")
_WATCH = struct.Struct("=q")
_ENDED = struct.Struct("=qBddiiBBBqqqqI")
_LOOK = struct.Struct("=q")
_SEEN = struct.Struct("=qqq")


class FrameTooLarge(Exception):
    """More than ``LARGEST`` bytes."""


class Order:
    """A command to run. ``program``: its arguments and variables (``zygote/program.py``); ``own``: the variables that
    this run has besides. Times in seconds; texts as the kernel takes them; limits in bytes, seconds of processor time
    and descriptors, or ``UNLIMITED``. ``begin_by`` is by the elapsed clock; until when the run may go on is in the
    roster, at its ``place``. ``secrets``: what its outputs must not show. ``spool``: where both are to be written down
    whole, as files of this path and ``.stdout`` or ``.stderr``, each up to ``spool_limit`` bytes; None: nowhere."""

    __slots__ = (
        "begin_by", "cpu_time", "cwd", "kill_after", "max_runtime", "memory", "open_files", "own", "place", "program",
        "secrets", "spool", "spool_limit", "stdin", "token",
    )  # fmt: skip

    def __init__(
        self,
        token: int,
        place: int,
        program: bytes,
        own: dict[bytes, bytes],
        *,
        begin_by: float,
        max_runtime: float,
        kill_after: float,
        cwd: bytes | None = None,
        stdin: bytes | None = None,
        memory: int = UNLIMITED,
        cpu_time: int = UNLIMITED,
        open_files: int = UNLIMITED,
        secrets: Sequence[bytes] = (),
        spool: bytes | None = None,
        spool_limit: int = 0,
    ) -> None:
        self.token = token
        self.place = place
        self.program = program
        self.own = own
        self.begin_by = begin_by
        self.max_runtime = max_runtime
        self.kill_after = kill_after
        self.cwd = cwd
        self.stdin = stdin
        self.memory = memory
        self.cpu_time = cpu_time
        self.open_files = open_files
        self.secrets = list(secrets)
        self.spool = spool
        self.spool_limit = spool_limit

    @property
    def argv(self) -> list[bytes]:
        return unpacked(self.program)[0]

    def environment(self) -> dict[bytes, bytes]:
        """The variables of its process."""
        return {**unpacked(self.program)[1], **self.own}

    @property
    def has_limits(self) -> bool:
        return not self.memory == self.cpu_time == self.open_files == UNLIMITED


class End:
    """The end of a run. ``code``: as ``waitpid`` tells it, 128 + signal if one ended it; ``errno`` where there was no
    process; ``is_passed_on``: its slot has gone to the next that was sent ahead; ``survivors``: processes that could
    not be ended. ``..._spooled``: how many bytes of it were written down whole."""

    __slots__ = (
        "code", "ended", "errno", "how_far", "is_killed", "is_passed_on", "started", "stderr", "stderr_bytes",
        "stderr_spooled", "stdout", "stdout_bytes", "stdout_spooled", "survivors", "token", "why",
    )  # fmt: skip

    def __init__(
        self,
        token: int,
        how_far: int,
        started: float,
        ended: float,
        *,
        code: int = 0,
        errno: int = 0,
        why: int = BY_ITSELF,
        is_killed: bool = False,
        is_passed_on: bool = False,
        stdout: bytes = b"",
        stderr: bytes = b"",
        stdout_bytes: int = 0,
        stderr_bytes: int = 0,
        stdout_spooled: int = 0,
        stderr_spooled: int = 0,
        survivors: tuple[int, ...] = (),
    ) -> None:
        self.token = token
        self.how_far = how_far
        self.started = started
        self.ended = ended
        self.code = code
        self.errno = errno
        self.why = why
        self.is_killed = is_killed
        self.is_passed_on = is_passed_on
        self.stdout = stdout
        self.stderr = stderr
        self.stdout_bytes = stdout_bytes
        self.stderr_bytes = stderr_bytes
        self.stdout_spooled = stdout_spooled
        self.stderr_spooled = stderr_spooled
        self.survivors = survivors


class Seen:
    """The ends of both outputs of a run that goes on, and how many bytes they have come to."""

    __slots__ = ("stderr", "stderr_bytes", "stdout", "stdout_bytes", "token")

    def __init__(self, token: int, stdout: bytes, stderr: bytes, stdout_bytes: int, stderr_bytes: int) -> None:
        self.token = token
        self.stdout = stdout
        self.stderr = stderr
        self.stdout_bytes = stdout_bytes
        self.stderr_bytes = stderr_bytes


# --- writing ----------------------------------------------------------------------------------------------------------


def run_frame(order: Order) -> bytes:
    """Raises ``FrameTooLarge``, and ``struct.error`` for more than 65,535 secrets."""
    numbers = _RUN.pack(
        order.token,
        order.place,
        order.begin_by,
        order.max_runtime,
        order.kill_after,
        order.memory,
        order.cpu_time,
        order.open_files,
        order.spool_limit,
        len(order.own),
        len(order.secrets),
        order.cwd is not None,
        order.stdin is not None,
        order.spool is not None,
    )
    pieces = [order.program]
    for name, value in order.own.items():
        pieces += (name, value)
    pieces += order.secrets
    pieces += [piece for piece in (order.cwd, order.stdin, order.spool) if piece is not None]
    return _frame(RUN, numbers, pieces)


def stop_frame(token: int, *, is_urgent: bool) -> bytes:
    return _frame(STOP, _STOP.pack(token, is_urgent))


def watch_frame(pid: int) -> bytes:
    """Its pidfd and the descriptor of its board must be sent along."""
    return _frame(WATCH, _WATCH.pack(pid))


def look_frame(token: int) -> bytes:
    return _frame(LOOK, _LOOK.pack(token))


def seen_frame(seen: Seen) -> bytes:
    return _frame(SEEN, _SEEN.pack(seen.token, seen.stdout_bytes, seen.stderr_bytes), [seen.stdout, seen.stderr])


def end_frame(end: End) -> bytes:
    numbers = _ENDED.pack(
        end.token,
        end.how_far,
        end.started,
        end.ended,
        end.code,
        end.errno,
        end.why,
        end.is_killed,
        end.is_passed_on,
        end.stdout_bytes,
        end.stderr_bytes,
        end.stdout_spooled,
        end.stderr_spooled,
        len(end.survivors),
    )
    return _frame(ENDED, numbers, [end.stdout, end.stderr, *(b"%d" % pid for pid in end.survivors)])


def _frame(kind: int, numbers: bytes = b"", pieces: list[bytes] | None = None) -> bytes:
    body = [numbers]
    for piece in pieces or ():
        body += (_PIECE.pack(len(piece)), piece)
    length = sum(map(len, body))
    if length > LARGEST:
        raise FrameTooLarge
    return b"".join((_HEAD.pack(length, kind), *body))


PING_FRAME = _frame(PING)
PONG_FRAME = _frame(PONG)

# --- reading ----------------------------------------------------------------------------------------------------------


class FrameBuffer:
    """Puts frames together from what comes off the socket."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> list[tuple[int, bytes]]:
        """The frames that are complete now: kind and body. Raises ``FrameTooLarge`` for what is no frame of ours."""
        data = self._data
        data += piece
        found, at = [], 0
        while len(data) - at >= _HEAD.size:
            length, kind = _HEAD.unpack_from(data, at)
            if length > LARGEST:
                raise FrameTooLarge
            end = at + _HEAD.size + length
            if len(data) < end:
                break
            found.append((kind, bytes(data[at + _HEAD.size : end])))
            at = end
        del data[:at]
        return found


def order_in(body: bytes) -> Order:
    """The order of a ``RUN`` frame."""
    (
        token,
        place,
        begin_by,
        max_runtime,
        kill_after,
        memory,
        cpu_time,
        open_files,
        spool_limit,
        variables,
        secrets,
        cwd,
        stdin,
        spool,
    ) = _RUN.unpack_from(body)
    program, *pieces = _pieces(body, _RUN.size)
    own, rest = pieces[: 2 * variables], pieces[2 * variables :]
    hidden, rest = rest[:secrets], rest[secrets:]
    return Order(
        token,
        place,
        program,
        dict(zip(own[::2], own[1::2], strict=True)),
        begin_by=begin_by,
        max_runtime=max_runtime,
        kill_after=kill_after,
        cwd=rest.pop(0) if cwd else None,
        stdin=rest.pop(0) if stdin else None,
        memory=memory,
        cpu_time=cpu_time,
        open_files=open_files,
        secrets=hidden,
        spool=rest.pop(0) if spool else None,
        spool_limit=spool_limit,
    )


def order_in_frame(frame: bytes) -> Order:
    """The order of a whole ``RUN`` frame."""
    return order_in(frame[_HEAD.size :])


def token_in_frame(frame: bytes) -> int:
    """Whose order it is, of a whole ``RUN`` frame."""
    (token,) = _LOOK.unpack_from(frame, _HEAD.size)
    return int(token)


def stop_in(body: bytes) -> tuple[int, bool]:
    """Token and urgency of a ``STOP`` frame."""
    token, is_urgent = _STOP.unpack(body)
    return token, bool(is_urgent)


def watched_in(body: bytes) -> int:
    """The process of a ``WATCH`` frame."""
    (pid,) = _WATCH.unpack(body)
    return int(pid)


def end_in(body: bytes) -> End:
    """The end of an ``ENDED`` frame."""
    token, how_far, started, ended, code, errno, why, is_killed, is_passed_on, *counts, _ = _ENDED.unpack_from(body)
    stdout_bytes, stderr_bytes, stdout_spooled, stderr_spooled = counts
    stdout, stderr, *survivors = _pieces(body, _ENDED.size)
    return End(
        token,
        how_far,
        started,
        ended,
        code=code,
        errno=errno,
        why=why,
        is_killed=bool(is_killed),
        is_passed_on=bool(is_passed_on),
        stdout=stdout,
        stderr=stderr,
        stdout_bytes=stdout_bytes,
        stderr_bytes=stderr_bytes,
        stdout_spooled=stdout_spooled,
        stderr_spooled=stderr_spooled,
        survivors=tuple(map(int, survivors)),
    )


def look_in(body: bytes) -> int:
    """The token of a ``LOOK`` frame."""
    (token,) = _LOOK.unpack(body)
    return int(token)


def seen_in(body: bytes) -> Seen:
    """What a ``SEEN`` frame tells."""
    token, stdout_bytes, stderr_bytes = _SEEN.unpack_from(body)
    stdout, stderr = _pieces(body, _SEEN.size)
    return Seen(token, stdout, stderr, stdout_bytes, stderr_bytes)


def _pieces(body: bytes, at: int) -> list[bytes]:
    found = []
    while at < len(body):
        (length,) = _PIECE.unpack_from(body, at)
        at += _PIECE.size
        found.append(body[at : at + length])
        at += length
    return found
