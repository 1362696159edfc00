"""An HTTP server that alerts and heartbeats are sent to, and that refuses the first few; and one whose answers never
end."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class AlertReceiver:
    """Listens while entered. ``refuses``: so many messages are answered with 500 before the first is taken."""

    def __init__(self, refuses: int = 0) -> None:
        self.refuses = refuses
        self.refused: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.beats: list[str] = []  # paths of GET
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self._answer(receiver._take(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

            def do_GET(self) -> None:
                receiver.beats.append(self.path)
                self._answer(200)

            def _answer(self, status: int) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing: the test reads the lists."""

        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, message: dict[str, Any]) -> int:
        with self._lock:
            if len(self.refused) < self.refuses:
                self.refused.append(message)
                return 500
            self.taken.append(message)
            return 204


@contextmanager
def dripping() -> Iterator[str]:
    """The address of a server that sends a line of its answer's head every 50 ms, for two minutes or until left."""
    is_left = threading.Event()

    def drip(connection: socket.socket) -> None:
        with closing(connection), suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            for number in range(2_400):
                if is_left.wait(0.05):
                    return
                connection.sendall(b"X-%d: y\r\n" % number)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        is_left.set()
        listener.shutdown(socket.SHUT_RDWR)
