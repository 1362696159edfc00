"""The server of consoles for browsers, with a small program in the console's place."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from http.cookies import SimpleCookie
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from aiohttp import (
    ClientSession,
    ClientWebSocketResponse,
    CookieJar,
    TCPConnector,
    WSMsgType,
    WSServerHandshakeError,
    web,
)
from structlog.testing import capture_logs

from sexton_tui.web.guard import HEADERS
from sexton_tui.web.server import ConsoleServer, tls_of
from sexton_tui.web.serving import Serving
from tests.support.certificates import Authority
from tests.support.waiting import eventually

TOKEN = "a-token-of-the-test"  # noqa: S105 - it guards nothing
WITHIN = 60
# Sends back what is typed. `q` leaves, `f` fails, and `s` makes it deaf to being asked to leave.
ECHO = """
import os, signal, sys, json
out = lambda kind, data: os.write(1, kind + len(data).to_bytes(4, "big") + data)
os.write(1, b"__GANGLION__\\n")
out(b"D", json.dumps({"pid": os.getpid(), "size": [os.environ["COLUMNS"], os.environ["ROWS"]]}).encode())
deaf = False
while head := sys.stdin.buffer.read(5):
    data = sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
    if data == b"f": sys.exit("a fault")
    if data == b"q": out(b"M", b'{"type": "exit"}'); sys.exit(0)
    deaf = deaf or data == b"s"
    if not deaf and head[:1] == b"M" and json.loads(data)["type"] == "quit": sys.exit(0)
    out(b"D", head[:1] + data)
while deaf: signal.pause()
"""


@dataclass(frozen=True)
class Served:
    client: ClientSession
    url: str

    async def enter(self) -> None:
        async with self.client.get(f"{self.url}/?token={TOKEN}") as answer:
            assert answer.status == 200

    async def tab(self, query: str = "?width=80&height=24") -> ClientWebSocketResponse:
        return await self.client.ws_connect(f"{self.url}/ws{query}", origin=self.url)


@contextlib.asynccontextmanager
async def served(**options: Any) -> AsyncIterator[Served]:
    ca = options.pop("ca", None)
    serving = Serving({}, command=(sys.executable, "-I", "-S", "-c", ECHO), port=0, token=TOKEN)
    serving = replace(serving, **options)
    server = ConsoleServer(serving, Path(str(files("textual_serve"))) / "static", dict(os.environ))
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls_of(serving)).start()
    trust = ssl.create_default_context(cafile=ca) if ca else True
    async with ClientSession(cookie_jar=CookieJar(unsafe=True), connector=TCPConnector(ssl=trust)) as client:
        try:
            yield Served(client, serving.url(runner.addresses[0][1]))
        finally:
            await runner.cleanup()


def run(act: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(act(), WITHIN * 2)

    asyncio.run(bounded())


async def first(tab: ClientWebSocketResponse) -> dict[str, Any]:
    """What the program says when it starts."""
    found: dict[str, Any] = json.loads(await tab.receive_bytes(timeout=WITHIN))
    return found


async def gone(pid: int) -> None:
    def is_gone() -> bool:
        return not Path(f"/proc/{pid}").exists()

    await asyncio.to_thread(eventually, is_gone, WITHIN, f"process {pid} is gone")


async def end_of(tab: ClientWebSocketResponse) -> tuple[int | None, str]:
    """The code and the reason with which the server closes it."""
    while (message := await tab.receive(timeout=WITHIN)).type is not WSMsgType.CLOSE:
        assert message.type is WSMsgType.BINARY, message
    return message.data, str(message.extra)


def test_a_browser_enters_by_the_token_once_and_by_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    async def act() -> None:
        async with served() as at:
            for query, is_told in (("", "false"), ("?token=wrong", "true")):
                async with at.client.get(f"{at.url}/{query}") as answer:
                    assert answer.status == 401
                    assert f'<p class="{is_told}">' in await answer.text()
                    assert answer.headers.items() >= HEADERS.items()
            async with at.client.get(f"{at.url}/static/js/textual.js") as answer:
                assert answer.status == 401
            form = {"token": f" {TOKEN}\n"}
            async with at.client.post(f"{at.url}/", data=form) as answer:  # as from another site's page
                assert answer.status == 403
            own = {"Origin": at.url}
            async with at.client.post(f"{at.url}/", data=form, headers=own, allow_redirects=False) as answer:
                cookie = next(iter(SimpleCookie(answer.headers["Set-Cookie"]).values()))
                assert (answer.status, answer.headers["Location"]) == (303, "/")
                assert cookie["httponly"]
                assert cookie["samesite"] == "Strict"
                assert TOKEN not in cookie.value
            async with at.client.get(f"{at.url}/") as answer:
                assert answer.status == 200
                assert answer.headers.items() >= HEADERS.items()
            for path, status in (("static/js/textual.js", 200), ("static/", 403), ("none", 404), ("page/../x", 404)):
                async with at.client.get(f"{at.url}/{path}") as answer:
                    assert answer.status == status, path
                    assert answer.headers.items() >= HEADERS.items()

    run(act)


def test_the_terminal_starts_without_webgl_which_not_every_browser_has() -> None:
    async def act() -> None:
        async with served(without_token=True) as at, at.client.get(f"{at.url}/static/js/textual.js") as answer:
            script = await answer.text()
        assert "loadAddon(this.canvasAddon)" in script
        assert "loadAddon(this.webglAddon)" not in script

    run(act)


def test_a_socket_opens_for_our_page_and_a_ticket_alone_and_no_process_starts_for_others() -> None:
    async def act() -> None:
        async with served() as at:
            with pytest.raises(WSServerHandshakeError, match="401"):
                await at.tab()
            await at.enter()
            other = at.url[:-1] + ("1" if at.url[-1] != "1" else "2")
            for headers, origin in (
                ({}, None),
                ({}, other),
                ({"Host": "attacker.test"}, at.url),
                ({"Host": "attacker.test"}, "http://attacker.test"),
            ):
                with pytest.raises(WSServerHandshakeError, match="403"):
                    await at.client.ws_connect(f"{at.url}/ws", origin=origin, headers=headers)
            tab = await at.tab("?width=99999&height=x")
            assert (await first(tab))["size"] == ["1000", "24"]
            await tab.send_json(["stdin", "ä"])
            assert (await tab.receive_bytes(timeout=WITHIN)).decode() == "Dä"
            await tab.send_json(["ping", "17"])
            assert (await tab.receive_json(timeout=WITHIN)) == ["pong", "17"]

    with capture_logs() as logs:
        run(act)
    assert [log["event"] for log in logs].count("a tab was opened") == 1


def test_the_process_of_a_closed_tab_is_gone_be_it_deaf_and_its_place_is_free() -> None:
    async def act() -> None:
        async with served(tabs=1) as at:
            await at.enter()
            for typed in ("a", "s"):
                tab = await at.tab()
                pid = (await first(tab))["pid"]
                refused = await at.tab()
                code, reason = await end_of(refused)
                assert code == 1013
                assert "1 tabs are open" in reason
                await tab.send_json(["stdin", typed])
                await tab.receive_bytes(timeout=WITHIN)
                await tab.close()
                await gone(pid)

    run(act)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ('["stdin", "q"]', 1000),
        ('["stdin", "f"]', 1011),
        ("no json", 1002),
        ("{}", 1002),
        ('["resize", {"width": "NaN"}]', 1002),
        ('["resize", {"width": 1e999, "height": 1}]', 1002),
        ('["stdin"]', 1002),
    ],
)
def test_a_socket_is_closed_with_what_happened(message: str, code: int) -> None:
    async def act() -> None:
        async with served() as at:
            await at.enter()
            tab = await at.tab()
            pid = (await first(tab))["pid"]
            await tab.send_str(message)
            assert (await end_of(tab))[0] == code
            await gone(pid)

    with capture_logs() as logs:
        run(act)
    assert [log.get("words") for log in logs if log["event"] == "a tab was closed"] == [
        "a fault" if code == 1011 else None
    ]


def test_the_end_of_the_server_is_told_to_its_tabs_and_ends_their_processes() -> None:
    async def act() -> None:
        async with served() as at:
            await at.enter()
            tabs = [await at.tab() for _ in range(2)]
            pids = [(await first(tab))["pid"] for tab in tabs]
            ends = [asyncio.create_task(end_of(tab)) for tab in tabs]
        assert [await end for end in ends] == [(1001, "the server ends")] * 2
        for pid in pids:
            await gone(pid)

    run(act)


def test_over_tls_the_cookie_is_for_this_host_and_tls_alone(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    signed = authority.sign("sexton", "IP:127.0.0.1")

    async def act() -> None:
        async with served(certificate=signed.certificate, key=signed.key, ca=authority.certificate) as at:
            async with at.client.get(f"{at.url}/?token={TOKEN}", allow_redirects=False) as answer:
                cookie = next(iter(SimpleCookie(answer.headers["Set-Cookie"]).values()))
                assert cookie["secure"]
                assert cookie.key.startswith("__Host-")
            tab = await at.tab()
            assert (await first(tab))["pid"]

    run(act)
