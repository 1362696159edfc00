"""The server of consoles for browsers: a page, a socket, and a process for as long as the socket is open.

The page's terminal (xterm.js, with its fonts) is that of textual-serve; what is around it is ours. `serve` returns
within some seconds of a signal, with every tab's process gone, and a tab's process ends with its socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import secrets
import signal
import socket
import ssl
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import structlog
from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.typedefs import Handler

from sexton.errors import InvalidSetting, NotFound, Refused
from sexton_tui.web.guard import HEADERS, Verdict, Visit
from sexton_tui.web.serving import Serving
from sexton_tui.web.tab_environment import PEER, tab_environment
from sexton_tui.web.tab_process import TabProcess, fitting

PAGE = Path(__file__).parent / "page"
HEARTBEAT_SECONDS = 15.0  # a tab whose machine went to sleep is noticed after one and a half of them
CLOSE_WITHIN = 1.0
_MOST_FORM = 4096
_MOST_MESSAGE = 256 * 1024  # a paste
_ASK = "token.html"
_SCRIPT = "js/textual.js"
# The terminal starts WebGL, and draws with the 2D canvas that is loaded right after it; where a browser has no WebGL,
# as on virtual machines, it would end there, and the page stay empty.
_WEBGL = "this.webglAddon=new p.WebglAddon,this.terminal.loadAddon(this.webglAddon),"

log = structlog.get_logger()


class ConsoleServer:
    """The pages and sockets of one ``Serving``; ``terminal`` is the folder of textual-serve's files."""

    def __init__(self, serving: Serving, terminal: Path, environ: dict[str, str]) -> None:
        self._serving = serving
        self._terminal = terminal
        self._environ = environ
        self._ticket = secrets.token_urlsafe(32)
        self._guard = serving.guard(self._ticket)
        # Over TLS a browser keeps it for this very host; else a host's ports share cookies, and each has its name.
        self._cookie = f"{'__Host-' if serving.is_seen_over_tls else ''}sexton-{serving.port or secrets.token_hex(4)}"
        self._sockets: set[web.WebSocketResponse] = set()
        self._left = asyncio.Event()  # a tab has ended

    def app(self) -> web.Application:
        """What aiohttp runs."""
        app = web.Application(middlewares=[self._watch], client_max_size=_MOST_FORM)
        app.router.add_get("/", self._index)
        app.router.add_post("/", self._index)  # the form of the token, which the guard has judged
        app.router.add_get("/ws", self._socket)
        app.router.add_static("/page", PAGE)
        app.router.add_get(f"/static/{_SCRIPT}", self._script)
        app.router.add_static("/static", self._terminal)
        app.on_shutdown.append(self._close_all)
        return app

    @web.middleware
    async def _watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        verdict = self._guard.verdict(await self._visit(request))
        if verdict is Verdict.ADMITTED:
            response = await self._answered(request, handler)
        else:
            if verdict is not Verdict.ENTERED and (request.path == "/ws" or verdict is not Verdict.NO_TOKEN):
                log.warning("a request was refused", why=verdict.value, peer=request.remote)
            response = self._refusal(verdict)
        if not response.prepared:
            response.headers.update(HEADERS)
            response.headers.setdefault("Cache-Control", "no-cache")
        return response

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:  # no such page, no such file
            return web.Response(status=error.status, text=f"{error.reason}\n", headers=error.headers)

    async def _visit(self, request: web.Request) -> Visit:
        shown = request.query.get("token") if request.path == "/" else None
        if request.method == "POST":
            with contextlib.suppress(web.HTTPRequestEntityTooLarge, ValueError):
                value = (await request.post()).get("token", "")
                shown = value.strip() if isinstance(value, str) else None
        return Visit(
            host=request.headers.get("Host"),
            origin=request.headers.get("Origin"),
            changes=request.method not in ("GET", "HEAD") or request.path == "/ws",
            shown=shown,
            cookie=request.cookies.get(self._cookie),
        )

    def _refusal(self, verdict: Verdict) -> web.StreamResponse:
        """The answer to who is not admitted, or not yet."""
        if verdict is Verdict.ENTERED:
            response = web.Response(status=303, headers={"Location": "/"})
            secure = self._serving.is_seen_over_tls
            response.set_cookie(self._cookie, self._ticket, httponly=True, samesite="Strict", secure=secure, path="/")
            return response
        if verdict in (Verdict.NO_TOKEN, Verdict.WRONG_TOKEN):
            page = (PAGE / _ASK).read_text("utf-8").replace("WRONG", str(verdict is Verdict.WRONG_TOKEN).lower())
            return web.Response(status=401, text=page, content_type="text/html")
        hint = "open the address that the server printed, or tell it this one with --public-url"
        return web.Response(status=403, text=f"sexton: {verdict.value}; {hint}\n")

    async def _index(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":  # where no token is asked for
            return web.Response(status=303, headers={"Location": "/"})
        return web.FileResponse(PAGE / "index.html")

    async def _script(self, request: web.Request) -> web.StreamResponse:
        text = (self._terminal / _SCRIPT).read_text("utf-8").replace(_WEBGL, "")
        response = web.Response(text=text, content_type="text/javascript")
        response.headers["Cache-Control"] = "private, max-age=600"
        response.enable_compression()
        return response

    # --- a tab --------------------------------------------------------------------------------------

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        opened = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS, max_msg_size=_MOST_MESSAGE, timeout=CLOSE_WITHIN)
        await opened.prepare(request)
        if len(self._sockets) >= self._serving.tabs:
            log.warning("a tab was refused", why="too many tabs", tabs=len(self._sockets), peer=request.remote)
            text = f"{len(self._sockets)} tabs are open, the most this server takes: close one, or raise --tabs"
            await opened.close(code=WSCloseCode.TRY_AGAIN_LATER, message=text.encode())
            return opened
        self._sockets.add(opened)
        try:
            code, reason = await self._tab(opened, request)
            with contextlib.suppress(ConnectionError):
                await opened.close(code=code, message=reason.encode())
        finally:
            self._sockets.discard(opened)
            self._left.set()
        return opened

    async def _tab(self, opened: web.WebSocketResponse, request: web.Request) -> tuple[int, str]:
        """One tab from its opening to its end, when its process is gone; with what its socket is to be closed."""
        peer = request.remote or "?"
        size = fitting(_number(request.query.get("width"), 80), _number(request.query.get("height"), 24))
        environment = tab_environment(self._environ, {**self._serving.environment, PEER: peer}, size)
        process = await TabProcess.start((*self._serving.command, str(os.getpid())), environment)
        log.info("a tab was opened", peer=peer, pid=process.pid, tabs=len(self._sockets))
        code, words = 0, ""
        try:
            answer = await _connect(opened, process)
        finally:
            code, words = await asyncio.shield(process.stop())
            told: dict[str, Any] = {"words": words} if words else {}
            log.info("a tab was closed", peer=peer, pid=process.pid, code=code, **told)
        return (WSCloseCode.INTERNAL_ERROR, "the console ended by a fault; the server's log has it") if code else answer

    async def _close_all(self, _: web.Application) -> None:
        """Tell the tabs that the server ends; their processes end with their sockets."""
        closing = [one.close(code=WSCloseCode.GOING_AWAY, message=b"the server ends") for one in self._sockets]
        await asyncio.gather(*closing, return_exceptions=True)
        while self._sockets:
            self._left.clear()
            await self._left.wait()


async def _connect(opened: web.WebSocketResponse, process: TabProcess) -> tuple[int, str]:
    """Carry keys and screens until the tab is closed or the console has ended; with what the socket is closed."""
    drawing = asyncio.create_task(_draw(opened, process))
    hearing = asyncio.create_task(_hear(opened, process))
    done, pending = await asyncio.wait((drawing, hearing), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    failed = next((task.exception() for task in done if task.exception() is not None), None)
    if isinstance(failed, ValueError):
        return WSCloseCode.PROTOCOL_ERROR, "what this page sent is no message of a terminal"
    if failed is not None and not isinstance(failed, ConnectionError):
        raise failed
    return WSCloseCode.OK, "left"


async def _draw(opened: web.WebSocketResponse, process: TabProcess) -> None:
    async for screen in process.screens():
        await opened.send_bytes(screen)


async def _hear(opened: web.WebSocketResponse, process: TabProcess) -> None:
    """Raises ValueError for what is no message of the page."""
    async for message in opened:
        if message.type is not WSMsgType.TEXT:
            continue
        try:
            kind, *rest = json.loads(message.data)
            if kind == "stdin":
                process.type(str(rest[0]))
            elif kind == "resize":
                process.resize(int(rest[0]["width"]), int(rest[0]["height"]))
            elif kind in ("focus", "blur"):
                process.tell(kind)
            elif kind == "ping":
                await opened.send_json(["pong", str(rest[0])])
        except (TypeError, KeyError, IndexError, OverflowError) as error:
            raise ValueError(str(error)) from None


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 6 else otherwise


# --- the server ------------------------------------------------------------------------------------


def serve(serving: Serving, environ: dict[str, str], ready: Callable[[str], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; ``ready`` is called with the address once it can be opened.

    Raises Refused where the address cannot be had, NotFound and InvalidSetting where the certificate cannot be used.
    """
    tls = tls_of(serving)
    with as_file(files("textual_serve") / "static") as terminal:
        asyncio.run(_serve(serving, tls, terminal, environ, ready))


async def _serve(
    serving: Serving,
    tls: ssl.SSLContext | None,
    terminal: Path,
    environ: dict[str, str],
    ready: Callable[[str], None],
) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = ConsoleServer(serving, terminal, environ)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=CLOSE_WITHIN)  # addresses hold tokens
    await runner.setup()
    try:
        site = web.TCPSite(runner, serving.host, serving.port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            raise _no_address(serving, error) from None
        ready(serving.url(runner.addresses[0][1]))
        await ended.wait()
    finally:
        await runner.cleanup()


def tls_of(serving: Serving) -> ssl.SSLContext | None:
    """The certificate, ready to be shown; None where there is none. Raises NotFound and InvalidSetting."""
    if serving.certificate is None:
        return None
    for option, file in (("--certificate", serving.certificate), ("--key", serving.key)):
        if file is not None and not file.is_file():
            raise NotFound(f"{option}: there is no file {file}", hint="name the PEM file")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # The password of a key would be asked for on the terminal: there may be none.
        context.load_cert_chain(serving.certificate, serving.key, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error.strerror if isinstance(error, OSError) else "a password"
        raise InvalidSetting(
            f"{serving.certificate} and its key cannot be used ({reason})",
            hint="give the certificate, its chain and its key without a password as PEM files that this user can read",
        ) from None
    return context


def _no_address(serving: Serving, error: OSError) -> Refused:
    where = f"{serving.host}:{serving.port}"
    if error.errno == errno.EADDRINUSE:
        return Refused(f"{where} is in use", hint="name another port with --port, or --port 0 for any that is free")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Refused(f"{where} is not for this user", hint="name a port from 1024 on with --port")
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return Refused(f"{serving.host} is no address of this machine", hint="mend --host")
    return Refused(f"{where} cannot be served ({error.strerror or error})", hint="mend --host and --port")
