"""The console under a database role that may only read: it shows all, and what it may not do it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url
from textual.pilot import Pilot

from sexton_tui.console.app import ConsoleOptions, SextonConsole
from tests.screens.conftest import until
from tests.screens.playing import play, press, sees
from tests.support import scene
from tests.support.ledgers import make_ledger


@pytest.fixture
def reader_url(postgres_url: str) -> Iterator[str]:
    """The scene's database, for a role that may read it and no more."""
    make_ledger(postgres_url)
    url = make_url(postgres_url)
    role = f"reader_{url.database}"
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        scene.seed(connection, connection.exec_driver_sql("SELECT now()").scalar_one())
        connection.exec_driver_sql(f'CREATE ROLE "{role}" LOGIN')
        connection.exec_driver_sql(f'GRANT SELECT ON ALL TABLES IN SCHEMA public TO "{role}"')
    yield url.set(username=role).render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.exec_driver_sql(f'DROP OWNED BY "{role}"')
        connection.exec_driver_sql(f'DROP ROLE "{role}"')
    engine.dispose()


def test_a_role_that_may_only_read_sees_all_and_is_told_what_it_may_not_do(reader_url: str) -> None:
    async def act(pilot: Pilot[Any], app: SextonConsole) -> None:
        await pilot.press("4")
        await until(pilot, lambda: app.job_under_cursor == "backup-db", "the jobs are shown")
        await pilot.press("t")
        await sees(pilot, app, "Run backup-db once, now?")
        await pilot.press("y")
        await sees(pilot, app, "permission denied")
        await pilot.press("5")
        await sees(pilot, app, "running")
        await pilot.press("enter")  # it cannot ask the worker for the output
        await sees(pilot, app, "try 1")
        await press(pilot, "q")
        await until(pilot, lambda: app.screen is app.main, "it goes on")

    play(SextonConsole(ConsoleOptions(reader_url)), act)
