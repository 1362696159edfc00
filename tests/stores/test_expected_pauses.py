"""A yes to what was told of a pause, a halt or a skipped tick is carried out on that alone, and so is an undo: by a
condition in the transaction that would do it. Somebody else has been there meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sexton.errors import Refused
from sexton.store.protocol import ChangeDone, ChangeKind, JobChange, PauseSeen, Store
from sexton.store.resuming import resume_missed, resume_together, skip_tick, unskip_tick
from tests.support.leader_scene import create, definition, lead, rows, set_columns
from tests.support.past_jobs import decide, old_job, skip

PAUSE, RESUME = ChangeKind.PAUSE, ChangeKind.RESUME


def change(store: Store, kind: ChangeKind, job_id: int, actor: str = "bob", **values: object) -> ChangeDone:
    (done,) = store.edits.edit([JobChange(kind, job_id, why="storage", **values)], actor)  # type: ignore[arg-type]  # the dataclass checks
    return done


def seen(store: Store, name: str = "nightly") -> PauseSeen:
    return store.edits.find_job(name).pause


@pytest.fixture
def job_id(store: Store) -> int:
    lead(store)
    return create(store, definition("nightly"))[0].job_id


def test_a_resume_ends_the_pause_it_is_meant_for_and_no_later_one(store: Store, ledger_url: str, job_id: int) -> None:
    done = change(store, PAUSE, job_id)
    first = seen(store)
    assert first == PauseSeen(done.effective_at, "bob", "storage")
    change(store, RESUME, job_id, expected_pause=first)
    assert not store.edits.current_jobs()[0].is_paused
    for resumed in (lambda: change(store, RESUME, job_id, expected_pause=first), lambda: _run_missed(store, first)):
        with pytest.raises(Refused, match="is not paused"):
            resumed()
    second = change(store, PAUSE, job_id).effective_at
    for resumed in (lambda: change(store, RESUME, job_id, expected_pause=first), lambda: _run_missed(store, first)):
        with pytest.raises(Refused, match=r"nightly is paused anew by bob since \S+Z: storage"):
            resumed()
    set_columns(ledger_url, "jobs", {"job_id": job_id}, quarantined_at=second)
    with pytest.raises(Refused, match="is in quarantine"):
        change(store, RESUME, job_id, expected_pause=PauseSeen(second, "bob", "storage"))
    assert store.edits.current_jobs()[0].is_paused
    assert _run_missed(store, seen(store)) == "nightly"


def _run_missed(store: Store, pause: PauseSeen) -> str:
    job_id = store.edits.find_job("nightly").job_id
    return resume_missed(store, job_id, "ana", expected=pause).done.name


def test_a_pause_is_refused_where_somebody_was_faster(store: Store, job_id: int) -> None:
    change(store, PAUSE, job_id)
    with pytest.raises(Refused, match=r"is paused already, by bob since \S+Z: storage"):
        change(store, PAUSE, job_id, "ana", expected_pause=PauseSeen())
    assert seen(store).who == "bob"


def test_the_undo_of_a_resume_pauses_only_what_was_not_paused_since(store: Store, job_id: int) -> None:
    change(store, PAUSE, job_id)
    resumed_at = change(store, RESUME, job_id).effective_at
    change(store, PAUSE, job_id, "ana", expected_resume=resumed_at)
    with pytest.raises(Refused, match="nightly was resumed, and then paused anew by ana"):
        change(store, PAUSE, job_id, expected_resume=resumed_at)
    change(store, RESUME, job_id)
    with pytest.raises(Refused, match="nightly was resumed, and then paused and resumed again"):
        change(store, PAUSE, job_id, expected_resume=resumed_at)
    assert not store.edits.current_jobs()[0].is_paused


@pytest.mark.parametrize("job_count", [0, 2])
def test_the_pause_of_all_that_was_seen_is_ended_and_no_later_one(store: Store, job_count: int) -> None:
    lead(store)
    jobs = create(store, *(definition(f"job {number}") for number in range(job_count)))
    first = store.pauses.pause_all("ana", "storage moves").pause
    assert first is not None
    assert len(store.pauses.resume_all("ana", first).jobs) == job_count
    with pytest.raises(Refused, match="the jobs are not paused as a whole any more"):
        store.pauses.resume_all("ana", first)
    second = store.pauses.pause_all("bob", "data corrupt").pause
    with pytest.raises(Refused, match=r"all jobs are paused anew by bob since \S+Z: data corrupt"):
        store.pauses.resume_all("ana", first)
    for job in jobs:
        with pytest.raises(Refused, match="all jobs are paused anew by bob"):
            resume_together(store, [job.job_id], "ana", with_all=True, expected=first)
    assert store.pauses.pause_of_all() == second
    assert len(store.pauses.paused_with_all()) == job_count


def test_what_was_paused_on_its_own_meanwhile_is_not_resumed_as_one_of_all(store: Store, job_id: int) -> None:
    of_all = store.pauses.pause_all("ana", "storage moves").pause
    change(store, PAUSE, job_id)
    with pytest.raises(Refused, match="nightly was paused on its own meanwhile"):
        resume_together(store, [job_id], "ana", with_all=True, expected=of_all)
    assert seen(store).who == "bob"


def test_the_halt_that_was_seen_is_lifted_and_no_later_one(store: Store) -> None:
    lead(store)
    first = store.edits.halt("ana", "split brain?").halt
    assert first is not None
    assert store.edits.lift_halt("ana", first).changed
    assert not store.edits.lift_halt("ana", first).changed
    store.edits.halt("bob", "new trouble")
    with pytest.raises(Refused, match=r"the cluster is halted anew by bob since \S+Z: new trouble"):
        store.edits.lift_halt("ana", first)
    assert store.reads.overview().is_halted


def test_the_undo_of_a_skip_takes_back_only_that_naming(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    plan, _ = skip_tick(store, job.job_id, None, "ana", "mine")
    mine = plan.named[plan.changed]
    unskip_tick(store, job.job_id, plan.changed, "bob", mine)
    skip_tick(store, job.job_id, plan.changed, "bob", "must not run")
    with pytest.raises(Refused, match="is skipped anew: skip-next by bob: must not run"):
        unskip_tick(store, job.job_id, plan.changed, "ana", mine)
    assert [row.named_by for row in rows(ledger_url, "skips") if row.named_by] == ["bob"]
    with pytest.raises(Refused):
        unskip_tick(store, job.job_id, plan.changed, "ana", replace(mine, who="bob"))


def test_another_leader_than_the_named_one_is_not_asked_to_hand_over(store: Store) -> None:
    lead(store)
    leader = store.terms.cluster().leader
    assert store.edits.request_resign("ana", "gone") is None
    assert store.edits.request_resign("ana", leader) == leader
