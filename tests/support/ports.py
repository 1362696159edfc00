"""TCP ports for test servers."""

from __future__ import annotations

import secrets
import socket

# Below the range from which the kernel takes the ports of outgoing connections (32768 and up), so that a server that
# was killed still finds its port free when it is started again.
LOWEST, HIGHEST = 20_000, 32_000
ATTEMPTS = 200


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens; drawn, so that test sessions side by side rarely collide."""
    for _ in range(ATTEMPTS):
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST)
        if is_free(port):
            return port
    raise RuntimeError(f"no free port found on 127.0.0.1 in {LOWEST} to {HIGHEST}: is something eating them all?")


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
