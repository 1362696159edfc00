"""Jobs by the hundred thousand, written as `sexton apply` writes them but in a few statements.

An apply of a million jobs is not what is measured; the rows it leaves are what a leader reads.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import psycopg

from bench.planning import schedule_texts
from sexton.claims import Overlap
from sexton.inputs import own_inputs
from sexton.jobs import JobDefinition
from sexton.targets import CommandTarget, PythonTarget

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE_OF_NAME = "job-@"

_FILL = (
    "CREATE TEMP TABLE kinds (number bigint, definition text, schedule text, firing text)",
    """INSERT INTO kinds SELECT * FROM unnest(%(numbers)s::bigint[], %(definitions)s::text[], %(schedules)s::text[],
        %(firings)s::text[])""",
    "SELECT setval('changes', (SELECT greatest(max(changed), 0) + 1 FROM jobs))",
    """INSERT INTO jobs (job_id, name, name_key, hash_seed, revision, created_at, changed)
       SELECT g, 'job-' || g, 'job-' || g, 'job-' || g, 1, statement_timestamp(), currval('changes')
       FROM generate_series(%(first)s::bigint, %(last)s::bigint) g""",
    """INSERT INTO revisions (job_id, revision, definition, schedule, firing, inputs_id, in_force_since, applied_at,
        applied_by)
       SELECT g, 1, replace(k.definition, %(place)s, 'job-' || g), k.schedule, k.firing, %(inputs)s,
         transaction_timestamp() - %(missed)s::interval, clock_timestamp(), 'bench'
       FROM generate_series(%(first)s::bigint, %(last)s::bigint) g
       JOIN kinds k ON k.number = g %% %(kinds)s""",
    """INSERT INTO cursors (job_id, at)
       SELECT g, transaction_timestamp() - %(missed)s::interval
       FROM generate_series(%(first)s::bigint, %(last)s::bigint) g""",
    """INSERT INTO slots (slot, number)
       SELECT g, 1 FROM generate_series(%(first)s::bigint, %(last)s::bigint) g""",
    "DROP TABLE kinds",
)
_AFTERWARDS = ("VACUUM ANALYZE jobs, revisions, cursors, slots", "CHECKPOINT")


def fill(url: str, kinds: Sequence[JobDefinition], count: int, missed: timedelta = timedelta(0)) -> None:
    """``count`` more jobs of these kinds in turn, decided up to ``missed`` ago. The kinds' names are ``named()``."""
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True) as connection:
        (last,) = connection.execute("SELECT coalesce(max(job_id), 0) FROM jobs").fetchone() or (0,)
        values = {
            "numbers": list(range(len(kinds))),
            "definitions": [kind.to_text() for kind in kinds],
            "schedules": [kind.schedule_text(kind.name) for kind in kinds],
            "firings": [kind.firing_text(kind.name) for kind in kinds],
            "first": last + 1,
            "last": last + count,
            "kinds": len(kinds),
            "missed": missed,
            "place": _PLACE_OF_NAME,
            "inputs": own_inputs().inputs_id,
        }
        with connection.transaction():
            for statement in _FILL:
                connection.execute(statement.encode(), values if "%(" in statement else None)
        for statement in _AFTERWARDS:
            connection.execute(statement.encode())


def every(
    period: timedelta,
    anchor: timedelta,
    overlap: Overlap = Overlap.ALLOW,
    python: str | None = None,
    env: dict[str, str] | None = None,
) -> JobDefinition:
    """Jobs that tick at ``anchor`` past each whole ``period`` and call ``python``, a MODULE:FUNCTION."""
    part = {
        "every_ms": period // timedelta(milliseconds=1),
        "anchor": (EPOCH + anchor).isoformat().replace("+00:00", "Z"),
    }
    target = CommandTarget(("true",)) if python is None else PythonTarget(python)
    return JobDefinition(_PLACE_OF_NAME, (part,), target, overlap=overlap, env=env or {})


def fleet(schedules: int = 500, seed: int = 1) -> list[JobDefinition]:
    """So many schedules as fleets have them: half of them crons in five zones, the others every ten minutes."""
    draw = random.Random(seed)
    crons = [
        JobDefinition(_PLACE_OF_NAME, ({"cron": cron},), CommandTarget(("true",)), timezone=zone)
        for cron, zone in schedule_texts_and_zones(schedules // 2, seed)
    ]
    rest = schedules - len(crons)
    spread = [every(timedelta(seconds=600), timedelta(milliseconds=draw.randrange(600_000))) for _ in range(rest)]
    kinds = crons + spread
    draw.shuffle(kinds)
    return kinds


def bells() -> list[JobDefinition]:
    """Twenty jobs that tick every second, 50 ms apart: the next claim is never far, whenever one looks."""
    return [every(timedelta(seconds=1), timedelta(milliseconds=50 * number)) for number in range(20)]


def schedule_texts_and_zones(count: int, seed: int) -> list[tuple[str, str]]:
    """Different cron expressions, each with its zone."""
    specs = (json.loads(text) for text in schedule_texts(count, seed))
    return [(spec["parts"][0]["cron"], spec["timezone"]) for spec in specs]
