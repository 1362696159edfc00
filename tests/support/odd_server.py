"""An HTTP server that does as the path says, most of it wrong: for requests that must end in one sentence."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

GIGABYTE = 1 << 30
_PIECE = b"x" * (1 << 20)


@dataclass
class OddServer:
    """Listens on a port of 127.0.0.1 (and so of ``localhost``); remembers what it was asked."""

    port: int
    connections: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    scheme: str = "http"
    is_over: threading.Event = field(default_factory=threading.Event)
    written: int = 0  # bytes of a gigabyte
    bodies: int = 0  # with more behind them

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@contextlib.contextmanager
def odd_server(tls: ssl.SSLContext | None = None) -> Iterator[OddServer]:
    """One that serves until the end of the block."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            told.connections += 1
            with contextlib.suppress(OSError):
                while (request := _read_request(self.rfile)) is not None:
                    told.requests.append(request)
                    if not _answer(self.connection, request, told):
                        return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False
        request_queue_size = 100

    with Server(("127.0.0.1", 0), Handler) as server:
        told = OddServer(server.server_address[1], scheme="https" if tls else "http")
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield told
        finally:
            told.is_over.set()
            server.shutdown()
            thread.join()


def _read_request(file: Any) -> dict[str, Any] | None:
    line = file.readline()
    if not line:
        return None
    method, path, _ = line.decode().split()
    headers: dict[str, str] = {}
    while (line := file.readline().strip()) != b"":
        name, _, value = line.decode("latin-1").partition(": ")
        headers[name] = value
    body = file.read(int(headers.get("Content-Length", "0")))
    return {"method": method, "path": path, "headers": headers, "body": body.decode()}


def _answer(connection: socket.socket, request: dict[str, Any], told: OddServer) -> bool:
    """Whether the connection may go on."""
    place, _, query = request["path"].partition("?")
    match place.strip("/").split("/"):
        case ["echo"]:
            connection.sendall(_plain(200, json.dumps(request).encode()))
        case ["status", code]:
            connection.sendall(_plain(int(code), b"as you wish\n"))
        case ["to", code, *_]:
            connection.sendall(_plain(int(code), b"", f"Location: {query}\r\nSet-Cookie: who=me\r\n"))
        case ["never"]:
            told.is_over.wait()
            return False
        case ["drip", what]:
            _drip(connection, what, told)
            return False
        case ["gigabyte"]:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % GIGABYTE)
            while told.written < GIGABYTE:
                connection.sendall(_PIECE)
                told.written += len(_PIECE)
        case ["bomb"]:
            body = gzip.compress(b"\0" * (64 << 20), 9)
            connection.sendall(_plain(200, body, "Content-Encoding: gzip\r\n"))
        case ["garbage"]:
            connection.sendall(b"\0\xffnot\r\nhttp \x1b[2J at all\r\n\r\n")
            return False
        case ["binary"]:
            connection.sendall(_plain(200, b"a\0\xff\x1b[2J\r\nb"))
        case ["reset"]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            return False
        case ["more", code]:  # than one answer, in one piece
            told.bodies += 1
            body = b"stray %d" % told.bodies
            connection.sendall(_plain(int(code), body) + _plain(200, b"nobody's"))
        case ["short"]:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
            return False
        case _:
            connection.sendall(_plain(200, b""))
    return True


def _plain(status: int, body: bytes, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} Whatever\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _drip(connection: socket.socket, what: str, told: OddServer) -> None:
    """One byte of an answer without end, then another, always soon enough for whoever waits for the next one."""
    if what == "body":
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    else:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not told.is_over.wait(0.02):
        connection.sendall(b"x")
