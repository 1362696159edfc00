"""Pictures of the screens over the scene, compared with those kept. `make test TESTS="tests/screens --snapshot-update"`
takes them anew; look at snapshot_report.html before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.screens.conftest import Scene, shown, until
from tests.support import picture

SnapCompare = Callable[..., bool]


def after(*keys: str, text: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Wait for the first data, press the keys, wait for the text."""

    async def prepare(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: "sched-2" in shown(pilot.app), "the first data arrives")
        await pilot.press(*keys)
        await until(pilot, lambda: text in shown(pilot.app), f"{text!r} is on the screen")
        await until(pilot, lambda: "q leave" in shown(pilot.app), "the footer is drawn")

    return prepare


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_overview(seeded: Scene, snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    app = seeded.console(kill_leader=lambda: "never")
    assert snap_compare(app, terminal_size=size, run_before=after(text="takeover 02:13"))


def test_overview_in_ascii(seeded: Scene, snap_compare: SnapCompare) -> None:
    app = seeded.console(ascii_only=True)
    assert snap_compare(app, terminal_size=(80, 24), run_before=after(text="takeover 02:13"))


def test_takeovers(seeded: Scene, snap_compare: SnapCompare) -> None:
    app = seeded.console()
    assert snap_compare(app, terminal_size=(120, 40), run_before=after("2", text="12 merged into it"))


def test_jobs(seeded: Scene, snap_compare: SnapCompare) -> None:
    app = seeded.console()
    assert snap_compare(
        app, terminal_size=(120, 40), run_before=after("3", text="quarantined  -")
    )  # whole: columns have their widths


def test_the_picture_in_the_docs_is_of_today(tmp_path: Path) -> None:
    is_of_today = picture.take(tmp_path) == picture.KEPT.read_text()  # a diff of SVGs helps nobody
    assert is_of_today, "take it anew: .venv/bin/python -m tests.support.picture"
