"""A real, headless Chromium, driven through its DevTools protocol over a WebSocket: pages, keys, network, pictures."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from tests.support.missing import MissingServerError
from tests.support.waiting import eventually

WAIT_SECONDS = 90
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the tests may be root, and open pages of their own alone
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-3d-apis",  # as where there is no graphics card
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--in-process-gpu",
    "--renderer-process-limit=1",
    "--mute-audio",
    # No name leads anywhere but the one of the attacker, who has pointed it at this machine.
    "--host-resolver-rules=MAP attacker.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
Event = dict[str, Any]


class Tab:
    """One page, and all that DevTools told of it."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self.target = target
        self.events: list[Event] = []

    async def call(self, method: str, **parameters: Any) -> Any:
        """A command of the protocol; its result."""
        return await self._browser.call(method, self._session, **parameters)

    async def open(self, url: str) -> None:
        """Navigate there, until the page and what belongs to it are loaded."""
        loader = (await self.call("Page.navigate", url=url))["loaderId"]
        loaded = {"name": "load", "loaderId": loader}
        await self.until(lambda: any(one.items() >= loaded.items() for one in self.told("Page.lifecycleEvent")))

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, once it is settled."""
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        """Press and release a key that writes `key`."""
        at = {"key": key, "text": key, "unmodifiedText": key, "windowsVirtualKeyCode": ord(key.upper())}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **at)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **at)

    async def picture(self) -> bytes:
        """What it looks like, as PNG."""
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

    async def close(self) -> None:
        """Close it, as a person does."""
        await self._browser.call("Target.closeTarget", targetId=self.target)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until this holds of `events`."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not is_so():
                await self._browser.news()

    def told(self, method: str) -> list[Any]:
        """The parameters of these events."""
        return [event["params"] for event in self.events if event["method"] == method]

    def drawn(self) -> str:
        """All that the sockets of this page brought for its terminal, without what moves and colours."""
        frames = [one["response"] for one in self.told("Network.webSocketFrameReceived")]
        data = b"".join(base64.b64decode(one["payloadData"]) for one in frames if one["opcode"] == 2)
        return _SEQUENCE.sub("", data.decode("utf-8", "replace"))


class Browser:
    """A Chromium whose profile is a folder of the test's own."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._tabs: dict[str, Tab] = {}
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def tab(self, width: int = 800, height: int = 480) -> Tab:
        """A new, empty tab."""
        made = await self.call("Target.createTarget", url="about:blank")
        session = await self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        tab = self._tabs[session["sessionId"]] = Tab(self, session["sessionId"], made["targetId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            await tab.call(f"{domain}.enable")
        await tab.call("Page.setLifecycleEventsEnabled", enabled=True)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await tab.call("Emulation.setDeviceMetricsOverride", **size)
        return tab

    async def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """A command of the protocol; its result."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        asked = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(asked if session is None else {**asked, "sessionId": session})
        return await asyncio.wait_for(answer, WAIT_SECONDS)

    async def news(self) -> None:
        """Wait for the next event of any tab."""
        await self._news.wait()

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                continue
            event = message.json()
            if (answer := self._answers.pop(event.get("id"), None)) is not None:
                if "error" in event:
                    answer.set_exception(AssertionError(event["error"]))
                else:
                    answer.set_result(event["result"])
            elif (tab := self._tabs.get(event.get("sessionId"))) is not None:
                tab.events.append(event)
                self._news.set()  # wakes those who wait now
                self._news.clear()


@contextlib.asynccontextmanager
async def chromium(profile: Path) -> AsyncIterator[Browser]:
    """Debian's Chromium; it and all its processes are gone afterwards."""
    program = shutil.which("chromium")
    if program is None:
        raise MissingServerError("there is no chromium here; run: apt-get install chromium")
    environment = {"PATH": os.environ["PATH"], "HOME": str(profile), "LANG": "C.UTF-8"}
    with (profile / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        url = await asyncio.to_thread(
            eventually, lambda: _devtools(profile / "DevToolsActivePort", process), WAIT_SECONDS, "Chromium listens"
        )
        async with ClientSession() as client, client.ws_connect(url, max_msg_size=0) as socket:
            yield Browser(socket)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(WAIT_SECONDS)


def _devtools(file: Path, process: subprocess.Popen[bytes]) -> str:
    """Where it is driven from; empty until it has said so."""
    if process.poll() is not None:
        raise RuntimeError(f"chromium ended: {(file.parent / 'chromium.log').read_text(errors='replace')[-2000:]}")
    with contextlib.suppress(FileNotFoundError, ValueError):
        port, path = file.read_text().splitlines()
        return f"ws://127.0.0.1:{port}{path}"
    return ""
