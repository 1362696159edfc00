"""Whether a connection may serve another request after an answer: only if nothing of this answer can be left on it.

A server may send more than its answer: a body behind a 204 or behind the answer to a HEAD, or an answer nobody asked
for. The next request on that connection would take it for its own answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx import Client, Response

_WITHOUT_BODY = (204, 304)


def leaves_nothing(client: Client, response: Response) -> bool:
    """Whether the client's connections may be kept after this answer, which was read as far as it will be."""
    if response.request.method == "HEAD":
        return False
    announces = response.headers.get("content-length", "0") != "0" or "transfer-encoding" in response.headers
    if response.status_code in _WITHOUT_BODY and announces:
        return False
    return not any(map(_is_left, _connections(client)))


def _connections(client: Client) -> Iterator[Any]:
    """Those that wait for a request. httpx tells of none: this is how its releases keep them."""
    transports: list[Any] = [client._transport, *client._mounts.values()]
    for transport in transports:
        for connection in () if transport is None else transport._pool.connections:
            if connection.is_idle() and not connection.is_closed():
                yield connection


def _is_left(connection: Any) -> bool:
    """Whether bytes were read that are no answer's; or nobody knows, as with another release of httpx."""
    while (inner := getattr(connection, "_connection", None)) is not None:
        connection = inner
    state = getattr(connection, "_h11_state", None)
    return state is None or bool(state.trailing_data[0])
