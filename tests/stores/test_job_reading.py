"""Jobs are read in pages, and of the cursors those that moved: what a node reads costs what has changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sexton.store import open_store
from sexton.store.protocol import ChangeKind, JobChange, JobsPage, Store, StoreOptions
from sexton_scheduler import job_book
from sexton_scheduler.core.planner import Planner
from tests.support.leader_scene import batch, create, definition, lead, read, ticks_after
from tests.support.waiting import eventually


@pytest.fixture
def postgres_store(postgres_ledger: str) -> Iterator[Store]:
    store = open_store(StoreOptions(postgres_ledger))
    yield store
    store.close()


def quiet_mark(store: Store) -> int:
    """A mark that no transaction under way, such as the server's own vacuum, holds back."""

    def found() -> int:
        mark = store.ticks.cursor_mark()
        return 0 if store.ticks.moved_cursors(mark).rows else mark

    return eventually(found, within=60, what="a mark after every cursor")


def test_cursors_that_have_moved_since_a_mark_are_listed_with_a_new_mark(store: Store) -> None:
    term = lead(store)
    jobs = create(store, definition("a"), definition("b"), definition("c"))
    everything = store.ticks.moved_cursors(0)
    assert sorted(everything.rows) == [(job.job_id, job.seq, job.at) for job in jobs]
    ticks = ticks_after(jobs[1], 2)
    store.ticks.commit(batch(store, term, [(jobs[1], ticks)]))
    moved = store.ticks.moved_cursors(everything.mark)
    assert (jobs[1].job_id, jobs[1].seq, ticks[-1]) in moved.rows
    assert moved.mark >= everything.mark


def test_only_cursors_that_have_moved_are_sent_where_the_database_can_tell(postgres_store: Store) -> None:
    store = postgres_store
    term = lead(store)
    jobs = create(store, definition("a"), definition("b"))
    mark = quiet_mark(store)
    ticks = ticks_after(jobs[1], 2)
    store.ticks.commit(batch(store, term, [(jobs[1], ticks)]))
    assert store.ticks.moved_cursors(mark).rows == [(jobs[1].job_id, jobs[1].seq, ticks[-1])]
    mark = quiet_mark(store)
    store.edits.edit([JobChange(ChangeKind.PAUSE, jobs[0].job_id, why="a holiday")], "test")
    assert [job_id for job_id, _, _ in store.ticks.moved_cursors(mark).rows] == [jobs[0].job_id]


def test_a_server_whose_transactions_have_gone_back_sends_every_cursor(postgres_store: Store) -> None:
    jobs = create(postgres_store, definition("a"), definition("b"))
    ahead = postgres_store.ticks.cursor_mark() + 1_000_000
    assert len(postgres_store.ticks.moved_cursors(ahead).rows) == len(jobs)


def test_jobs_come_in_pages_of_neighbouring_ids(store: Store) -> None:
    jobs = create(store, *(definition(name) for name in "abcde"))
    known = {job.job_id: job for job in store.ticks.load_jobs().jobs}
    first = store.ticks.job_page(0, 2)
    assert (first.jobs, first.upto) == ((known[jobs[0].job_id], known[jobs[1].job_id]), jobs[1].job_id)
    assert first.mark == store.ticks.load_jobs().mark
    second = store.ticks.job_page(jobs[1].job_id, 2)
    last = store.ticks.job_page(jobs[3].job_id, 2)
    assert [job.job_id for job in (*second.jobs, *last.jobs)] == [job.job_id for job in jobs[2:]]
    assert (second.upto, last.upto) == (jobs[3].job_id, None)
    assert store.ticks.job_page(jobs[4].job_id, 2).jobs == ()


def test_a_page_of_jobs_that_have_no_undecided_ticks_leads_to_the_next(store: Store) -> None:
    term = lead(store)
    jobs = create(store, *(definition(name) for name in "abc"))
    for job in jobs[:2]:
        (done,) = store.edits.edit([JobChange(ChangeKind.RETIRE, job.job_id)], "test")
        (row,) = store.ticks.read_jobs([job.job_id])
        store.ticks.commit(batch(store, term, [(row, [done.effective_at])], claims=()))
    page = store.ticks.job_page(0, 2)
    assert (page.jobs, page.upto) == ((), jobs[1].job_id)
    assert [job.job_id for job in store.ticks.job_page(jobs[1].job_id, 2).jobs] == [jobs[2].job_id]


def test_a_follower_reads_all_jobs_in_pages_and_then_follows_the_leader(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_book, "PAGE_JOBS", 2)
    term = lead(store)
    jobs = create(store, *(definition(name) for name in "abcde"))
    planner = Planner()
    book = job_book.JobBook(store.ticks, planner)
    assert book.refresh() == 5
    assert dict(planner.jobs).keys() == {job.job_id for job in jobs}
    assert len({id(job.revisions) for job in planner.jobs.values()}) == 1  # applied together, alike: one object

    ticks = ticks_after(jobs[3], 3)
    store.ticks.commit(batch(store, term, [(jobs[3], ticks)]))
    store.edits.edit([JobChange(ChangeKind.PAUSE, jobs[1].job_id, why="a holiday")], "test")
    book.follow()
    known = planner.jobs
    assert (known[jobs[3].job_id].at, known[jobs[0].job_id].at) == (ticks[-1], jobs[0].at)
    (paused,) = store.ticks.read_jobs([jobs[1].job_id])
    assert (known[jobs[1].job_id].seq, known[jobs[1].job_id].pauses) == (paused.seq, paused.pauses)


def test_a_job_that_is_edited_while_the_pages_are_read_is_known_as_it_stands(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_book, "PAGE_JOBS", 2)
    jobs = create(store, *(definition(name) for name in "abcd"))
    read_page = store.ticks.job_page

    def edit_behind(after: int, limit: int) -> JobsPage:
        page = read_page(after, limit)
        if after == 0:
            store.edits.edit([JobChange(ChangeKind.RETIRE, jobs[0].job_id)], "test")
            create(store, definition("new"))
        return page

    monkeypatch.setattr(store.ticks, "job_page", edit_behind)
    planner = Planner()
    job_book.JobBook(store.ticks, planner).refresh()
    assert [job.name for job in planner.jobs.values()] == ["a", "b", "c", "d", "new"]
    assert planner.jobs[jobs[0].job_id].revisions[0].until is not None


def test_a_pause_that_ended_is_read_with_who_and_why(store: Store) -> None:
    (job,) = create(store, definition("a"))
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id, why="inventory")], "alice")
    store.edits.edit([JobChange(ChangeKind.RESUME, job.job_id)], "bob")
    (ended,) = read(store, job.job_id).pauses
    assert (ended.detail, ended.until is None) == ("alice: inventory", False)
