"""All refreshes of the console together make at most five statements a second on the database, whatever it shows."""

from __future__ import annotations

import threading
from typing import Any

from sqlalchemy import Engine, event
from textual.pilot import Pilot

from sexton.store import open_store
from sexton.store.protocol import StoreOptions
from sexton_tui.console import polling
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.core.pace import STATEMENTS_A_SECOND, Pace
from tests.screens.conftest import Scene, until
from tests.screens.playing import play
from tests.support import scene

_SECONDS = 12


def test_every_pane_is_refreshed_by_five_statements_a_second_at_most(seeded: Scene) -> None:
    made: list[str] = []
    here = threading.get_ident()

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # The console's own reads have threads of their own.
        if threading.get_ident() == here and not statement.startswith("BEGIN"):
            made.append(statement)

    def refreshed(app: SextonConsole) -> tuple[list[int], int]:
        """Statements in each simulated second, and how often the view was read."""
        store = open_store(StoreOptions(seeded.url, clock=lambda: scene.NOW, read_only=True))
        parts = store.reads.overview_parts(frozenset(), None)
        pace, name, request = Pace().began(0.0), type(app.view).__name__, app.view.request()
        seconds, views = [], 0
        event.listen(Engine, "before_cursor_execute", note)
        for second in range(1, _SECONDS + 1):
            turn = pace.turn(float(second), name, is_asked=False)
            before = len(made)
            answer = polling._reading(turn, parts, None, request)(store)
            assert answer.statements == len(made) - before, "the console counts what it makes"
            pace = pace.spent(float(second), turn, answer.statements, name, answer.of_view)
            parts, views = answer.parts, views + turn.view
            seconds.append(answer.statements)
        event.remove(Engine, "before_cursor_execute", note)
        store.close()
        return seconds, views

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        for key in "123456789":
            await pilot.press(key)
            await until(pilot, lambda: not app.pane.is_waiting, "the pane is shown")
            seconds, views = refreshed(app)
            assert sum(seconds) <= STATEMENTS_A_SECOND * _SECONDS, (app.pane.id, seconds)
            assert views >= _SECONDS / 4, (app.pane.id, seconds)

    play(seeded.console(), act)
