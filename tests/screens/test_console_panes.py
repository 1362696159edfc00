"""What the panes of workers, queues, the audit log and settings open into."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert
from textual.pilot import Pilot

from sexton.store import tables
from sexton_tui.console.app import SextonConsole
from sexton_tui.console.core.subjects import OfNode, OfProposal, OfWorker
from tests.screens.conftest import Scene, shown
from tests.screens.playing import play, press, sees
from tests.support import scene


def test_what_needs_a_human_opens_and_workers_nodes_and_queues_open_into_what_they_do(seeded: Scene) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await sees(pilot, app, "queue gpu has no worker")
        await pilot.press("enter")
        await sees(pilot, app, "3 due, the oldest for 20m41s")
        await sees(pilot, app, "train-model")
        await pilot.press("enter")  # the claim that waits longest
        await sees(pilot, app, "train-model at 2026-03-29 02:10:00 UTC")
        await pilot.press("1", "down")
        assert app.subject == OfProposal("gl-export", 1)
        await pilot.press("6")
        await sees(pilot, app, "default, reports")
        await pilot.press("enter")
        await sees(pilot, app, "serves, heard of 1.0 s ago")
        await sees(pilot, app, "nightly-billing")
        worker: object = app.subject
        assert worker == OfWorker("worker-1")  # d drains it, whatever it runs
        await pilot.press("escape", "tab")
        node: object = app.subject
        assert node == OfNode("sched-1")
        await pilot.press("enter")
        await sees(pilot, app, "yes; F forces it to")
        await sees(pilot, app, "Led 1 term of the last 3")

    play(seeded.console(), act)


def test_the_audit_log_is_paged_and_narrowed_and_events_and_settings_open_into_all_of_them(seeded: Scene) -> None:
    long = "because " * 40
    with seeded.engine.begin() as connection:
        for event_id in range(5, 110):
            row = {"event_id": event_id, "at": scene.NOW, "actor": "ana", "action": "setting.changed", "job_id": None}
            detail = f'{{"key": "horizon", "from": "{event_id}s", "to": "2m", "why": "{long}end {event_id}"}}'
            connection.execute(insert(tables.events).values(detail=detail, **row))

    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("8")
        await sees(pilot, app, "page 1: 100 events, older with ]")
        await pilot.press("enter")
        await sees(pilot, app, "end 109")  # wrapped: nothing of it lies beyond the edge
        await pilot.press("escape", "]")
        await sees(pilot, app, "page 2: 9 events, newer with [")
        await sees(pilot, app, "storage moves tonight")
        await pilot.press("slash")
        await press(pilot, "job:backup-db")
        await pilot.press("enter")
        await sees(pilot, app, "page 1: 1 events with job:backup-db")
        assert "term.taken" not in shown(app)
        await pilot.press("9")
        await sees(pilot, app, "How far ahead claims")
        await pilot.press("down", "enter")
        await sees(pilot, app, "109s to 2m  by ana")

    play(seeded.console(), act)
