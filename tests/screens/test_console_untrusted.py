from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from textual.pilot import Pilot

from sexton.store import tables
from sexton_tui.console.app import SextonConsole
from tests.screens.conftest import Scene, shown, until
from tests.screens.playing import play, press, sees
from tests.support import scene


@pytest.mark.parametrize("size", [(80, 24), (240, 60)])
def test_hostile_text_changes_nothing_but_what_it_says(hostile: Scene, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        assert_clean(app)
        for key in "23456789":
            await pilot.press(key)
            await pilot.pause(0.3)
            assert_clean(app)
        await pilot.press("4")
        await sees(pilot, app, "a [/x] b\\x1b[2J\\u202e")
        await pilot.press("home")
        await until(pilot, lambda: app.job_under_cursor == scene.HOSTILE_NAME, "the hostile job is chosen")
        await pilot.press("enter")
        await sees(pilot, app, "revision 1")
        assert_clean(app)
        await pilot.press("escape", "p")
        await sees(pilot, app, "why?")
        assert_clean(app)
        await press(pilot, "x")
        await pilot.press("enter")
        paused = select(tables.jobs.c.paused_at).where(tables.jobs.c.job_id == 10)
        await until(pilot, lambda: hostile.rows(paused)[0].paused_at is not None, "it is paused")
        await sees(pilot, app, "paused")
        assert_clean(app)
        await pilot.press("5", "f")
        await sees(pilot, app, "8 runs only failed")
        await pilot.press("enter")
        await sees(pilot, app, "stdout")
        assert_clean(app)
        assert app.is_running

    play(hostile.console(), act, size)


def assert_clean(app: SextonConsole) -> None:
    text = shown(app)
    assert not any(character in text for character in "\x1b\x07\u202e\x9b")


def test_ascii_draws_no_other_character(hostile: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        for key in (*"123456789", "h", "escape", "question_mark", "ctrl+p"):  # dialogs, help and the palette too
            await pilot.press(key)
            await pilot.pause(0.3)
            assert {character for character in shown(app) if not character.isascii()} == set()

    play(hostile.console(ascii_only=True), act, (100, 30))
