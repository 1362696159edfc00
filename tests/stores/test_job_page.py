from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import event, insert, select

from sexton.claims import State
from sexton.errors import NotFound
from sexton.store import tables
from sexton.store.read_job_page import RUNS_A_DAY
from tests.support.scene import MINUTE, NOW, SECOND, TAKEOVER_AT
from tests.support.scene_ledger import Ledger

DAY = timedelta(days=1)
STATEMENTS = 3


def test_a_job_opens_with_its_newest_runs_and_next_ticks(ledger: Ledger) -> None:
    found = ledger.reader.opened_job("Sync-EU", ticks=2, runs=4)
    assert (found.job.name, found.hash_seed, found.cursor) == ("sync-eu", "sync-eu", NOW + MINUTE)
    assert [run.scheduled_at.minute for run in found.runs] == [30, 25, 20, 15]
    assert found.job.strip == (State.FAILED,) * 4
    assert [tick.minute for tick in found.job.next_ticks] == [35, 40]
    assert [pause.why for pause in ledger.reader.opened_job("backup-db").pauses] == ["storage moves tonight"]
    with pytest.raises(NotFound, match="there is no job 'nothing'"):
        ledger.reader.opened_job("nothing")


def test_ticks_are_paged_from_what_lies_ahead_to_the_oldest(ledger: Ledger) -> None:
    first = ledger.reader.opened_ticks("minutely-sync", limit=10, ahead=2)
    assert [claim.scheduled_at.minute for claim in first.ahead] == [31]
    assert [tick.minute for tick in first.upcoming] == [32, 33]
    assert [claim.scheduled_at.minute for claim in first.claims] == list(range(30, 20, -1))
    assert first.older is not None
    second = ledger.reader.opened_ticks("minutely-sync", first.older, limit=20)
    assert (second.ahead, second.upcoming) == ((), ())
    assert second.claims[0].scheduled_at == first.claims[-1].scheduled_at - MINUTE
    assert [(skip.upto.minute, skip.count) for skip in second.skips] == [(12, 12)]
    assert second.older is None


def test_a_page_from_another_time_has_the_stretch_that_was_decided_on_with_it(ledger: Ledger) -> None:
    asked = TAKEOVER_AT.replace(minute=5, second=0, microsecond=1)
    found = ledger.reader.opened_ticks("minutely-sync", asked, limit=5, around=True)
    assert [(skip.upto.minute, skip.count) for skip in found.skips] == [(12, 12)]
    assert ledger.reader.opened_ticks("minutely-sync", asked, limit=5).skips == ()


def test_runs_are_paged_by_tick_and_what_runs_now_comes_first(ledger: Ledger) -> None:
    first = ledger.reader.opened_runs("heartbeat-ping", limit=5)
    assert [claim.token for claim in first.running] == [9001]
    ticks = [run.scheduled_at for run in first.runs]
    assert ticks == sorted(ticks, reverse=True)
    assert len(ticks) == 5
    second = ledger.reader.opened_runs("heartbeat-ping", first.older, limit=500)
    assert second.running == ()
    assert second.runs[0].scheduled_at == ticks[-1] - 10 * SECOND
    assert second.older is None


def test_runs_are_counted_by_day_and_a_crowded_day_says_so(ledger: Ledger) -> None:
    today = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
    with ledger.write() as connection:
        for number in range(RUNS_A_DAY + 5):
            run = {"token": 20_000 + number, "job_id": 5, "scheduled_at": today - DAY + number * MINUTE}
            ended = {"attempt": 1, "revision": 1, "worker_id": 1, "finished_at": NOW}
            connection.execute(insert(tables.runs).values(outcome=int(State.SUCCEEDED), **run, **ended))
    days = ledger.reader.days_of_runs("sync-eu", [today - 2 * DAY, today - DAY, today, today + DAY])
    assert [(day.runs, day.failed, day.is_whole) for day in days] == [
        (0, 0, True),
        (RUNS_A_DAY, 0, False),
        (7, 7, True),
    ]


def test_a_revision_opens_beside_the_one_before_it(ledger: Ledger) -> None:
    with ledger.write() as connection:
        row = connection.execute(select(tables.revisions).where(tables.revisions.c.job_id == 5)).one()
        keys = {**row._mapping, "revision": 2, "applied_by": "ben", "definition": row.definition.replace("5", "7")}
        connection.execute(insert(tables.revisions).values(**keys))
    found = ledger.reader.opened_revision("sync-eu", 2)
    assert found.entry.who == "ben"
    assert found.entry.before is not None
    assert found.entry.definition is not None
    assert found.entry.before.schedule_parts != found.entry.definition.schedule_parts
    assert ledger.reader.opened_revision("sync-eu", 1).entry.before is None
    with pytest.raises(NotFound, match="no revision 9"):
        ledger.reader.opened_revision("sync-eu", 9)


def test_each_part_costs_three_statements_at_most(ledger: Ledger) -> None:
    said: list[str] = []
    reader = ledger.reader
    with reader.snapshot() as connection:
        engine = connection.engine
    event.listen(engine, "before_cursor_execute", lambda *args: said.append(args[2]))
    for part in (reader.opened_job, reader.opened_ticks, reader.opened_runs):
        said.clear()
        part("sync-eu")
        statements = [one for one in said if "FROM" in one]
        assert len(statements) <= STATEMENTS, statements
