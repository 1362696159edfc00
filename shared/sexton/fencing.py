"""Guards a user's own tables against runs that are no longer the current ones (invariant 4; docs/fencing.md).

A worker that was frozen past its lease does not know it. When it wakes up, its job goes on writing, while another
worker has long done the same tick. Sexton refuses the result of the old run; of what the job writes elsewhere it knows
nothing. The *token* does: it grows with every grant, cluster-wide. A *fence* is a row with the highest token that has
passed, in the database that holds the guarded data:

    with engine.begin() as connection, fencing.guard(connection):
        connection.execute(...)         # counts only if no newer run has passed

* Passing is one statement that raises the row's token unless a higher one stands there, and it locks the row until the
  transaction ends. So runs pass one after another, and what one of them wrote is committed, or rolled back, before the
  next is let through: whatever freezes meanwhile, an older token's commit never follows a newer one's.
* READ COMMITTED: the statement waits for the row, and judges by what stands there then. REPEATABLE READ, SERIALIZABLE:
  where another run has passed since the transaction's first statement, the database refuses (PostgreSQL: error 40001);
  tried again, in a new transaction, it is refused by the token. Either way nothing is written.
* It orders writers; it does not undo what an older run had committed before the newer one passed. A run that must not
  repeat that looks, behind the guard, whether it is there.

Importing this module loads no SQLAlchemy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sexton.errors import InvalidInput, Refused, StaleToken
from sexton.run_context import context

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table, Update
    from sqlalchemy.sql.dml import Insert

TABLE = "sexton_fences"
LONGEST_KEY = 300
HIGHEST_TOKEN = 2**63 - 1

_WITH_UPSERT = ("postgresql", "sqlite")


@dataclass(frozen=True, slots=True)
class Fence:
    """The run with this token has passed, and nobody else does before the transaction ends."""

    key: str
    token: int


def is_current(token: int, seen: int | None) -> bool:
    """Whether a write under ``token`` counts where ``seen`` is the highest token so far; None: there was none.

    Compare in the statement that writes, or under a lock that is held until after the write.
    """
    return seen is None or token >= seen


def check(token: int, seen: int | None, key: str = "") -> None:
    """Raises ``StaleToken`` unless ``is_current``; ``key`` names in its message what is guarded."""
    if not is_current(token, seen):
        raise StaleToken(key, token, seen)


@contextlib.contextmanager
def guard(
    connection: Connection, key: str | None = None, *, token: int | None = None, table: Table | str = TABLE
) -> Iterator[Fence]:
    """``enter`` for a block in one transaction. Raises what ``enter`` raises, before the block.

    A block that ends in another transaction than it began in raises ``Refused``: what it wrote after its commit or
    rollback was not guarded.
    """
    fence = enter(connection, key, token=token, table=table)
    transaction = connection.get_transaction()
    yield fence
    if connection.in_transaction() and connection.get_transaction() is not transaction:
        raise Refused(
            f"the transaction that passed the fence {fence.key!r} ended inside the guarded block, and another began",
            hint="guard each transaction by itself",
        )


def enter(
    connection: Connection, key: str | None = None, *, token: int | None = None, table: Table | str = TABLE
) -> Fence:
    """Pass the fence ``key`` in the connection's transaction, which holds it until it ends.

    ``key``: None for the claim at hand (``JOB@TICK``); a job-wide one is right only where runs of the job never
    overlap. ``token``: None for that of the run at hand. ``table``: one made by ``fences_table``, or its name.

    Raises ``StaleToken`` where a higher token has passed: roll back. Raises ``OutsideRun`` without a run at hand,
    ``InvalidInput`` for a key or token that is none, ``Refused`` for a connection that commits each statement.
    """
    run = context() if key is None or token is None else None
    key = _valid_key(run.claim if run is not None and key is None else key)
    token = _valid_token(run.token if run is not None and token is None else token)
    fences = fences_table(table) if isinstance(table, str) else table
    if connection.dialect.name in _WITH_UPSERT:
        has_passed = connection.execute(_upsert(connection.dialect.name, fences, key, token)).rowcount == 1
    else:
        has_passed = _pass_by_standard_sql(connection, fences, key, token)
    if not has_passed:
        raise StaleToken(key, token, _highest(connection, fences, key, token))
    _refuse_autocommit(connection, key)
    return Fence(key, token)


def fences_table(name: str = TABLE, schema: str | None = None) -> Table:
    """The table of fences as SQLAlchemy knows it; ``create_table`` makes it, or a migration of your own."""
    from sqlalchemy import BigInteger, Column, DateTime, MetaData, String, Table, func

    return Table(
        name,
        MetaData(),
        Column("fence", String(LONGEST_KEY), primary_key=True),
        Column("token", BigInteger, nullable=False),
        Column("raised_at", DateTime(timezone=True), nullable=False, server_default=func.current_timestamp()),
        schema=schema,
    )


def create_table(connection: Connection, table: Table | str = TABLE) -> None:
    """The table exists, in the connection's transaction."""
    fences = fences_table(table) if isinstance(table, str) else table
    fences.create(connection, checkfirst=True)


# --- passing --------------------------------------------------------------------------------------------------------


def _upsert(dialect: str, fences: Table, key: str, token: int) -> Insert:
    """One statement: its row count is 1 if the token passed, else 0; either way the row is locked."""
    from sqlalchemy import func
    from sqlalchemy.dialects import postgresql, sqlite

    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = insert(fences).values(fence=key, token=token).execution_options(preserve_rowcount=True)
    return statement.on_conflict_do_update(
        index_elements=[fences.c.fence],
        set_={"token": statement.excluded.token, "raised_at": func.current_timestamp()},
        where=fences.c.token <= statement.excluded.token,
    )


def _pass_by_standard_sql(connection: Connection, fences: Table, key: str, token: int) -> bool:
    """An UPDATE, which locks the row if it passed; where there is no row yet, an INSERT, of which one wins."""
    from sqlalchemy.exc import IntegrityError

    if _raise(connection, fences, key, token):
        return True
    _refuse_autocommit(connection, key)
    try:
        with connection.begin_nested():
            connection.execute(fences.insert().values(fence=key, token=token))
    except IntegrityError:  # a higher token stands there, or another run was faster
        return _raise(connection, fences, key, token)
    return True


def _raise(connection: Connection, fences: Table, key: str, token: int) -> bool:
    from sqlalchemy import func

    # Rows that match are counted, also where nothing changes: SQLAlchemy asks MySQL's drivers for that.
    statement: Update = (
        fences.update()
        .where(fences.c.fence == key, fences.c.token <= token)
        .values(token=token, raised_at=func.current_timestamp())
    )
    return connection.execute(statement).rowcount == 1


def _highest(connection: Connection, fences: Table, key: str, token: int) -> int | None:
    """For the message: the token that stands there, None if this transaction cannot see it."""
    from sqlalchemy import select

    seen = connection.execute(select(fences.c.token).where(fences.c.fence == key)).scalar()
    return seen if seen is not None and seen > token else None


def _refuse_autocommit(connection: Connection, key: str) -> None:
    if _commits_at_once(connection):
        raise Refused(
            f"the connection that is to pass the fence {key!r} commits each statement, so nothing holds the fence",
            hint="use a connection with transactions, without isolation_level AUTOCOMMIT",
        )


def _commits_at_once(connection: Connection) -> bool:
    """Whether there is no transaction after a statement that began one."""
    driver = connection.connection.dbapi_connection
    if connection.dialect.name == "sqlite":
        return not getattr(driver, "in_transaction", True)
    detect = getattr(connection.dialect, "detect_autocommit_setting", None)  # of SQLAlchemy 2.0.43 and later
    if detect is not None:
        with contextlib.suppress(Exception):  # a dialect may have it and not know
            return bool(detect(driver))
    return getattr(driver, "autocommit", False) is True


def _valid_key(key: str | None) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or "\0" in key:
        raise InvalidInput(f"{key!r} is no key of a fence", hint=f"use a text of 1 to {LONGEST_KEY} characters")
    return key


def _valid_token(token: int | None) -> int:
    if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token <= HIGHEST_TOKEN:
        raise InvalidInput(f"{token!r} is no token", hint="use the number that the run was given")
    return token
