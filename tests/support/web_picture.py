"""Takes the picture of the console in a browser, from the scene: `python -m tests.support.web_picture`.

Chromium draws it with its own fonts: the same scene looks the same, and is not the same byte for byte.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from aiohttp import web
from sqlalchemy import create_engine

from sexton_tui.console.app import ConsoleOptions, SextonConsole
from sexton_tui.web.console_in_tab import run_in_tab
from sexton_tui.web.server import ConsoleServer
from sexton_tui.web.serving import Serving
from sexton_tui.web.tab_environment import DATABASE
from tests.support import scene
from tests.support.browser import chromium
from tests.support.ledgers import make_ledger
from tests.support.source_tree import ROOT

PICTURE = ROOT / "docs" / "images" / "console-web.png"
SIZE = (960, 600)
_IN_TAB = "in-a-tab"
# What the overview shows last: its banner's absence, its plot, its footer.
_TEXTS = ("confirmed", "takeover 02:13", "leave")
_LOOKS_ALIKE = 3


async def picture(folder: Path) -> bytes:
    """The overview of the scene in a page, as PNG; the scene's database and the browser's profile are in the folder."""
    url = f"sqlite:///{folder / 'picture.db'}"
    make_ledger(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        scene.seed(connection)
    engine.dispose()
    command = (sys.executable, "-m", "tests.support.web_picture", _IN_TAB)
    serving = Serving({DATABASE: url}, command=command, port=0, without_token=True)
    server = ConsoleServer(serving, Path(str(files("textual_serve"))) / "static", _plain_environment())
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, serving.host, 0).start()
    try:
        async with chromium(folder) as browser:
            tab = await browser.tab(*SIZE)
            await tab.open(serving.url(runner.addresses[0][1]))
            await tab.until(lambda: all(text in tab.drawn() for text in _TEXTS))
            seen: list[bytes] = []
            while len(seen) < _LOOKS_ALIKE or len(set(seen[-_LOOKS_ALIKE:])) > 1:  # until nothing moves any more
                seen.append(await tab.picture())
                await tab.evaluate("new Promise(end => setTimeout(end, 500))")
            return seen[-1]
    finally:
        await runner.cleanup()


def take_web_picture() -> Path:
    """Take it anew, and write it to its place in docs."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_bytes(asyncio.run(picture(Path(folder))))
    return PICTURE


def _plain_environment() -> dict[str, str]:
    """Nothing of the developer's terminal reaches the picture."""
    return {name: value for name, value in os.environ.items() if name != "NO_COLOR" and not name.startswith("TEXTUAL")}


def main(arguments: list[str]) -> int:
    """Take the picture; or, as a tab's process, be the console that stands still in the scene."""
    if arguments[:1] == [_IN_TAB]:
        options = ConsoleOptions(os.environ[DATABASE], clock=lambda: scene.NOW)
        return run_in_tab(SextonConsole(options, monotonic=lambda: 0.0))
    take_web_picture()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
