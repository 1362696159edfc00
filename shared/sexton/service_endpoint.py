"""The metrics and the health of a process over HTTP: small, read-only, on a thread of its own.

Whoever asks can neither hold it nor slow down what the process is for:

* A connection is answered once and closed, and has 5 s for all of it. 100 are taken a second, the others wait in the
  kernel's queue; of 32 that are open, the oldest makes room for a new one.
* A text is made anew once a second at most, out of values that other threads left; nothing here asks a database.
* A fault in making a text is that answer's (500) and ends nothing.

It has no login and shows no secret; it serves this machine alone unless it is given another address.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus

import structlog

from sexton.clock import SystemClock
from sexton.errors import InvalidSetting
from sexton.http_addresses import HttpAddress

TEXT = "text/plain; charset=utf-8"
ANSWER_WITHIN = 5.0
TEXT_KEPT = 1.0
MOST_OPEN = 32
TAKE_EVERY = 0.01
BACKLOG = 64
MOST_HEAD = 16 * 1024
CLOSE_WITHIN = 1.0
OPENMETRICS = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path says: ``status`` of HTTP, ``kind`` of content."""

    status: int
    body: bytes
    kind: str = TEXT


Says = Callable[[str], Answer]
"""What a path says now; it is told whether ``OPENMETRICS`` is accepted (else: ""). Called in the endpoint's thread."""


def alive(is_alive: bool, silent_for: float | None) -> Answer:
    """The answer of ``/healthz``: whether the process's loop comes round, which a restart would mend."""
    if is_alive:
        return Answer(200, b"alive\n")
    return Answer(503, f"its loop has not come round for {silent_for or 0:.0f} s\n".encode())


def ready(reasons: Sequence[str]) -> Answer:
    """The answer of ``/readyz``: ready, or why not, a line each."""
    if not reasons:
        return Answer(200, b"ready\n")
    return Answer(503, "".join(f"not ready: {reason}\n" for reason in reasons).encode())


NOT_YET: Mapping[str, Says] = {
    "/metrics": lambda _: Answer(503, b"not yet: the database has not answered since this process began\n"),
    "/healthz": lambda _: alive(True, None),
    "/readyz": lambda _: ready(["the database has not answered since this process began"]),
}
"""What is said until the process knows its cluster."""


def listen(address: HttpAddress) -> socket.socket:
    """A socket that listens there. Raises InvalidSetting, saying why it cannot be and what to do."""
    try:
        family, kind, protocol, _, at = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        why = f"the host of http = {address} is not known here ({error.strerror or error})"
        raise InvalidSetting(why, hint="write an address of this machine, such as 127.0.0.1:9464") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(at)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _refusal(address, error) from None
    return listening


def _refusal(address: HttpAddress, error: OSError) -> InvalidSetting:
    if error.errno == errno.EADDRINUSE:
        return InvalidSetting(
            f"another process listens on {address} already, so metrics cannot be served there",
            hint="choose another port for http (each process needs its own), or stop the other",
        )
    return InvalidSetting(
        f"metrics cannot be served on http = {address} ({error.strerror})",
        hint="write an address of this machine and a port from 1024 on, such as 127.0.0.1:9464",
    )


def serving(address: HttpAddress | None) -> AbstractContextManager[Endpoint | None]:
    """An endpoint that serves within the block; None where there is no address. Raises InvalidSetting at once."""
    return contextlib.nullcontext() if address is None else Endpoint(address)


class Endpoint:
    """Serves until ``close``. ``paths``: what each says; it may be replaced as a whole at any time."""

    def __init__(self, address: HttpAddress, paths: Mapping[str, Says] = NOT_YET) -> None:
        """It listens from now on; raises InvalidSetting where that cannot be."""
        self.paths = paths
        self._socket = listen(address)
        self.address = HttpAddress(address.host, self._socket.getsockname()[1])
        self._kept: dict[tuple[str, str], tuple[Says, float, Answer]] = {}
        self._clock = SystemClock()
        self._serving: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="sexton http", daemon=True)
        self._log = structlog.get_logger("sexton.http")

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()
        self._log.info("http.serves", address=str(self.address), paths=list(self.paths))

    def close(self) -> None:
        """Listen no more."""
        self._is_closed = True
        if self._serving is not None:
            loop, task = self._serving
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(task.cancel)
        if self._thread.ident is None:
            self._socket.close()
        else:
            self._thread.join(CLOSE_WITHIN)

    def __enter__(self) -> Endpoint:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the endpoint's thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with contextlib.suppress(asyncio.CancelledError):
                asyncio.run(self._take())
        except Exception:  # the process does its work without metrics, too
            self._log.exception("http.failed", address=str(self.address))
        finally:
            self._socket.close()

    async def _take(self) -> None:
        loop, itself = asyncio.get_running_loop(), asyncio.current_task()
        assert itself is not None  # noqa: S101 - asyncio.run made one
        self._serving = loop, itself
        attended: dict[asyncio.Task[None], None] = {}  # oldest first
        while not self._is_closed:
            try:
                taken, _ = await loop.sock_accept(self._socket)
            except OSError:  # no file is free, or the caller is gone: later
                await asyncio.sleep(TEXT_KEPT)
                continue
            if len(attended) >= MOST_OPEN:
                next(iter(attended)).cancel()  # it has been silent for longest
            task = asyncio.create_task(self._attend(taken))
            attended[task] = None
            task.add_done_callback(attended.pop)
            await asyncio.sleep(TAKE_EVERY)

    async def _attend(self, taken: socket.socket) -> None:
        """Answer in time, or not at all: a caller that is slow, silent or gone is nobody's business."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                await self._answer(taken)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass
        finally:
            taken.close()

    async def _answer(self, taken: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=taken, limit=MOST_HEAD)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            writer.write(self._response(head))
            writer.close()
            await writer.wait_closed()
        finally:
            writer.transport.abort()

    def _response(self, head: Sequence[str]) -> bytes:
        method, _, rest = head[0].partition(" ")
        target, _, version = rest.partition(" ")
        if not version.startswith("HTTP/1."):
            said = Answer(400, b"not a request of HTTP/1\n")
        elif method not in ("GET", "HEAD"):
            said = Answer(405, b"only GET and HEAD\n")
        else:
            headers = (line.lower().partition(":") for line in head[1:])
            accepts = any(name == "accept" and OPENMETRICS in value for name, _, value in headers)
            said = self._said(target.partition("?")[0], OPENMETRICS if accepts else "")
        lines = [f"HTTP/1.1 {said.status} {HTTPStatus(said.status).phrase}", f"Content-Type: {said.kind}"]
        lines += [f"Content-Length: {len(said.body)}", "Cache-Control: no-store", "Connection: close"]
        lines += ["Allow: GET, HEAD"] if said.status == 405 else []
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if method == "HEAD" else said.body)

    def _said(self, path: str, accept: str) -> Answer:
        says = self.paths.get(path)
        if says is None:
            return Answer(404, f"there is {', '.join(self.paths)}\n".encode())
        now, kept = self._clock.elapsed(), self._kept.get((path, accept))
        if kept is not None and kept[0] is says and now - kept[1] < TEXT_KEPT:
            return kept[2]
        try:
            answer = says(accept)
        except Exception:
            self._log.exception("http.answer_failed", path=path)
            answer = Answer(500, b"a fault of Sexton's own; the log has it\n")
        self._kept[path, accept] = says, now, answer
        return answer
