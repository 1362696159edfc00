from __future__ import annotations

import pytest
from sqlalchemy import update

from sexton.claims import Origin
from sexton.errors import NotFound
from sexton.member_views import PriorityDepth
from sexton.store import tables
from tests.support.scene import NOW, SECOND
from tests.support.scene_ledger import Ledger

OLDEST = NOW.replace(minute=10, second=0, microsecond=0)


def test_a_queue_opens_into_its_depth_by_priority_and_what_waits_in_the_order_of_granting(ledger: Ledger) -> None:
    claims = tables.claims
    with ledger.write() as connection:
        middle = (claims.c.queue == "gpu") & (claims.c.scheduled_at == OLDEST.replace(minute=20))
        connection.execute(update(claims).where(middle).values(priority=5))
        last = (claims.c.queue == "gpu") & (claims.c.scheduled_at == OLDEST.replace(minute=30))
        connection.execute(update(claims).where(last).values(origin=int(Origin.CATCH_UP)))
    before = ledger.reader.statements
    found = ledger.reader.opened_queue("gpu")
    assert ledger.reader.statements - before == 4  # one, and one for each priority with something due
    assert (found.queue.name, found.queue.due, found.queue.catch_up, found.workers) == ("gpu", 2, 1, ())
    assert found.depths == (
        PriorityDepth(0, False, 1, 0, OLDEST),
        PriorityDepth(5, False, 1, 0, OLDEST.replace(minute=20)),
        PriorityDepth(0, True, 1, 0, OLDEST.replace(minute=30)),
    )
    assert [claim.scheduled_at.minute for claim in found.waiting] == [10, 20, 30]
    assert [worker.name for worker in ledger.reader.opened_queue("default").workers] == ["worker-1", "worker-2"]
    with pytest.raises(NotFound):
        ledger.reader.opened_queue("nowhere")


def test_a_worker_opens_into_what_it_runs_longest_first(ledger: Ledger) -> None:
    with ledger.write() as connection:
        running = tables.claims.c.token == 9001
        connection.execute(update(tables.claims).where(running).values(worker_id=1, granted_at=NOW - 5 * SECOND))
    found = ledger.reader.opened_worker("worker-1")
    assert [(worker.worker_id, worker.busy) for worker in found.workers] == [(1, 2)]
    assert [claim.job for claim in found.claims] == ["nightly-billing", "heartbeat-ping"]
    with pytest.raises(NotFound):
        ledger.reader.opened_worker("nobody")
