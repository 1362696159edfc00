"""All nodes of a cluster stand still, the lead is lost three times in a row, an edit and a pause land in a takeover.

Invariants 2, 3, 5 and 7, on jobs due every second, one for each policy; every decision that a pass lists is the one
that the policy asks for. `make soak` has the nodes stand still for two minutes, with claims written ahead and without.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Table, select

from sexton.claims import Origin, State
from sexton.store.tables import claims, cursors, jobs, pauses, revisions, skips
from sexton.terms import EndedBy
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.judge import Judge
from tests.support.moments import successor_waits
from tests.support.outage_trial import POLICIES, SECOND, check_decisions, decided, figures, jobs_text, missed_by
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.processes import ProcessGroup
from tests.support.trial import LONG, Trial, wait_until
from tests.support.waiting import eventually

NODES = 4
SESSION = timedelta(seconds=2)
TWO_MINUTES = timedelta(minutes=2)
Told = Callable[[str, object], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    horizons = ["0s", "60s"] if metafunc.config.getoption("soak") else ["0s"]
    metafunc.parametrize("horizon", horizons, scope="module", ids=[f"horizon {one}" for one in horizons])


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    zookeeper_ensemble: ZooKeeperEnsemble,
    horizon: str,
) -> Iterator[Trial]:
    """Four nodes and a worker, for all trials of this file."""
    folder = tmp_path_factory.mktemp("takeovers")
    with fresh_database(postgres_server) as url, ProcessGroup(folder) as processes:
        coordinator = f"zookeeper://{zookeeper_ensemble.hosts}/{url.rpartition('/')[2]}"
        with contextlib.closing(Trial(processes, url, coordinator)) as made:
            made.apply(jobs_text(edited="skip", paused="all"), {"horizon": horizon})
            made.start(nodes=NODES, workers=1)
            yield made
            processes.end()


@pytest.fixture
def trial(scene: Trial) -> Trial:
    """All nodes live and one of them leads; ticks fall due and run."""
    for name, process in scene.nodes.items():
        if not process.is_running():
            scene.start_node(name)
    scene.wait_for_leader()
    for name in scene.nodes:
        scene.wait_for_node(name)
    scene.wait_for_runs(10)
    return scene


def test_all_nodes_frozen_for_longer_than_session_grace_and_horizon(
    trial: Trial, horizon: str, soak: float, record_property: Told
) -> None:
    judge, ahead = Judge(trial), timedelta(seconds=int(horizon.removesuffix("s")))
    while_frozen = TWO_MINUTES if soak else 2 * SESSION + 2 * SECOND
    for process in trial.nodes.values():
        process.freeze()
    frozen_at, term = trial.store.now(), trial.term()
    thaw_at = frozen_at + while_frozen
    eventually(lambda: trial.store.now() >= thaw_at, within=600, what=f"it is {thaw_at}", every=0.1)
    standing, thawed_at = cursors_of(trial), trial.store.now().replace(microsecond=0)
    assert trial.term() == term
    assert max(standing.values()) <= frozen_at + ahead + 2 * SECOND  # nobody decided anything meanwhile
    for process in trial.nodes.values():
        process.thaw()
    for name in trial.nodes:
        trial.wait_for_node(name)
    wait_until(lambda: min(cursors_of(trial).values()) >= thawed_at, "what was missed is decided")
    trial.wait_for_runs(10)
    judge.check()
    check_decisions(trial)
    # All that fell due meanwhile and was not written ahead is in the decisions that are listed.
    listed = missed_by(trial, min(standing.values()), thawed_at)
    assert listed == {name: (thawed_at - standing[name]) // SECOND for name in POLICIES}
    if ahead:
        check_run_while_frozen(trial, frozen_at, min(thawed_at, frozen_at + timedelta(seconds=50)))
    record_property("told", f"frozen for {while_frozen.total_seconds():g} s; {figures(trial, frozen_at)}")


def check_run_while_frozen(trial: Trial, since: datetime, upto: datetime) -> None:
    """Invariant 5: what was written ahead ran, though no node did."""
    query = select(claims).where(claims.c.scheduled_at > since, claims.c.scheduled_at <= upto)
    with trial.store.reads.snapshot() as connection:
        found = connection.execute(query).all()
    assert len(found) >= len(POLICIES) * ((upto - since) // SECOND)
    assert all(one.written_at <= since + SECOND and one.origin == Origin.SCHEDULE for one in found)
    assert {State(one.state) for one in found} == {State.SUCCEEDED}
    assert max(one.finished_at for one in found) < since + TWO_MINUTES


def test_three_leaders_killed_one_after_the_other_each_as_soon_as_it_leads(
    trial: Trial, horizon: str, record_property: Told
) -> None:
    judge, began, term = Judge(trial), trial.store.now(), trial.term()
    chain = [trial.wait_for_leader()]
    trial.nodes[chain[0]].kill()
    while len(chain) < NODES:
        before = term + len(chain) - 1
        eventually(lambda: trial.term() > before, within=LONG, what="a successor leads")  # noqa: B023  asked within this turn of the loop
        chain.append(str(trial.leader()))
        if len(chain) < NODES:
            trial.nodes[chain[-1]].kill()
        judge.keep(judge.note(term + len(chain) - 1))
    taken = [one for one in trial.takeovers() if one.term > term]
    assert [(one.predecessor, one.node) for one in taken] == list(pairwise(chain))
    assert {one.predecessor_ended for one in taken} == {EndedBy.VANISHED}
    judge.check_listing(trial.finished(taken[-1].term))
    trial.wait_for_runs(10)
    judge.check()
    check_decisions(trial)
    if horizon == "0s":
        assert missed_by(trial, began, taken[-1].taken_at).keys() == set(POLICIES)
    took = (taken[-1].taken_at - began).total_seconds()
    record_property("told", f"three takeovers in {took:.1f} s; {figures(trial, began)}")


def test_an_edit_and_a_pause_between_a_leaders_death_and_its_successors_first_decision(
    trial: Trial, record_property: Told
) -> None:
    """The pause comes right after the death, the edit when the successor has the term and its statement waits.

    That statement has ticks beyond the edit, by what was in force before, and the edit moves no cursor.
    """
    judge, began, leader = Judge(trial), trial.store.now(), trial.wait_for_leader()
    path = trial.folder / "edited.yaml"
    path.write_text(jobs_text(edited="latest", paused="all"))
    with successor_waits(trial) as taken_over:
        trial.store.edits.set_setting("horizon", "60s", "trial")
        trial.nodes[leader].kill()
        trial.sexton("pause", "paused", "--reason", "storage moves")
        taken = taken_over()
        judge.keep(judge.note(taken.term))
        trial.sexton("apply", str(path), "--yes")
        edited_at = of_job(trial, revisions, "edited")[-1].in_force_since
        (paused_at,) = [row.since for row in of_job(trial, pauses, "paused")]
        assert decided(trial, taken.term) == []
    trial.finished(taken.term)
    wait_until(lambda: cursors_of(trial)["edited"] > edited_at, "ticks after the edit are decided")
    wait_until(lambda: cursors_of(trial)["paused"] > paused_at + SECOND, "ticks of the pause are decided")
    check_edited(trial, edited_at)
    check_paused(trial, paused_at)
    trial.sexton("resume", "paused")
    wait_until(lambda: not waiting(trial, paused_at), "what fell due before the pause runs")
    trial.wait_for_runs(10)
    judge.check()
    check_decisions(trial)
    record_property("told", figures(trial, began))


def check_edited(trial: Trial, cut: datetime) -> None:
    """Up to the edit each tick is decided by the old revision, after it by the new one."""
    under = [(row.scheduled_at, row.revision) for row in of_job(trial, claims, "edited")]
    under += [(row.upto, row.revision) for row in of_job(trial, skips, "edited")]
    assert {revision for _, revision in under} == {1, 2}
    assert all((revision == 2) == (at > cut) for at, revision in under), (cut, under)


def check_paused(trial: Trial, paused_at: datetime) -> None:
    """What fell due before the pause is decided by the policy, which runs it all; what fell due in it is one record."""
    (record,) = of_job(trial, skips, "paused")
    assert (record.reason, record.after <= paused_at < record.upto) == ("paused", True)
    last = record.after.replace(microsecond=0)
    assert record.count == (record.upto - last) // SECOND
    found = of_job(trial, claims, "paused")
    assert max(row.scheduled_at for row in found) == last
    assert all(row.blocked for row in found if row.state == State.READY)


def waiting(trial: Trial, upto: datetime) -> list[datetime]:
    found = [row for row in of_job(trial, claims, "paused") if row.scheduled_at <= upto]
    return [row.scheduled_at for row in found if row.state in (State.READY, State.RUNNING)]


def of_job(trial: Trial, table: Table, name: str) -> list[Any]:
    """The job's rows of this table, in the order of their keys."""
    query = select(table).join(jobs, jobs.c.job_id == table.c.job_id).where(jobs.c.name == name)
    with trial.store.reads.snapshot() as connection:
        return list(connection.execute(query.order_by(*table.primary_key.columns)).all())


def cursors_of(trial: Trial) -> dict[str, datetime]:
    query = select(jobs.c.name, cursors.c.at).join(cursors, cursors.c.job_id == jobs.c.job_id)
    with trial.store.reads.snapshot() as connection:
        return {row.name: row.at for row in connection.execute(query)}
