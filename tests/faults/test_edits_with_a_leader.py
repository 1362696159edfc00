"""Job files applied again and again to a cluster that runs: no tick is lost or doubled at the moment of an edit.

Invariant 2, with a leader that writes ahead and a worker that runs; on PostgreSQL and on SQLite. CI makes a few edits,
as fast as the leader follows or faster; with more tries (`make edits`) it is one a second for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_edits import LiveEdits
from tests.support.processes import ProcessGroup
from tests.support.trial import LONG, Trial, wait_until

EDITS_IN_CI = 18
EDITS_A_TRY = 12


@pytest.fixture(params=["postgresql", "sqlite"])
def cluster(request: pytest.FixtureRequest, processes: ProcessGroup, tmp_path: Path) -> Iterator[Trial]:
    """One node and one worker to be, as `sexton up` would start them, without a service beside the database."""
    on_file = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/ledger.db" if on_file else str(request.getfixturevalue("postgres_ledger"))
    made = Trial(processes, url)
    yield made
    made.close()


def test_an_edit_a_second_loses_and_doubles_no_tick(cluster: Trial, tries: int) -> None:
    for key, value in {"session": "2s", "horizon": "20s"}.items():
        cluster.store.edits.set_setting(key, value, "trial")
    edits = LiveEdits(cluster.store, seed=tries)
    edits.begin()
    cluster.start(nodes=1, workers=1)
    edits.wait_until_written_ahead(LONG)
    for number in range(EDITS_IN_CI if tries == 1 else EDITS_A_TRY * tries):
        if tries > 1:
            edits.wait_for_the_next_second(LONG)
        elif number % 3:
            edits.wait_until_written_ahead(LONG)
        edits.step()
    edits.wait_until_written_ahead(LONG)
    cluster.wait_for_runs(10)
    wait_until(lambda: edits.scheduled(cluster.store.now()) > 20, "ticks fell due")
    cluster.audit()
    assert edits.run_twice() == []
    assert cluster.counter("swallowed") == 0
    kinds = {kind for kind, number in edits.counts.items() if number}
    assert kinds >= {"create", "revise", "retire", "renamed", "withdrawn"}
    assert edits.counts["withdrawn"] > 20
