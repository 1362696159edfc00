"""A way to a server from which single processes can be cut off, as a broken network would cut off their machine.

    with Forwarder(server.port) as way:          # clients connect to 127.0.0.1:way.port
        way.cut(node.pid)                        # its connections end, and new ones are refused
        way.mend(node.pid)

All processes use one address, so that they can share one setting; who is behind a connection is read from /proc.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_ACCEPT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _Pair:
    """A client's connection and the one to the server."""

    client: socket.socket
    server: socket.socket
    inode: int

    def close(self) -> None:
        for one in (self.client, self.server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Forwarder:
    """Forwards connections to a port of 127.0.0.1; `port` is its own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listening.settimeout(_ACCEPT_SECONDS)
        self.port: int = self._listening.getsockname()[1]
        self._guard = threading.Lock()
        self._pairs: list[_Pair] = []
        self._cut: set[int] = set()
        self._is_closed = False
        self._thread = threading.Thread(target=self._accept, name="forwarder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self._thread.join()
        self._listening.close()
        with self._guard:
            for pair in self._pairs:
                pair.close()

    def cut(self, pid: int) -> None:
        """End this process's connections, and refuse its new ones."""
        with self._guard:
            self._cut.add(pid)
            for pair in self._pairs:
                if _owns(pid, pair.inode):
                    pair.close()

    def mend(self, pid: int) -> None:
        """Let this process connect again."""
        with self._guard:
            self._cut.discard(pid)

    # ----------------------------------------------------------------------------------------- inside

    def _accept(self) -> None:
        while not self._is_closed:
            with contextlib.suppress(TimeoutError):
                client, (_, port) = self._listening.accept()
                client.setblocking(True)
                self._begin(client, port)

    def _begin(self, client: socket.socket, port: int) -> None:
        inode = _inode(port, self.port)
        with self._guard:
            if any(_owns(pid, inode) for pid in self._cut):
                client.close()
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                client.close()
                return
            server.settimeout(None)
            pair = _Pair(client, server, inode)
            self._pairs.append(pair)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(pair, source, sink), name="forwarded", daemon=True).start()

    def _pump(self, pair: _Pair, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                sink.sendall(part)
        pair.close()
        with self._guard:
            if pair in self._pairs:
                self._pairs.remove(pair)
                return
        pair.client.close()  # the second of the two pumps has ended
        pair.server.close()


def _inode(port: int, remote: int) -> int:
    """The inode of the client's socket on 127.0.0.1:`port` that is connected to `remote`; 0 if it is gone."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].partition(":")[2], 16) == port and int(fields[2].partition(":")[2], 16) == remote:
            return int(fields[9])
    return 0


def _owns(pid: int, inode: int) -> bool:
    """Whether the process has this socket open."""
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                if os.readlink(f"{folder}/{name}") == f"socket:[{inode}]":
                    return True
    return False
