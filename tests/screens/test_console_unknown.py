"""The console over a ledger in which a newer release has written words that this one does not know."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update
from textual.pilot import Pilot

from sexton.claims import State
from sexton.store import tables
from sexton_tui.console.app import SextonConsole
from tests.screens.conftest import Scene
from tests.screens.playing import play, sees

WORD = "defected\x1b[2J" + "!" * 10_000


def test_unknown_words_are_told_where_they_stand_and_everything_else_goes_on(seeded: Scene) -> None:
    with seeded.engine.begin() as connection:
        newest = tables.takeovers.c.term == 41
        connection.execute(update(tables.takeovers).where(newest).values(predecessor_ended=WORD, elected_by=WORD))
        connection.execute(update(tables.decisions).values(cause=WORD, policy=WORD))
        connection.execute(update(tables.runs).values(outcome=99))
        connection.execute(update(tables.claims).where(tables.claims.c.state == State.RUNNING).values(origin=99))
        connection.execute(update(tables.cluster).values(elected_by=WORD))

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        for key, told in (
            ("1", "unknown: 99"),
            ("2", "unknown: defected?[2J!"),
            ("5", "unknown: 99"),
            ("4", "sync-eu"),
        ):
            await pilot.press(key)
            await sees(pilot, app, told)
        await pilot.press("2")
        await sees(pilot, app, "gl-export")
        await pilot.press("enter")
        await sees(pilot, app, "ended in a way that is unknown:")
        assert not app._trouble

    play(seeded.console(), act)
