"""Takes the picture of the console that the README shows, from the scene: `python -m tests.support.picture`.

The same scene gives the same picture, byte for byte, with the pinned Textual.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from sqlalchemy import create_engine

from sexton.store.schema import upgrade
from sexton_tui.console.app import ConsoleOptions, SextonConsole
from tests.support import scene

KEPT = Path(__file__).resolve().parents[2] / "docs" / "images" / "console-overview.svg"
SIZE = (120, 36)
WAIT_SECONDS = 60


def take(folder: Path) -> str:
    """The picture as SVG; the scene's database is made in the folder."""
    url = f"sqlite:///{folder / 'picture.db'}"
    upgrade(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        scene.seed(connection)
    engine.dispose()
    options = ConsoleOptions(url, clock=lambda: scene.NOW, kill_leader=lambda: "never")
    return asyncio.run(_draw(SextonConsole(options, monotonic=lambda: 0.0)))


async def _draw(app: SextonConsole) -> str:
    async with app.run_test(size=SIZE) as pilot:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            picture = app.export_screenshot(title="sexton console")
            seen = picture.replace("&#160;", " ")
            if "takeover 02:13" in seen and "leave" in seen:  # the data and the footer
                return picture
            if time.monotonic() > deadline:
                raise RuntimeError("the console showed no data")
            await pilot.pause(0.1)


def main() -> None:
    """Write the picture to its place in docs."""
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith("TEXTUAL")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(take(Path(folder)))
    sys.stdout.write(f"{KEPT}\n")


if __name__ == "__main__":
    main()
