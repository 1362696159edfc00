"""Claims written straight into a ledger, and two guards that hold at every moment of a test of grants.

The guards are of the test, not of the product: a trigger that refuses every change of state which is not an arrow of
`sexton.claims.ARROWS`, and `assert_slots_are_held_rightly`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Engine, create_engine, event, func, insert, select, update
from sqlalchemy.pool import NullPool

from sexton.claims import ARROWS, RERUN_ARROWS, Origin, Overlap, State
from sexton.store.tables import claims, cluster, counters, outputs, runs, slot_groups, slots

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class ClaimRows:
    """Reads and writes claims of one ledger, beside the store under test."""

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._minutes = itertools.count()

    def close(self) -> None:
        self.engine.dispose()

    # --------------------------------------------------------------------------------------- writing

    def add(self, job_id: int = 1, scheduled_at: datetime | None = None, **columns: Any) -> datetime:
        """Write one ready, due claim (and its slot row) and return its instant, each later than the one before."""
        at = START + next(self._minutes) * MINUTE if scheduled_at is None else scheduled_at
        self.add_many([claim_values(job_id, at, **columns)])
        return at

    def add_many(self, values: Iterable[Mapping[str, Any]]) -> None:
        """Write claims made by `claim_values`, and one slot row for each of their groups that has none."""
        rows = [dict(one) for one in values]
        with self.engine.begin() as connection:
            have = set(connection.execute(select(slots.c.slot)).scalars())
            missing = sorted({row["slot"] for row in rows} - have)
            if missing:
                connection.execute(insert(slots), [{"slot": slot, "number": 1} for slot in missing])
            connection.execute(insert(claims), rows)

    def add_slot_rows(self, slot: int, limit: int) -> None:
        """Make a slot group of so many rows."""
        with self.engine.begin() as connection:
            connection.execute(insert(slots), [{"slot": slot, "number": number + 1} for number in range(limit)])

    def add_group(self, group_id: int, key: str, size: int) -> None:
        """Make the slot group of a concurrency key, with its rows."""
        with self.engine.begin() as connection:
            connection.execute(insert(slot_groups), [{"group_id": group_id, "key": key, "size": size}])
        self.add_slot_rows(-group_id, size)

    def change(self, job_id: int, scheduled_at: datetime, **columns: Any) -> None:
        """Set columns of one claim."""
        where = (claims.c.job_id == job_id) & (claims.c.scheduled_at == scheduled_at)
        with self.engine.begin() as connection:
            assert connection.execute(update(claims).where(where).values(**columns)).rowcount == 1

    def expire_leases(self, tokens: Iterable[int]) -> None:
        """Let the leases of these grants have run out an hour ago."""
        with self.engine.begin() as connection:
            connection.execute(
                update(claims).where(claims.c.token.in_(list(tokens))).values(lease_expires_at=now() - 60 * MINUTE)
            )

    def halt(self, halted: bool) -> None:
        """Set or lift the halt of the cluster."""
        with self.engine.begin() as connection:
            connection.execute(update(cluster).values(halted=halted))

    # --------------------------------------------------------------------------------------- reading

    def row(self, job_id: int, scheduled_at: datetime) -> Any:
        """The claim as it stands."""
        where = (claims.c.job_id == job_id) & (claims.c.scheduled_at == scheduled_at)
        with self.engine.begin() as connection:
            return connection.execute(select(claims).where(where)).one()

    def state(self, job_id: int, scheduled_at: datetime) -> State:
        """The state of one claim."""
        return State(self.row(job_id, scheduled_at).state)

    def states(self) -> dict[State, int]:
        """How many claims are in each state."""
        with self.engine.begin() as connection:
            rows = connection.execute(select(claims.c.state, func.count()).group_by(claims.c.state))
            return {State(state): count for state, count in rows}

    def runs(self, job_id: int, scheduled_at: datetime) -> list[Any]:
        """The runs of a claim, oldest first."""
        where = (runs.c.job_id == job_id) & (runs.c.scheduled_at == scheduled_at)
        with self.engine.begin() as connection:
            return list(connection.execute(select(runs).where(where).order_by(runs.c.token)))

    def output(self, token: int) -> tuple[bytes, bytes] | None:
        """The kept output of a run."""
        with self.engine.begin() as connection:
            row = connection.execute(select(outputs).where(outputs.c.token == token)).one_or_none()
        return None if row is None else (bytes(row.stdout), bytes(row.stderr))

    def counter(self, name: str) -> int:
        """The value of a counter; 0 where it was never counted."""
        with self.engine.begin() as connection:
            return connection.execute(select(counters.c.value).where(counters.c.name == name)).scalar() or 0

    def slot_tokens(self, slot: int) -> list[int | None]:
        """Who holds the rows of a slot group."""
        with self.engine.begin() as connection:
            where = slots.c.slot == slot
            return list(connection.execute(select(slots.c.token).where(where).order_by(slots.c.number)).scalars())

    # ---------------------------------------------------------------------------------------- guards

    def guard_arrows(self, *, on_request: bool = False) -> None:
        """From now on refuse every change of state that is not an arrow (``on_request``: or a rerun), and a ready or
        parked claim with a token."""
        with self.engine.begin() as connection:
            for statement in _guard(connection.dialect.name, ARROWS | RERUN_ARROWS if on_request else ARROWS):
                connection.exec_driver_sql(statement)

    def assert_slots_are_held_rightly(self) -> None:
        """A slot row's token is null, or that of a running claim; every running claim but `allow` holds one row."""
        with self.engine.begin() as connection:
            running = connection.execute(
                select(claims.c.token, claims.c.slot, claims.c.overlap).where(claims.c.state == int(State.RUNNING))
            ).all()
            held = connection.execute(select(slots.c.token, slots.c.slot).where(slots.c.token.is_not(None))).all()
        expected = sorted((token, slot) for token, slot, overlap in running if overlap != Overlap.ALLOW)
        assert sorted((token, slot) for token, slot in held) == expected


def claim_values(job_id: int, scheduled_at: datetime, **columns: Any) -> dict[str, Any]:
    """The values of a ready claim that fell due at its instant; keywords replace columns."""
    values: dict[str, Any] = {
        "job_id": job_id,
        "scheduled_at": scheduled_at,
        "revision": 1,
        "origin": int(Origin.SCHEDULE),
        "queue": "default",
        "priority": 0,
        "overlap": int(Overlap.QUEUE),
        "slot": job_id,
        "available_at": scheduled_at,
        "at_most_once": False,
        "term": 1,
        "written_at": scheduled_at,
    }
    return values | columns


def now() -> datetime:
    """This machine's time, which is the databases' here."""
    return datetime.now(UTC)


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
        return _postgres_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    engine = create_engine(url, poolclass=NullPool)
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout = 20000"))
    return engine


@lru_cache(maxsize=4)
def _postgres_engine(url: str) -> Engine:
    """Disposed of by each who used it, and so without connections; what it has learnt of the server is asked once."""
    return create_engine(url)


def _guard(dialect: str, arrows: frozenset[tuple[State, State]]) -> Iterator[str]:
    allowed = ", ".join(str(old * 100 + new) for old, new in sorted(arrows))
    wrong = f"""(OLD.state <> NEW.state AND OLD.state * 100 + NEW.state NOT IN ({allowed}))
        OR (NEW.state IN (0, 2) AND NEW.token IS NOT NULL) OR (NEW.state = 1 AND NEW.token IS NULL)"""
    if dialect == "sqlite":
        yield f"""CREATE TRIGGER arrows BEFORE UPDATE ON claims WHEN {wrong}
            BEGIN SELECT RAISE(ABORT, 'this change of state is not an arrow'); END"""
        return
    yield """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING MESSAGE =
            concat('state ', OLD.state, ' to ', NEW.state, ', token ', NEW.token, ' is not an arrow'); END $$"""
    yield f"""CREATE TRIGGER arrows BEFORE UPDATE ON claims FOR EACH ROW WHEN ({wrong})
        EXECUTE FUNCTION refuse_change()"""
