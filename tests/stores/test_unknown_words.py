"""Words of a newer release, which this one does not know: what reads for people tells them, and the rest."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from sexton.claims import Origin, State
from sexton.store import tables
from sexton.store.known_members import member_of
from sexton.terms import EndedBy
from tests.support.scene import NOW
from tests.support.scene_ledger import Ledger

WORD = "defected\x1b[2J" + "!" * 10_000


def test_rows_with_unknown_words_are_told_and_stop_no_other(ledger: Ledger) -> None:
    reads = ledger.reader
    takeovers, runs = len(reads.takeovers()), len(reads.runs_page().runs)
    with ledger.write() as connection:
        connection.execute(
            update(tables.takeovers)
            .where(tables.takeovers.c.term == 41)
            .values(predecessor_ended=WORD, elected_by=WORD)
        )
        connection.execute(update(tables.decisions).values(cause=WORD, policy=WORD))
        connection.execute(update(tables.skips).values(reason=WORD))
        connection.execute(update(tables.runs).values(outcome=99))
        connection.execute(update(tables.claims).where(tables.claims.c.state == State.RUNNING).values(origin=99))
        connection.execute(update(tables.cluster).values(elected_by=WORD))
        connection.execute(update(tables.proposals).values(state=WORD))
    found = reads.takeovers()
    assert len(found) == takeovers
    told = found[0].predecessor_ended.value
    assert told.startswith("unknown: defected?[2J!")
    assert len(told) < 60
    assert found[1].predecessor_ended is not EndedBy.NONE
    assert {run.outcome.word for run in reads.runs_page().runs} == {"unknown: 99"}
    assert len(reads.runs_page().runs) == runs
    assert {claim.origin.word for claim in reads.running()} == {"unknown: 99"}
    assert {one.cause.value[:9] for one in reads.takeover(41).decisions} == {"unknown: "}
    assert {one.policy[:9] for one in reads.takeover(41).decisions} == {"unknown: "}
    assert reads.hold(1).hold.state.value.startswith("unknown: ")
    assert reads.overview().elected_by is not None
    for job in ("minutely-sync", "sync-eu", "gl-export"):
        reads.ticks_page(job)
        reads.job(job)
        reads.tick_facts(job, NOW.replace(minute=5, second=0))
    reads.opened_job("sync-eu")
    reads.failing()


def test_an_unknown_member_is_like_no_other() -> None:
    unknown = member_of(State, 99)
    assert isinstance(unknown, State)
    assert (unknown.word, unknown.value, unknown in set(State)) == ("unknown: 99", 99, False)
    assert member_of(Origin, 4) is Origin.MANUAL
    with pytest.raises(ValueError, match="is not a valid"):
        State(99)  # what acts on the ledger goes on by no guess
