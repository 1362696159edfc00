"""The catch-up budget as operators draw on it: with the claims or not at all; on both databases."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest

from sexton.decisions import SkipReason
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.store.backfilling import carry_out, read_backfill
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store
from sexton.store.resuming import resume_missed
from tests.support.held_scene import approve, hold_claims, hold_gap
from tests.support.leader_scene import MINUTE, lead, read, rows, set_columns
from tests.support.past_jobs import decide, old_job, skip

Act = Callable[[], object]


def approving(store: Store, url: str, term: int) -> Act:
    hold_gap(store, url, term)
    return lambda: approve(store)


def approving_claims(store: Store, url: str, term: int) -> Act:
    hold_claims(store, term)
    return lambda: approve(store)


def backfilling(store: Store, url: str, term: int) -> Act:
    job = old_job(store, url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    begin, end = job.at + MINUTE, job.at + 9 * MINUTE
    plan = read_backfill(store, job.job_id, begin, end)
    return lambda: carry_out(store, plan, begin, end, "ana", "")


def resuming(store: Store, url: str, term: int) -> Act:
    job: JobRow = old_job(store, url, missed=MissedRules(policy=MissedPolicy.ALL))
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id)], "ana")
    set_columns(url, "pauses", {"job_id": job.job_id}, since=job.at)
    decide(store, term, read(store, job.job_id), 60, [skip(job, 0, 60, SkipReason.PAUSED, "ana")])
    return lambda: resume_missed(store, job.job_id, "ana")


@pytest.mark.parametrize(
    ("asked", "module", "last"),
    [
        (approving, "holds", "answer_detail"),
        (approving_claims, "holds", "answer_detail"),
        (backfilling, "backfills", "write_resolution"),
        (resuming, "pauses", "write_resolution"),
    ],
)
def test_who_is_interrupted_while_the_claims_are_written_has_drawn_nothing(
    store: Store,
    ledger_url: str,
    monkeypatch: pytest.MonkeyPatch,
    asked: Callable[[Store, str, int], Act],
    module: str,
    last: str,
) -> None:
    """Invariant 7: as for who is killed there; what was drawn and never used would delay all catch-up of all jobs."""
    store.edits.set_setting("catch_up.rate", "0.01", "ana")
    act = asked(store, ledger_url, lead(store))
    (before,) = rows(ledger_url, "budget")
    claims = rows(ledger_url, "claims")

    place = import_module(f"sexton.store.{'sqlite' if ledger_url.startswith('sqlite') else 'postgres'}.{module}")
    done = getattr(place, last)

    def interrupted(*values: object) -> None:
        done(*values)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(place, last, interrupted)
        with pytest.raises(KeyboardInterrupt):
            act()
    assert rows(ledger_url, "claims") == claims
    assert rows(ledger_url, "budget") == [before]
    act()
    assert rows(ledger_url, "budget") != [before]
    assert rows(ledger_url, "claims") != claims
