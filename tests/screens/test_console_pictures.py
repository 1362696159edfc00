"""Pictures of the screens over the scene, compared with those kept. `make test TESTS="tests/screens --snapshot-update"`
takes them anew; look at snapshot_report.html before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from textual.pilot import Pilot

from tests.screens.conftest import Scene, shown, until
from tests.support import picture, troubles

SnapCompare = Callable[..., bool]


def after(*keys: str, text: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Wait for the first data, press the keys, wait for the text."""

    async def prepare(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: "sched-2" in shown(pilot.app), "the first data arrives")
        await pilot.press(*keys)
        await until(pilot, lambda: text in shown(pilot.app), f"{text!r} is on the screen")
        await until(pilot, lambda: "q leave" in shown(pilot.app), "the footer is drawn")
        seen = [""]

        def stands_still() -> bool:
            seen.append(shown(pilot.app))
            return seen[-1] == seen[-2]

        await until(pilot, stands_still, "nothing moves any more")

    return prepare


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (240, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_overview(seeded: Scene, snap_compare: SnapCompare, size: tuple[int, int], theme: str) -> None:
    app = seeded.console(kill_leader=lambda: "never", theme=theme)
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
        app, terminal_size=(120, 40), run_before=after("4", text="quarantined  -")
    )  # whole: columns have their widths


@pytest.mark.parametrize(
    ("trouble", "text", "size"),
    [
        pytest.param(troubles.degraded, "! DEGRADED", (80, 24), id="degraded"),
        pytest.param(troubles.degraded, "! DEGRADED", (120, 40), id="degraded-120x40"),
        pytest.param(troubles.no_leader, "!! NO LEADER", (80, 24), id="no-leader"),
        pytest.param(troubles.halted, "!! HALTED", (80, 24), id="halted"),
        pytest.param(troubles.clock_in_doubt, "!! CLOCK IN DOUBT", (80, 24), id="clock-in-doubt"),
        pytest.param(troubles.one_server_cut_off, "silent as sched-3", (120, 40), id="one-server-cut-off"),
    ],
)
def test_overview_in_trouble(
    seeded: Scene, snap_compare: SnapCompare, trouble: Callable[[Connection], None], text: str, size: tuple[int, int]
) -> None:
    with seeded.engine.begin() as connection:
        trouble(connection)
    assert snap_compare(seeded.console(), terminal_size=size, run_before=after(text=text))


def test_jobs_in_trouble_in_ascii(seeded: Scene, snap_compare: SnapCompare) -> None:
    with seeded.engine.begin() as connection:
        troubles.halted(connection)
        troubles.degraded(connection)
    app = seeded.console(ascii_only=True)
    assert snap_compare(app, terminal_size=(80, 24), run_before=after("4", text="quarantined"))


@pytest.mark.parametrize("name", ["console-overview", "console-tick", "console-holds"])
def test_the_pictures_in_the_docs_are_of_today(tmp_path: Path, name: str) -> None:
    is_of_today = picture.take(name, tmp_path) == picture.kept(name).read_text()  # a diff of SVGs helps nobody
    assert is_of_today, "take it anew: make screenshots"
