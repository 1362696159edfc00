"""A node's jobs as columns give back what was put in, whatever was put and dropped before."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.decisions import GrowingSkip, Interval, PlannedJob, SkipReason
from sexton_scheduler.core.instant_table import ABSENT, InstantTable, instant_of, micros
from sexton_scheduler.core.job_table import JobTable
from tests.support.planned_jobs import NOON, job

WAYS = ("plain", "paused", "growing", "quarantined")


def made(job_id: int, second: int, way: str) -> PlannedJob:
    plain = job(decided_upto=NOON + timedelta(seconds=second, microseconds=job_id), job_id=job_id)
    if way == "plain":
        return plain
    return PlannedJob(
        job_id,
        f"{plain.name}-{way}",
        second,
        plain.at,
        plain.revisions,
        pauses=(Interval(NOON, None),) if way == "paused" else (),
        pause_detail="ann: a holiday" if way == "paused" else "",
        growing=GrowingSkip(NOON, second, SkipReason.PAUSED) if way == "growing" else None,
        is_quarantined=way == "quarantined",
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9), st.integers(0, 50), st.sampled_from(WAYS))))
def test_it_behaves_like_a_dictionary_in_order_of_ids(steps: list[tuple[bool, int, int, str]]) -> None:
    table, model = JobTable(), dict[int, PlannedJob]()
    for puts, job_id, second, way in steps:
        if puts:
            model[job_id] = made(job_id, second, way)
            table.put(model[job_id])
        else:
            model.pop(job_id, None)
            table.drop(job_id)
        assert (len(table), list(table)) == (len(model), sorted(model))
        assert dict(table) == model
        assert [one in table for one in range(10)] == [one in model for one in range(10)]


def test_what_was_dropped_is_gone_and_its_place_is_given_back() -> None:
    table = JobTable()
    for job_id in range(5000):
        table.put(made(job_id, 0, WAYS[job_id % 4]))
    for job_id in range(4900):
        table.drop(job_id)
        table.drop(job_id)
    assert len(table._ids) < 2 * 100 + 1001 + 1
    assert dict(table) == {job_id: made(job_id, 0, WAYS[job_id % 4]) for job_id in range(4900, 5000)}
    with pytest.raises(KeyError):
        table[4899]


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(-3, 3))))
def test_instants_by_job_behave_like_a_dictionary(steps: list[tuple[int, int | None]]) -> None:
    table, model = InstantTable(), dict[int, int]()
    for job_id, number in steps:
        if number is None:
            model.pop(job_id, None)
            table.drop(job_id)
        else:
            assert table.put(job_id, number) == model.get(job_id, ABSENT)
            model[job_id] = number
        assert list(table.items()) == sorted(model.items())
        assert len(table) == len(model)
        assert [table.get(one) for one in range(10)] == [model.get(one, ABSENT) for one in range(10)]


def test_absent_instants_do_not_pile_up() -> None:
    table = InstantTable()
    for job_id in range(5000):
        table.put(job_id, job_id)
        table.drop(job_id)
    assert len(table._ids) <= 1001


@given(st.datetimes().map(lambda naive: naive.replace(tzinfo=NOON.tzinfo)))
def test_an_instant_comes_back_from_its_microseconds_to_the_last_one(instant: datetime) -> None:
    assert instant_of(micros(instant)) == instant
