"""A resume that is meant for one pause ends no other, by a condition in the edit's own transaction."""

from __future__ import annotations

from datetime import datetime

import pytest

from sexton.errors import Refused
from sexton.store.protocol import ChangeKind, JobChange, Store
from tests.support.leader_scene import create, definition, lead, set_columns


def change(store: Store, kind: ChangeKind, job_id: int, since: datetime | None = None) -> datetime:
    (done,) = store.edits.edit([JobChange(kind, job_id, why="storage", expected_pause=since)], "ben")
    return done.effective_at


def test_a_resume_ends_the_pause_it_is_meant_for_and_no_later_one(store: Store, ledger_url: str) -> None:
    lead(store)
    (job,) = create(store, definition("nightly"))
    job_id = job.job_id
    first = change(store, ChangeKind.PAUSE, job_id)
    change(store, ChangeKind.RESUME, job_id, first)
    assert not store.edits.current_jobs()[0].is_paused
    with pytest.raises(Refused, match="is not paused any more"):
        change(store, ChangeKind.RESUME, job_id, first)
    second = change(store, ChangeKind.PAUSE, job_id)
    with pytest.raises(Refused, match="is paused anew: storage"):
        change(store, ChangeKind.RESUME, job_id, first)
    set_columns(ledger_url, "jobs", {"job_id": job_id}, quarantined_at=second)
    with pytest.raises(Refused, match="is in quarantine"):
        change(store, ChangeKind.RESUME, job_id, second)
    assert store.edits.current_jobs()[0].is_paused
