"""Takes the console's pictures that README and docs show, from the scene: `python -m tests.support.picture`.

The same scene gives the same pictures, byte for byte, with the pinned Textual.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sqlalchemy import Connection, create_engine

from sexton_tui.console.app import ConsoleOptions, SextonConsole
from tests.support import scene, troubles
from tests.support.ledgers import make_ledger

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SIZE = (120, 36)
WAIT_SECONDS = 60


def _as_it_is(_connection: Connection) -> None:
    """The scene itself."""


# What is the matter, and a text that is on the screen once it shows that.
PICTURES: Mapping[str, tuple[Callable[[Connection], None], str]] = {
    "console-overview": (_as_it_is, "confirmed"),
    "console-degraded": (troubles.degraded, "! DEGRADED"),
    "console-no-leader": (troubles.no_leader, "! NO LEADER"),
}


def kept(name: str) -> Path:
    """Where the docs have it."""
    return IMAGES / f"{name}.svg"


def take(name: str, folder: Path) -> str:
    """The picture as SVG; the scene's database is made in the folder."""
    url = f"sqlite:///{folder / 'picture.db'}"
    make_ledger(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        scene.seed(connection)
        trouble, text = PICTURES[name]
        trouble(connection)
    engine.dispose()
    options = ConsoleOptions(url, clock=lambda: scene.NOW, kill_leader=lambda: "never")
    return asyncio.run(_draw(SextonConsole(options, monotonic=lambda: 0.0), text))


async def _draw(app: SextonConsole, text: str) -> str:
    async with app.run_test(size=SIZE) as pilot:
        deadline = time.monotonic() + WAIT_SECONDS
        before = ""
        while True:
            picture = app.export_screenshot(title="sexton console")
            seen = picture.replace("&#160;", " ")
            is_whole = all(part in seen for part in ("takeover 02:13", "leave", text))  # data, footer, banner
            if is_whole and picture == before:  # nothing moves any more
                return picture
            if time.monotonic() > deadline:
                raise RuntimeError("the console showed no data")
            before = picture
            await pilot.pause(0.2)


def main() -> None:
    """Write the pictures to their place in docs."""
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith("TEXTUAL")]:
        del os.environ[name]
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            kept(name).write_text(take(name, Path(folder)))
        sys.stdout.write(f"{kept(name)}\n")


if __name__ == "__main__":
    main()
