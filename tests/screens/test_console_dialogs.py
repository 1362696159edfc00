"""Dialogs: what is typed on the way to them, and what is in sight of them on small terminals."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import select
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from sexton.claims import Origin
from sexton.errors import DatabaseUnreachable
from sexton.store import tables
from sexton.store.protocol import Store
from sexton_tui.console import held_keys
from sexton_tui.console.acts import Done
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.calls import Calls
from sexton_tui.console.held_keys import HeldKeys
from sexton_tui.console.palette import SextonPalette
from tests.screens.conftest import Scene, shown, until
from tests.screens.playing import play, press, sees, to_job

PAUSED = select(tables.jobs.c.pause_reason).where(tables.jobs.c.job_id == 2)


def at_once(app: SextonConsole, *keys: str) -> None:
    """As a terminal hands over what was typed faster than a screen is drawn."""
    for key in keys:
        name = {" ": "space", "/": "slash"}.get(key, key)
        app.post_message(Key(name, key if len(key) == 1 else None))


def typed(app: SextonConsole) -> str:
    """What stands in the line that has the focus."""
    return app.focused.value if isinstance(app.focused, Input) else ""


def test_what_is_typed_before_a_dialog_stands_is_for_that_dialog_and_never_for_the_pane(
    seeded: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "minutely-sync")
        at_once(app, *"pt q1hK9 moves")
        await until(pilot, lambda: typed(app) == "t q1hK9 moves", "the letters are the question's")
        assert (app.pane.id, len(app.screen_stack)) == ("jobs", 2)
        await pilot.press("enter")
        await sees(pilot, app, "minutely-sync is paused")
        at_once(app, "/", *"bkdb")
        await until(pilot, lambda: typed(app) == "bkdb", "the letters are the question's")
        await pilot.press("escape")

        # Where a key can do nothing, what was typed behind it does nothing either.
        await pilot.press("1")
        at_once(app, *"dthe disk h")
        await sees(pilot, app, "to drain wants a worker under the cursor: pane 6")
        assert app.screen is app.main
        await until(pilot, lambda: app._held is None, "there was a pause in it")
        at_once(app, "at", *"-2h")
        await until(pilot, lambda: typed(app) == "-2h", "the runs are asked for that time")
        assert app.pane.id == "runs"
        await pilot.press("escape")
        await to_job(pilot, app, "minutely-sync")

        # A question that one key answers is not answered before it was seen.
        with monkeypatch.context() as slowly:
            slowly.setattr(held_keys, "PAUSE", 60.0)  # however long this machine takes to draw it
            at_once(app, *"tysd")
            await sees(pilot, app, "Run minutely-sync once, now?")
            at_once(app, "y")
            await sees(pilot, app, "typed before this was asked")
        await pilot.press("escape")
        await until(pilot, lambda: not app.is_asking, "it is left")

        # Nor by the rest of a sentence that was meant for another question, as it stands in sight already.
        monkeypatch.setattr(HeldKeys, "unseen", 60.0)
        at_once(app, "t")
        await sees(pilot, app, "Run minutely-sync once, now?")
        at_once(app, *"payroll")
        await sees(pilot, app, "typed before this was asked")
        await until(pilot, lambda: app._held is None, "there was a pause in it")
        await pilot.press("n")
        await until(pilot, lambda: not app.is_asking, "it is answered")
        monkeypatch.setattr(HeldKeys, "unseen", 0.0)

        # A database that is slow: it is told, keys wait, and escape leaves it.
        gate = threading.Event()
        await app.read(lambda _store: None)
        stuck = app._reads(lambda _store: gate.wait(60), 60)
        waiting = app.run_worker(stuck)
        await pilot.press("P")
        await sees(pilot, app, "reading …")
        at_once(app, *"disk s")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main and not app.is_asking, "it is left")
        await pilot.press("r")
        await sees(pilot, app, "reading …")
        at_once(app, *"12345dddd")
        gate.set()
        await sees(pilot, app, "s  stay undone")
        assert app.pane.id == "jobs"
        await waiting.wait()

    play(seeded.console(), act)
    assert seeded.rows(PAUSED) == [("t q1hK9 moves",)]
    assert seeded.rows(select(tables.claims.c.job_id).where(tables.claims.c.origin == int(Origin.MANUAL))) == []


def test_where_to_answer_is_in_sight_however_small_the_terminal_and_the_question_scrolls(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await to_job(pilot, app, "minutely-sync")
        await pilot.press("p")
        await sees(pilot, app, "Pause minutely-sync")
        for size in ((40, 12), (20, 5)):
            await pilot.resize_terminal(*size)
            await pilot.press("home", "ctrl+k")
            await press(pilot, "disk")
            await sees(pilot, app, "disk")
            assert "enter: done" in shown(app)
        await pilot.press("escape")
        await pilot.press("t")
        await sees(pilot, app, "y yes   n no")
        assert "cannot be undone" not in shown(app)
        await pilot.press("pagedown")
        await sees(pilot, app, "cannot be undone")
        assert "y yes   n no" in shown(app)
        await pilot.press("n")
        await pilot.resize_terminal(80, 24)
        await sees(pilot, app, "… ? all keys")
        assert "q leave" in shown(app)

    play(seeded.console(), act)


def test_leaving_a_console_that_a_cluster_ends_with_is_asked_and_an_act_that_never_began_is_told(seeded: Scene) -> None:
    def opening() -> Store:
        raise DatabaseUnreachable("connection refused")

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        app._writes = Calls(opening, "no database")
        await app.act(lambda _: Done("done"))
        await sees(pilot, app, "not done: the database cannot be reached")
        assert "outcome unknown" not in shown(app)
        await pilot.press("q")
        await sees(pilot, app, "All of it stops.")
        await pilot.press("enter", "n")
        await until(pilot, lambda: app.screen is app.main and not app.is_asking, "the question is gone")
        assert app.is_running
        await pilot.press("q")
        await sees(pilot, app, "All of it stops.")
        await pilot.press("y")
        await until(pilot, lambda: app._exit, "it ends")

    play(seeded.console(leaving_ends="All of it stops."), act)


def test_an_answer_given_twice_in_one_breath_and_a_terminal_without_a_line_break_nothing(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.resize_terminal(20, 1)
        await pilot.press("down", "pageup", "pagedown")
        await pilot.press("ctrl+p", "down", "pageup", "escape")
        await pilot.resize_terminal(120, 40)
        await to_job(pilot, app, "minutely-sync")
        await pilot.press("enter")
        await sees(pilot, app, "minutely-sync")
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, SextonPalette), "the palette is open")
        await press(pilot, "workers")
        await sees(pilot, app, "the pane of key 6")
        at_once(app, "enter", "enter", "enter")
        await until(pilot, lambda: app.pane.id == "workers" and app.screen is app.main, "the pane is chosen")

    play(seeded.console(), act)
