"""Fences on users' databases: whatever waits, fails or races, an older token's commit never follows a newer one's.

Invariant 4. Each test runs on SQLite and PostgreSQL, with the upsert that is used there and with the statements of
standard SQL that all other databases get.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import Column, Connection, Engine, Integer, MetaData, Table, create_engine, insert, select, text
from sqlalchemy.exc import OperationalError

from sexton import fencing
from sexton.errors import InvalidInput, OutsideRun, Refused, StaleToken
from tests.support.at_once import all_at_once
from tests.support.waiting import eventually

KEY = "nightly@2026-03-29T01:00:00Z"
WITHIN = 60.0
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")

writes = Table(
    "writes", MetaData(), Column("number", Integer, primary_key=True, autoincrement=True), Column("token", Integer)
)


@pytest.fixture(params=["upsert", "standard SQL"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "standard SQL":
        monkeypatch.setattr(fencing, "_WITH_UPSERT", ())
    return str(request.param)


@pytest.fixture
def engine(empty_url: str, form: str) -> Iterator[Engine]:
    """A user's database with a fence table and one of his own."""
    yield from made_engine(empty_url)


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Engine]:
    yield from made_engine(postgres_url)


def made_engine(url: str) -> Iterator[Engine]:
    arguments = {"timeout": WITHIN} if url.startswith("sqlite") else {}
    engine = create_engine(url, connect_args=arguments)
    with engine.begin() as connection:
        fencing.create_table(connection)
        fencing.create_table(connection)  # it may be there
        writes.create(connection)
    yield engine
    engine.dispose()


def write(engine: Engine, token: int, key: str = KEY) -> None:
    with engine.begin() as connection, fencing.guard(connection, key, token=token):
        connection.execute(insert(writes).values(token=token))


def written(engine: Engine) -> list[int]:
    """The tokens of what was committed, in the order in which it was written."""
    with engine.begin() as connection:
        return list(connection.execute(select(writes.c.token).order_by(writes.c.number)).scalars())


def test_the_same_and_a_newer_token_pass_and_an_older_one_writes_nothing(engine: Engine) -> None:
    for token in (5, 5, 9):
        write(engine, token)
    with pytest.raises(
        StaleToken, match=f"stale token 5: a newer run, token 9, has passed the fence '{KEY}'"
    ) as refused:
        write(engine, 5)
    assert (refused.value.key, refused.value.token, refused.value.seen) == (KEY, 5, 9)
    write(engine, 2, key="another")
    write(engine, 9)
    assert written(engine) == [5, 5, 9, 2, 9]


def test_what_was_rolled_back_has_not_passed(engine: Engine) -> None:
    with pytest.raises(RuntimeError), engine.begin() as connection, fencing.guard(connection, KEY, token=9):
        raise RuntimeError
    write(engine, 5)
    assert written(engine) == [5]


def test_runs_that_race_commit_in_the_order_of_their_tokens(engine: Engine) -> None:
    start = threading.Barrier(6)

    def race(token: int) -> None:
        start.wait(WITHIN)
        for _ in range(5):
            try:
                write(engine, token)
            except StaleToken:
                return

    all_at_once(*(partial(race, token) for token in range(1, 7)))
    tokens = written(engine)
    assert tokens == sorted(tokens)
    assert tokens[-5:] == [6] * 5


@pytest.mark.parametrize("level", LEVELS)
def test_a_newer_run_waits_for_the_commit_of_a_paused_older_one(postgres: Engine, level: str) -> None:
    """So its commit cannot come later. Above READ COMMITTED the newer one may have to try again."""
    postgres = postgres.execution_options(isolation_level=level)
    with ThreadPoolExecutor(1) as pool, postgres.begin() as paused:
        fencing.enter(paused, KEY, token=5)
        newer = pool.submit(write, postgres, 9)
        await_waiter(postgres)
        paused.execute(insert(writes).values(token=5))
        paused.commit()
        if isinstance(newer.exception(WITHIN), OperationalError):
            write(postgres, 9)
    assert written(postgres) == [5, 9]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_known", [False, True])
def test_an_older_run_that_waited_for_a_newer_one_is_refused(postgres: Engine, level: str, is_known: bool) -> None:
    """Whether the fence stood there before or not."""
    postgres = postgres.execution_options(isolation_level=level)
    if is_known:
        write(postgres, 4)
    with ThreadPoolExecutor(1) as pool, postgres.begin() as newer:
        fencing.enter(newer, KEY, token=9)
        older: Future[None] = pool.submit(write, postgres, 5)
        await_waiter(postgres)
        newer.commit()
        kind = StaleToken if level == LEVELS[0] else OperationalError  # serialization failure
        assert isinstance(older.exception(WITHIN), kind)
    with pytest.raises(StaleToken):
        write(postgres, 5)
    assert 5 not in written(postgres)


@pytest.mark.parametrize("level", LEVELS[1:])
def test_an_older_run_with_an_old_snapshot_is_refused_by_the_database(postgres: Engine, level: str) -> None:
    postgres = postgres.execution_options(isolation_level=level)
    with postgres.connect() as older:
        assert older.execute(select(writes.c.token)).all() == []
        write(postgres, 9)
        with pytest.raises(OperationalError, match="could not serialize"):
            fencing.enter(older, KEY, token=5)


def await_waiter(engine: Engine) -> None:
    """Return once a connection waits for a lock."""
    asked = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )

    def is_there() -> bool:
        with engine.connect() as connection:
            return bool(connection.execute(asked).scalar())

    eventually(is_there, WITHIN, "a connection waits for the fence")


def test_a_connection_that_commits_each_statement_is_refused(engine: Engine) -> None:
    at_once = engine.execution_options(isolation_level="AUTOCOMMIT")
    with at_once.connect() as connection, pytest.raises(Refused, match="commits each statement"):
        fencing.enter(connection, KEY, token=1)


def test_a_block_that_goes_on_in_another_transaction_is_refused(engine: Engine) -> None:
    with engine.connect() as connection:
        with fencing.guard(connection, KEY, token=1):
            connection.execute(insert(writes).values(token=1))
            connection.commit()
        with pytest.raises(Refused, match="ended inside the guarded block"):
            unguarded(connection)


def unguarded(connection: Connection) -> None:
    with fencing.guard(connection, KEY, token=1):
        connection.commit()
        connection.execute(insert(writes).values(token=1))


def test_the_table_may_have_another_name(engine: Engine) -> None:
    with engine.begin() as connection:
        fencing.create_table(connection, "warehouse_fences")
    with engine.begin() as connection:
        fence = fencing.enter(connection, KEY, token=3, table=fencing.fences_table("warehouse_fences"))
        assert fence == fencing.Fence(KEY, 3)
        assert connection.execute(text("SELECT fence, token FROM warehouse_fences")).all() == [(KEY, 3)]
        assert connection.execute(text("SELECT count(*) FROM sexton_fences")).scalar() == 0


def test_a_command_is_guarded_by_its_environment(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine.begin() as connection:
        with pytest.raises(OutsideRun, match="set SEXTON_JOB, SEXTON_TICK, SEXTON_TOKEN"):
            fencing.enter(connection)
        for name, value in {"JOB": "nightly", "TICK": "2026-03-29T01:00:00Z", "TOKEN": "7"}.items():
            monkeypatch.setenv(f"SEXTON_{name}", value)
        assert fencing.enter(connection) == fencing.Fence(KEY, 7)
        assert fencing.enter(connection, "nightly") == fencing.Fence("nightly", 7)
        monkeypatch.setenv("SEXTON_TOKEN", "seven")
        with pytest.raises(InvalidInput, match="SEXTON_TOKEN is 'seven'"):
            fencing.enter(connection)


@pytest.mark.parametrize(
    ("key", "token", "says"),
    [("", 1, "no key"), ("x" * 301, 1, "no key"), ("a\0", 1, "no key"), ("a", -1, "no token"), ("a", True, "no token")],
)
def test_what_is_no_key_or_token_is_refused(engine: Engine, key: str, token: int, says: str) -> None:
    with engine.begin() as connection, pytest.raises(InvalidInput, match=says):
        fencing.enter(connection, key, token=token)


def test_a_refusal_crosses_the_border_of_a_process() -> None:
    error = pickle.loads(pickle.dumps(StaleToken(KEY, 5, 9)))  # noqa: S301 - its own
    assert (str(error), error.seen) == (str(StaleToken(KEY, 5, 9)), 9)


@pytest.mark.parametrize(("token", "seen", "counts"), [(5, None, True), (5, 4, True), (5, 5, True), (5, 6, False)])
def test_tokens_that_a_user_keeps_himself_can_be_compared(token: int, seen: int | None, counts: bool) -> None:
    assert fencing.is_current(token, seen) is counts
    if counts:
        fencing.check(token, seen)
    else:
        with pytest.raises(StaleToken, match="stale token 5"):
            fencing.check(token, seen, "ledger.csv")
