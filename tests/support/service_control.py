"""Services told from another terminal to stop, start, freeze: a socket of the process that owns them, and its client.

    python -m tests.support.service_control SOCKET kill zookeeper 2

One line a request, `ACTION SERVICE [NUMBER]`; the answer is `ok`, or one sentence about what is wrong.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.support.services import Services

ACTIONS = ("stop", "start", "restart", "kill", "freeze", "thaw", "wipe")
USAGE = f"services {'|'.join(ACTIONS)} zookeeper|postgres|all [NUMBER of the ZooKeeper server]; services show"


def perform(services: Services, request: str) -> str:
    """Do what is asked; the answer."""
    words = request.split()
    if not words or words[0] in ("help", "-h", "--help"):
        return f"ok\n{USAGE}"
    if words == ["show"]:
        return "\n".join(["ok", *describe(services)])
    action, name, number = (*words, "", "", "")[:3]
    targets = {"postgres": services.postgres, "zookeeper": services.zookeeper, "all": services}
    target: object = targets.get(name)
    if name == "zookeeper" and number:
        target = {str(server.number): server for server in services.zookeeper.servers}.get(number)
    if action not in ACTIONS or not hasattr(target, action) or len(words) > 3 or (number and name != "zookeeper"):
        return f"not understood: {request!r}; {USAGE}"
    try:
        getattr(target, action)()
    except (RuntimeError, AssertionError) as error:
        return f"{request}: {error}"
    return "ok"


def describe(services: Services) -> list[str]:
    """A line for each server: address, process, state."""
    postgres = services.postgres
    state = f"pid {postgres.pid}" if postgres.is_running() else "not running"
    lines = [f"postgres     127.0.0.1:{postgres.port}  {state}"]
    for server in services.zookeeper.servers:
        state = f"pid {server.pid}, {server.mode() or 'does not serve'}" if server.is_running() else "not running"
        lines.append(f"zookeeper {server.number}  {server.hosts}  {state}")
    return lines


@contextlib.contextmanager
def obeying(services: Services, path: Path) -> Iterator[None]:
    """While entered, requests on this socket are done, one after another."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=_serve, args=(services, listener), name="service control", daemon=True).start()
        yield


def _serve(services: Services, listener: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the listener is closed: the end
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                request = connection.makefile().readline()
                connection.sendall(perform(services, request.strip()).encode())


def main() -> int:
    """Send one request; exit 1 with the answer where it is not `ok`."""
    path, *words = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError:
            print(f"services: nobody answers at {path}; is `make cluster` still running?", file=sys.stderr)
            return 1
        connection.sendall((" ".join(words) + "\n").encode())
        answer = connection.makefile().read()
    outcome, _, rest = answer.partition("\n")
    if outcome != "ok":
        print(f"services: {answer}", file=sys.stderr)
        return 1
    if rest:
        print(rest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
