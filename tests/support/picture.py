"""Takes the console's pictures that README and docs show, from the scene: `make screenshots`.

The same scene gives the same pictures, byte for byte, with the pinned Textual.
"""

from __future__ import annotations

import asyncio
import html
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from sqlalchemy import Connection, create_engine
from textual.pilot import Pilot
from textual.widgets import Input

from sexton_tui.console.app import ConsoleOptions, SextonConsole
from tests.support import scene, troubles
from tests.support.ledgers import make_ledger

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SIZE = (120, 36)
WAIT_SECONDS = 60


def _as_it_is(_connection: Connection) -> None:
    """The scene itself."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: the keys that lead to it, each with a text that is on the screen after it; what is the matter."""

    steps: tuple[tuple[str, str], ...] = ()
    trouble: Callable[[Connection], None] = _as_it_is
    text: str = "takeover 02:13"
    theme: str = "dark"


PICTURES: Mapping[str, Picture] = {
    "console-overview": Picture(),
    "console-overview-light": Picture(theme="light"),
    "console-degraded": Picture(trouble=troubles.degraded, text="! DEGRADED"),
    "console-no-leader": Picture(trouble=troubles.no_leader, text="! NO LEADER"),
    "console-takeovers": Picture((("2", "12 merged into it"),)),
    "console-tick": Picture(
        (
            ("2", "12 merged into it"),
            ("enter", "esc"),
            ("enter", "ticks after 02:01:00"),
            ("enter", "names 02:10 in UTC"),
        )
    ),
    "console-holds": Picture((("3", "gl-export"), ("enter", "could start"), ("a", "Approve 2: 02:05:00 to"))),
    "console-jobs": Picture((("4", "quarantined"),)),
    "console-job": Picture((("4", "quarantined"), ("ctrl+end", ""), ("up", ""), ("up", ""), ("enter", "esc"))),
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
        PICTURES[name].trouble(connection)
    engine.dispose()
    options = ConsoleOptions(
        url, clock=lambda: scene.NOW, kill_leader=lambda: "never", theme=PICTURES[name].theme, zone=UTC
    )
    return asyncio.run(_draw(SextonConsole(options, monotonic=lambda: 0.0), PICTURES[name]))


async def _draw(app: SextonConsole, wanted: Picture) -> str:
    async with app.run_test(size=SIZE) as pilot:
        picture = await _standing(pilot, "takeover 02:13", wanted.text)  # data, banner
        for key, text in wanted.steps:
            await pilot.press(key)
            picture = await _standing(pilot, text)
        return picture


async def _standing(pilot: Pilot[None], *texts: str) -> str:
    """The screen as SVG, once these texts are on it and nothing moves any more."""
    deadline = time.monotonic() + WAIT_SECONDS
    before = ""
    while True:
        for asked in pilot.app.screen.query(Input):
            asked.cursor_blink = False
        picture = pilot.app.export_screenshot(title="sexton console")
        seen = html.unescape(picture).replace("\xa0", " ")
        if picture == before and all(text in seen for text in texts):
            return picture
        if time.monotonic() > deadline:
            raise RuntimeError(f"the console did not show {texts}")
        before = picture
        await pilot.pause(0.2)


def main() -> None:
    """Write the pictures, or those that are named, to their place in docs."""
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith("TEXTUAL")]:
        del os.environ[name]
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            kept(name).write_text(take(name, Path(folder)))
        sys.stdout.write(f"{kept(name)}\n")


if __name__ == "__main__":
    main()
