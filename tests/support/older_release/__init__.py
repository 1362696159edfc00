"""A worker of the release before this one, as far as PostgreSQL sees it: its statements, frozen, on the schema of now.

The texts are those of commit b8d014a (schema 0002), not to be changed: when a release is made, they are replaced by
that release's own. Processes of two neighbouring releases work side by side while a pool is upgraded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg import RawCursor

from sexton.claims import State

_FOLDER = Path(__file__).parent
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_NO_CODE = -(2**31)


@dataclass(frozen=True, slots=True)
class OlderGrant:
    job_id: int
    scheduled_at: datetime
    token: int
    attempt: int


@cache
def statement(name: str) -> bytes:
    """The older release's SQL of this name."""
    return (_FOLDER / f"{name}.sql").read_bytes()


class OlderWorker:
    """One worker's connection; for one thread."""

    def __init__(self, url: str, name: str = "older") -> None:
        self.connection: psycopg.Connection[Any] = psycopg.connect(
            url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True
        )
        values = (name, "vm", "0.1.0", 1, json.dumps(["default"]), 4)
        try:
            (self.worker_id,) = self._one(self.connection.execute(statement("register"), values))
        except psycopg.Error:
            self.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def step(self, results: Sequence[tuple[OlderGrant, State]], room: int, lease: timedelta) -> list[OlderGrant]:
        """Complete, promote and pull, in one transaction."""
        with self.connection.transaction():
            if results:
                self._complete(results)
            return self._pull(room, lease)

    def renew(self, tokens: Sequence[int], lease: timedelta) -> tuple[list[int], list[int]]:
        """The tokens still held, and those asked to stop."""
        values = {"worker": self.worker_id, "tokens": list(tokens), "lease": lease}
        _, held, cancel = self._one(self.connection.execute(statement("renew"), values))
        return held or [], cancel or []

    def requeue(self) -> int:
        """Take claims from workers whose lease has run out; how many."""
        return len(self.connection.execute(statement("requeue"), {"limit": 500, "poison": 3}).fetchall())

    def sweep(self) -> None:
        self.connection.execute(statement("sweep"))

    def _complete(self, results: Sequence[tuple[OlderGrant, State]]) -> None:
        ordered = sorted(results, key=lambda one: (one[0].job_id, one[0].scheduled_at))
        count, now = len(ordered), datetime.now(UTC)
        jobs, ticks = [grant.job_id for grant, _ in ordered], [grant.scheduled_at for grant, _ in ordered]
        arguments = {
            "jobs": jobs,
            "ticks": ticks,
            "tokens": [grant.token for grant, _ in ordered],
            "outcomes": [int(state) for _, state in ordered],
            "started": [now] * count,
            "finished": [now] * count,
            "codes": [_NO_CODE] * count,
            "errors": [""] * count,
            "retries": [_NEVER] * count,
            "uses": [False] * count,
            "stdout": [0] * count,
            "stderr": [0] * count,
            "never": _NEVER,
            "worker": self.worker_id,
        }
        self.connection.execute(statement("complete"), arguments)
        self.connection.execute(statement("promote_after"), {"jobs": jobs, "ticks": ticks})

    def _pull(self, room: int, lease: timedelta) -> list[OlderGrant]:
        cursor: RawCursor[Any] = RawCursor(self.connection)
        rows = cursor.execute(statement("pull"), (self.worker_id, lease, room, "default")).fetchall()
        # job_id, scheduled_at, revision, origin, token, attempt, ...
        return [OlderGrant(row[0], row[1], row[4], row[5]) for row in rows if row[0] is not None]

    def _one(self, cursor: psycopg.Cursor[Any]) -> tuple[Any, ...]:
        row = cursor.fetchone()
        assert row is not None
        return tuple(row)
