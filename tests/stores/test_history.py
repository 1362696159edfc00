"""What was done to jobs, as it can be read: on both databases."""

from __future__ import annotations

import pytest

from sexton.errors import NotFound
from sexton.history_views import HistoryEntry
from sexton.store.protocol import ChangeKind, JobChange, Store
from tests.support.leader_scene import MINUTE, SECOND, create, definition


def edit(store: Store, kind: ChangeKind, job_id: int, **values: object) -> None:
    store.edits.edit([JobChange(kind, job_id, **values)], "alice@desk")  # type: ignore[arg-type]  # the dataclass checks


def told(entries: tuple[HistoryEntry, ...]) -> list[tuple[str, str, int | None]]:
    return [(entry.kind.value, entry.job, entry.revision) for entry in entries]


@pytest.fixture
def backup(store: Store) -> int:
    """A job that was created, revised, renamed, paused, resumed, revised and retired; beside it another one."""
    job, _ = create(store, definition("backup"), definition("other"))
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("backup", MINUTE), why="too often")
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("Nightly", MINUTE))
    edit(store, ChangeKind.PAUSE, job.job_id, why="disk full")
    edit(store, ChangeKind.RESUME, job.job_id)
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("Nightly", SECOND))
    edit(store, ChangeKind.RETIRE, job.job_id, why="not in the job files")
    return job.job_id


def test_a_job_tells_all_that_was_done_to_it_newest_first(store: Store, backup: int) -> None:
    history = store.reads.history("nightly")
    assert history.is_whole
    assert told(history.entries) == [
        ("retired", "Nightly", None),
        ("revised", "Nightly", 4),
        ("resumed", "Nightly", None),
        ("paused", "Nightly", None),
        ("renamed", "Nightly", 3),
        ("revised", "backup", 2),
        ("created", "backup", 1),
    ]
    assert {entry.job_id for entry in history.entries} == {backup}
    assert [entry.why for entry in history.entries][::3] == ["not in the job files", "disk full", ""]
    revised = history.entries[5]
    assert (revised.who, revised.why) == ("alice@desk", "too often")
    assert (revised.before, revised.definition) == (definition("backup"), definition("backup", MINUTE))


def test_each_revision_is_in_force_until_the_next_one_is(store: Store, backup: int) -> None:
    revisions = [entry for entry in store.reads.history("Nightly").entries if entry.revision is not None]
    newer = [entry.in_force_until for entry in revisions]
    assert newer[0] is not None  # the job is retired
    assert newer[1:] == [entry.in_force_since for entry in revisions[:-1]]


def test_all_jobs_are_told_together(store: Store, backup: int) -> None:
    history = store.reads.history()
    assert history.is_whole
    assert len(history.entries) == 8
    assert told(history.entries)[:2] == [("retired", "Nightly", None), ("revised", "Nightly", 4)]
    assert ("created", "other", 1) in told(history.entries)
    assert history.entries[1].before == definition("Nightly", MINUTE)


@pytest.mark.parametrize("job", [None, "nightly"])
def test_a_limit_leaves_the_oldest_out_and_says_so(store: Store, backup: int, job: str | None) -> None:
    history = store.reads.history(job, limit=2)
    assert not history.is_whole
    assert told(history.entries) == [("retired", "Nightly", None), ("revised", "Nightly", 4)]


def test_a_name_that_a_retired_job_had_tells_of_both(store: Store, backup: int) -> None:
    create(store, definition("nightly"))
    entries = store.reads.history("nightly").entries
    assert told(entries)[:2] == [("created", "nightly", 1), ("retired", "Nightly", None)]
    assert len({entry.job_id for entry in entries}) == 2


def test_a_name_of_before_leads_to_the_name_of_now(store: Store, backup: int) -> None:
    with pytest.raises(NotFound, match="no job is named 'BACKUP' any more; it was renamed to Nightly, and has it all"):
        store.reads.history("BACKUP")


def test_a_name_that_nobody_had_is_said_to_be_none(store: Store, backup: int) -> None:
    with pytest.raises(NotFound, match="there is no job '100%'"):
        store.reads.history("100%")


def test_a_revision_is_read_as_it_was_beside_the_job_as_it_is(store: Store) -> None:
    job, _ = create(store, definition("a", jitter=SECOND), definition("b"))
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("c", MINUTE, hash_seed="other"))
    past = store.reads.past_revision("C", 1)
    assert (past.job_id, past.name, past.newest, past.is_retired) == (job.job_id, "c", 2, False)
    assert (past.definition, past.current.hash_seed) == (definition("a", jitter=SECOND), "other")
    assert (past.hash_seed, past.hash_seed_now) == ("a", "other")
    assert store.reads.past_revision("c", 2).hash_seed is None  # nothing hashed: there is no H and no jitter
    edit(store, ChangeKind.RETIRE, job.job_id)
    assert store.reads.past_revision("c", 1).is_retired


def test_a_revision_that_never_was_is_refused(store: Store) -> None:
    create(store, definition("a"))
    with pytest.raises(NotFound, match="job 'a' has no revision 2; its revisions are 1 to 1"):
        store.reads.past_revision("a", 2)
