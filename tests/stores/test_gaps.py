"""A gap in which nobody took over is told beside the takeovers, with what was decided about it; on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from sexton.decisions import Cause, JobDecision
from sexton.errors import NotFound
from sexton.store.protocol import JobRow, Store
from sexton.terms import gap_told
from sexton.views import DecisionTotals, GapView
from tests.support.leader_scene import MINUTE, SECOND, batch, create, definition, lead, read, ticks_after


def decided(job: JobRow, cause: Cause, upto: datetime, **counts: int) -> JobDecision:
    made: dict[str, Any] = dict.fromkeys(("missed", "fired", "merged", "skipped", "expired", "held"), 0)
    made |= counts
    return JobDecision(job.job_id, 1, cause, job.at, upto, "latest", reason="told", **made)


def decide(store: Store, term: int, jobs: Sequence[JobRow], cause: Cause, **counts: int) -> None:
    """One commit that steps over the next tick of each job, with a decision of these counts about it."""
    now = [(read(store, job.job_id), ticks_after(read(store, job.job_id), 1)) for job in jobs]
    told = tuple(decided(job, cause, ticks[-1], **counts) for job, ticks in now)
    assert store.ticks.commit(batch(store, term, now, decisions=told)).moved == len(jobs)


def events(store: Store) -> list[Any]:
    return list(store.reads.events_page(action="term.gap"))


def test_a_gap_in_which_the_leader_kept_its_term_is_told_with_its_decisions_alone(store: Store) -> None:
    first, second = create(store, definition("a"), definition("b"))
    term = lead(store)
    decide(store, term, [first], Cause.TAKEOVER, missed=3, fired=1, merged=2)
    store.ticks.finish_pass(term, SECOND, 2)
    gaps = []
    for missed, jobs in ((5, [first, second]), (1, [second])):
        gap_from = store.now() - 12 * MINUTE
        assert store.ticks.note_pass(term, holds=False, gap_from=gap_from)
        decide(store, term, jobs, Cause.LATE_LEADER, missed=missed, held=missed)
        decide(store, term, jobs, Cause.NOT_STARTED, missed=7, skipped=7)
        store.ticks.finish_pass(term, SECOND, 2)
        gaps.append((gap_from, missed * len(jobs), len(jobs)))
    (takeover,) = store.reads.takeovers()
    assert [(gap.gap_from, gap.totals.held, gap.totals.jobs) for gap in takeover.gaps] == gaps[::-1]
    assert {(gap.term, gap.node) for gap in takeover.gaps} == {(term, "n1")}
    assert takeover.gaps[0].gap >= 12 * MINUTE
    assert takeover.totals == DecisionTotals(jobs=1, missed=3, fired=1, merged=2)
    assert takeover.not_started.missed == 21

    newest, older = takeover.gaps
    opened = store.reads.takeover(term, gap_until=older.gap_until)
    assert (opened.gap, opened.takeover) == (older, takeover)
    assert [(one.job, one.cause, one.missed) for one in opened.decisions] == [
        ("a", Cause.LATE_LEADER, 5),
        ("b", Cause.LATE_LEADER, 5),
    ]
    assert not store.reads.takeover(term, limit=1, gap_until=older.gap_until).is_whole
    assert [one.missed for one in store.reads.opened_takeover(takeover, newest).decisions] == [1]
    assert len(store.reads.takeover(term).decisions) == 7
    with pytest.raises(NotFound, match=f"sexton takeovers {term}"):
        store.reads.takeover(term, gap_until=older.gap_from)


def test_gaps_stand_with_their_own_term(store: Store) -> None:
    (job,) = create(store, definition("a"))
    found: list[GapView] = []
    for node in ("n1", "n2"):
        term = lead(store, node)
        store.ticks.finish_pass(term, SECOND, 1)
        store.ticks.note_pass(term, holds=True, gap_from=store.now() - MINUTE)
        decide(store, term, [job], Cause.LATE_LEADER, missed=term, held=term)
        store.ticks.finish_pass(term, SECOND, 1)
    found = [gap for takeover in store.reads.takeovers() for gap in takeover.gaps]
    assert [(gap.term, gap.node, gap.totals.held) for gap in found] == [(2, "n2", 2), (1, "n1", 1)]
    assert store.reads.takeover(1).takeover.gaps == (found[1],)


def test_what_was_read_of_a_term_that_was_over_is_not_summed_again(store: Store) -> None:
    (job,) = create(store, definition("a"))
    for node in ("n1", "n2"):
        term = lead(store, node)
        decide(store, term, [job], Cause.TAKEOVER, missed=1, fired=1)
        store.ticks.finish_pass(term, SECOND, 1)
    newest, over = store.reads.takeovers()
    doctored = [replace(one, totals=DecisionTotals(missed=77)) for one in (newest, over)]
    assert store.reads.takeovers(20, doctored) == (newest, doctored[1])
    restored = replace(doctored[0], until=store.now())  # what was read before the ledger was restored
    assert store.reads.takeovers(20, [restored]) == (newest, over)
    lead(store, "n3")
    assert store.reads.takeovers(20, doctored)[1].totals == newest.totals  # it went on when it was read


def test_a_gap_is_told_once_however_often_its_pass_is_noted_and_never_by_a_stale_leader(store: Store) -> None:
    create(store, definition("a"))
    stale, term = lead(store), lead(store, "n2")
    gap_from = store.now() - MINUTE
    assert not store.ticks.note_pass(stale, holds=False, gap_from=gap_from)  # invariant 3
    assert events(store) == []
    for _ in range(2):  # the first answer was lost
        assert store.ticks.note_pass(term, holds=False, gap_from=gap_from)
    (told,) = events(store)
    assert (told.actor, told.detail) == ("n2", {"term": term, "gap_from": gap_told(gap_from)})
    store.ticks.finish_pass(term, SECOND, 1)
    assert store.ticks.note_pass(term, holds=False)  # a pass that no gap led to
    assert events(store) == [told]


def test_a_race_tells_its_gap_with_the_pass_that_one_racer_opens(store: Store) -> None:
    (job,) = create(store, definition("a"))
    store.edits.set_setting("strategy", "race", "alice")
    term, number = store.terms.cluster().term, store.races.newest_pass().number
    gap_from = store.now() - MINUTE
    assert store.races.open_pass(term, number, 1, 10, gap_from) is not None
    assert store.races.open_pass(term, number, 1, 10, gap_from) is None  # another racer was quicker
    decide(store, term, [job], Cause.RACE, missed=4, merged=4)
    (takeover,) = store.reads.takeovers()
    (gap,) = takeover.gaps
    assert (gap.node, gap.gap_from, gap.totals.merged) == ("the race", gap_from, 4)
