"""Themes, the zone of instants, and the palette."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from textual.pilot import Pilot

from sexton_tui.console.app import SextonConsole
from tests.screens.conftest import Scene, shown
from tests.screens.playing import play, press, sees


def test_instants_are_read_in_utc_in_the_local_zone_or_as_distances_and_the_zone_is_always_named(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await sees(pilot, app, "UTC 02:30:41")
        await pilot.press("z")
        await sees(pilot, app, "CEST 04:30:41")
        await sees(pilot, app, "since 04:13:07")
        await pilot.press("z")
        await sees(pilot, app, "UTC 02:30:41+-")
        await sees(pilot, app, "since 17m34s ago")
        await pilot.press("z")
        await sees(pilot, app, "since 02:13:07")

    play(seeded.console(zone=ZoneInfo("Europe/Berlin")), act)


def test_themes_change_by_a_key_and_change_no_word(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("4")
        await sees(pilot, app, "quarantined")
        await sees(pilot, app, "p pause")  # the footer is made anew a moment later
        seen = []
        for theme in ("contrast", "dark", "light"):
            seen.append(shown(app))
            await pilot.press("T")
            assert app.theme == theme
        assert len(set(seen)) == 1

    play(seeded.console(theme="light"), act)


def test_the_palette_finds_jobs_by_some_of_their_letters_whatever_they_are_called(hostile: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("ctrl+p")
        await press(pilot, "bkdb")
        await sees(pilot, app, "backup-db")
        await pilot.press("down", "enter")
        await sees(pilot, app, "sexton ▸ Overview ▸ backup-db")
        await pilot.press("ctrl+p")
        await press(pilot, "a appquit")
        await sees(pilot, app, "open the job")
        await pilot.press("down", "enter")
        await sees(pilot, app, "a [/x] b\\x1b[2J\\u202e[@click=app.quit]x")
        assert app.is_running

    play(hostile.console(), act)
