"""What ZooKeeper's servers say of themselves: the four-letter word ``srvr``, asked of one after the other.

It needs no session, and tells a quorum that is lost from a server that is down. ZooKeeper
answers it by default; where the word is not in its whitelist, the server ``answers`` and no more.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sexton.terms import CoordinatorServer
from sexton_scheduler.election.ensemble import address_text

ANSWER_WITHIN = 1.0  # seconds for each server, its name's resolution not counted
_MAX_ANSWER = 16 * 1024


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """A server's state, and the newest change it holds (``zxid``) where it says so."""

    server: CoordinatorServer
    zxid: int | None = None


def ask_servers(servers: Sequence[tuple[str, int]], tls: ssl.SSLContext | None) -> Iterator[ServerAnswer]:
    """Ask each server in turn, for at most ``ANSWER_WITHIN``; raises nothing for a server that is away."""
    for host, port in servers:
        address = address_text(host, port)
        try:
            answer = _ask(host, port, tls)
        except (TimeoutError, ssl.SSLError):
            yield ServerAnswer(CoordinatorServer(address, "silent"))
        except (OSError, UnicodeError):  # UnicodeError: a name that cannot be one
            yield ServerAnswer(CoordinatorServer(address, "refused"))
        else:
            yield read_answer(address, answer)


def read_answer(address: str, answer: str) -> ServerAnswer:
    """What the answer to ``srvr`` means."""
    mode = re.search(r"^Mode: (\S+)", answer, re.MULTILINE)
    zxid = re.search(r"^Zxid: 0x([0-9a-fA-F]+)", answer, re.MULTILINE)
    if mode is not None:
        return ServerAnswer(CoordinatorServer(address, mode[1]), int(zxid[1], 16) if zxid else None)
    if "not currently serving" in answer:
        return ServerAnswer(CoordinatorServer(address, "not serving"))
    return ServerAnswer(CoordinatorServer(address, "answers" if answer.strip() else "silent"))


def _ask(host: str, port: int, tls: ssl.SSLContext | None) -> str:
    deadline = time.monotonic() + ANSWER_WITHIN
    with contextlib.ExitStack() as open_ones:
        connection = open_ones.enter_context(socket.create_connection((host, port), timeout=ANSWER_WITHIN))
        if tls is not None:
            connection.settimeout(_left(deadline))
            connection = open_ones.enter_context(tls.wrap_socket(connection, server_hostname=host))
        connection.settimeout(_left(deadline))
        connection.sendall(b"srvr")
        answer = bytearray()
        with contextlib.suppress(ConnectionError, TimeoutError, ssl.SSLError):  # what came until then counts
            while len(answer) < _MAX_ANSWER and (part := connection.recv(4096)):
                answer += part
                connection.settimeout(_left(deadline))
        return answer.decode("utf-8", "replace")


def _left(deadline: float) -> float:
    """Seconds left; never 0, which would mean no blocking at all."""
    return max(0.001, deadline - time.monotonic())
