"""A job as in docs/fencing.md: it computes for a while, then writes, into a guarded table and into one without."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, update

from sexton import fencing
from sexton.errors import StaleToken
from sexton_worker.context import context

GUARDED, UNGUARDED = "balances", "unguarded_balances"


def balances(name: str) -> Table:
    """One row: who settled it last."""
    return Table(name, MetaData(), Column("settled_by", Integer, nullable=False))


def prepare(url: str) -> None:
    """The user's tables and fences, as a migration makes them."""
    engine = create_engine(url)
    with engine.begin() as connection:
        fencing.create_table(connection)
        for name in (GUARDED, UNGUARDED):
            balances(name).create(connection)
            connection.execute(insert(balances(name)).values(settled_by=0))
    engine.dispose()


def settle(url: str, folder: str) -> None:
    """The first attempt waits for the file `gate` before it writes. What became of it is in `over-TOKEN`."""
    run = context()
    Path(folder, f"begun-{run.token}").write_text(str(os.getpid()))
    while run.attempt == 1 and not Path(folder, "gate").exists():
        threading.Event().wait(0.02)
    became = "written"
    try:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(update(balances(UNGUARDED)).values(settled_by=run.token))
        with engine.begin() as connection, fencing.guard(connection):
            connection.execute(update(balances(GUARDED)).values(settled_by=run.token))
    except StaleToken as error:
        became = str(error)
        raise
    finally:
        draft = Path(folder, f"over-{run.token}.draft")
        draft.write_text(became)
        draft.rename(Path(folder, f"over-{run.token}"))
