"""`sexton console --web` in a real Chromium, and as a process that starts, refuses and ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from tests.screens.conftest import Scene
from tests.support.browser import Tab, chromium
from tests.support.command_line import CommandLine
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.runs import is_alive
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually
from tests.support.web_picture import PICTURE

WITHIN = 90
TAKEOVER = "waits for an operator"  # what the takeovers say of a hold, and the overview does not


class ServedConsole:
    """A `sexton console --web` over the scene."""

    def __init__(self, process: RunningProcess) -> None:
        self.process = process
        self.url: str = eventually(self._url, WITHIN, "the address is printed")

    @property
    def address(self) -> str:
        return self.url.partition("/?")[0]

    def pids(self) -> list[int]:
        """The processes of the tabs, in the order in which these were opened."""
        return [int(pid) for pid in re.findall(r"a tab was opened .*pid=(\d+)", self.process.stderr())]

    def _url(self) -> str:
        assert self.process.is_running(), self.process.report()
        found = re.search(r"http://\S+", self.process.stdout())
        return "" if found is None else found[0]


def serve(processes: ProcessGroup, seeded: Scene, *options: str) -> ServedConsole:
    environment = {"SEXTON_DATABASE": seeded.url}
    return ServedConsole(processes.sexton("console", "--web", "--port", "0", *options, env=environment))


async def gone(pid: int) -> None:
    await asyncio.to_thread(eventually, lambda: not is_alive(pid), WITHIN, f"process {pid} is gone")


@contextlib.asynccontextmanager
async def another_server() -> AsyncIterator[str]:
    """A page of somebody else's, on another port of this machine."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<p>hello</p>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def requests_of(tab: Tab) -> list[str]:
    """Every address that the page asked for."""
    asked = [str(one["request"]["url"]) for one in tab.told("Network.requestWillBeSent")]
    return asked + [str(one["url"]) for one in tab.told("Network.webSocketCreated")]


def test_the_console_works_in_a_browser_and_for_its_own_page_alone(
    processes: ProcessGroup, seeded: Scene, tmp_path: Path
) -> None:
    console = serve(processes, seeded, "--read-only")
    profile = tmp_path / "profile"
    profile.mkdir()

    async def act() -> None:
        async with chromium(profile) as browser, another_server() as foreign:
            tab = await browser.tab()
            await tab.open(console.address)
            await tab.evaluate("document.querySelector('input').focus()")  # it will be, with the first picture
            await tab.call("Input.insertText", text=console.url.partition("token=")[2])
            await tab.press("\r")
            await tab.until(lambda: "sched-2" in tab.drawn())  # the leader
            (pid,) = console.pids()
            assert TAKEOVER not in tab.drawn()
            assert len(await tab.picture()) > 20_000  # and drawn: an empty page has a tenth of that
            await tab.press("2")  # nobody has clicked
            await tab.until(lambda: TAKEOVER in tab.drawn())

            assert await tab.evaluate("location.href + document.cookie") == f"{console.address}/"
            assert {re.sub("^ws", "http", url)[: len(console.address)] for url in requests_of(tab)} == {console.address}
            assert tab.told("Runtime.exceptionThrown") == []
            errors = [one["entry"]["text"] for one in tab.told("Log.entryAdded") if one["entry"]["level"] == "error"]
            assert [error for error in errors if "401" not in error] == []  # that was the form of the token
            assert seeded.url not in Path(f"/proc/{pid}/cmdline").read_text()

            other = await browser.tab()
            await other.open(foreign)  # which gets our cookies: ports do not count for them
            socket_of = f"new WebSocket({json.dumps(console.address.replace('http', 'ws') + '/ws')})"
            outcome = f"new Promise(end => {{ const s = {socket_of}; s.onopen = s.onerror = e => end(e.type) }})"
            assert await other.evaluate(outcome) == "error"
            await other.open(f"{console.address.replace('127.0.0.1', 'attacker.test')}/")
            assert "is not served under that host" in await other.evaluate("document.body.innerText")
            assert len(console.pids()) == 1

            second = await browser.tab()
            await second.open(console.address)  # the cookie is enough
            await second.until(lambda: "sched-2" in second.drawn())
            await tab.close()
            await gone(pid)
            assert is_alive(console.pids()[1])
            console.process.signal(signal.SIGTERM)
            await asyncio.to_thread(console.process.wait, WITHIN)
            assert not is_alive(console.pids()[1])
            news = await second.evaluate("document.getElementById('news').innerText")
            assert news == "The connection ended (the server ends); trying again."

    asyncio.run(act())
    assert console.process.wait(WITHIN) == 0
    token = console.url.partition("token=")[2]
    assert token
    assert token not in console.process.stderr()


def test_a_server_that_was_killed_leaves_no_process_of_a_tab_behind(processes: ProcessGroup, seeded: Scene) -> None:
    console = serve(processes, seeded, "--without-token")
    assert "whoever reaches this address operates the cluster" in console.process.stderr()

    async def act() -> None:
        async with ClientSession() as client, client.ws_connect(f"{console.url}/ws", origin=console.url) as tab:
            await tab.receive_bytes(timeout=WITHIN)
            (pid,) = console.pids()
            console.process.kill()
            await gone(pid)

    asyncio.run(act())


BROKEN = """
import sys
from textual.app import App
from sexton_tui.web.console_in_tab import run_in_tab
class Broken(App):
    def on_mount(self):
        database = "postgresql://ana:" + "s3cr" + "et@db/sexton"
        raise ValueError("no such pane")
sys.exit(run_in_tab(Broken()))
"""


def test_a_fault_in_a_tab_is_told_without_the_values_of_variables_which_may_be_secret() -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, input="", timeout=WITHIN)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: no such pane\n")
    assert "s3cret" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--port", "TAKEN"], 1, "127.0.0.1:TAKEN is in use; name another port with --port"),
        (["--host", "10.99.98.97", "--without-tls"], 1, "10.99.98.97 is no address of this machine"),
        (["--host", "0.0.0.0"], 1, "add --public-url"),  # noqa: S104 - refused
        (["--host", "10.0.0.7"], 1, "give --certificate and --key, or --without-tls"),
        (["--certificate", "no.pem"], 1, "--certificate: there is no file no.pem"),
        (["--certificate", "broken.pem"], 1, "broken.pem and its key cannot be used"),
        (["--token-file", "no-token"], 1, "the token file no-token cannot be read (No such file"),
        (["--token-file", "broken.pem", "--without-token"], 2, "contradict each other"),
        (["--key", "k.pem"], 2, "--key is given, and no --certificate"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(
    options: list[str], code: int, words: str, seeded: Scene, tmp_path: Path
) -> None:
    (tmp_path / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [option.replace("TAKEN", port) for option in options]
        done = CommandLine(tmp_path).run("console", "--web", *given, env={"SEXTON_DATABASE": seeded.url})
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert words.replace("TAKEN", port) in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_for_browsers_without_web_are_wrong_usage(tmp_path: Path) -> None:
    done = CommandLine(tmp_path).run("console", "--port", "80")
    assert done.returncode == 2
    assert "--port says how to serve browsers; add --web" in done.stderr


@pytest.mark.parametrize("library", ["aiohttp", "textual_serve"])
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    library: str, seeded: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "sexton_tui.web.server", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    done = CommandLine(tmp_path).run("console", "--web", "--port", "0", env={"SEXTON_DATABASE": seeded.url})
    assert done.returncode == 1
    assert done.stderr == f"sexton: this needs {library}, which is not installed; run: pip install 'sexton[web]'\n"


def test_the_docs_show_the_picture_that_is_taken() -> None:
    assert PICTURE.is_file()
    assert f"(images/{PICTURE.name})" in (ROOT / "docs" / "console-web.md").read_text()
