"""Other inputs accepted: an edit of the jobs whose ticks differ, and no node of the older ones writes any more."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sexton.audit_findings import Verdict
from sexton.errors import MovedOn
from sexton.inputs import own_inputs
from sexton.jobs import JobDefinition
from sexton.schedule_specs import schedule_from_spec
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import ChangeKind, JobChange, JobRow, Store
from sexton.targets import CommandTarget
from sexton.tick_explanation import explain
from sexton.zone_files import add_zone_data, zone_of
from tests.support.command_line import CommandLine
from tests.support.leader_scene import batch, create, lead, read, rows, set_columns
from tests.support.zone_data import zone_data_with

OLDER = "0000b"
HERE = own_inputs()
BEFORE = f"{OLDER}/{HERE.engine}/{HERE.holidays}"


def nightly(name: str, zone: str) -> JobDefinition:
    return JobDefinition(name, ({"cron": "30 2 * * *"},), CommandTarget(("true",)), timezone=zone)


@pytest.fixture
def jobs(store: Store) -> list[JobRow]:
    """A cluster of older inputs, in whose zone data Berlin's clock was never changed."""
    store.terms.enroll("database:", BEFORE, OLDER, HERE.engine)
    store.restores.keep_zone_data(OLDER, zone_data_with({"Europe/Berlin": "Africa/Algiers"}))
    return create(store, nightly("berlin", "Europe/Berlin"), nightly("tokyo", "Asia/Tokyo"))


def sexton(tmp_path: Path, url: str, *arguments: str) -> tuple[int, str, str]:
    done = CommandLine(tmp_path).run("inputs", *arguments, env={"SEXTON_DATABASE": url})
    return done.returncode, done.stdout, done.stderr


def test_the_jobs_whose_ticks_differ_are_shown_and_edited(
    store: Store, jobs: list[JobRow], ledger_url: str, tmp_path: Path
) -> None:
    """Invariants 3 and 8."""
    berlin, tokyo = jobs
    term = lead(store)
    ahead = berlin.at + timedelta(hours=1)
    assert store.ticks.commit(batch(store, term, [(berlin, [ahead])])).moved == 1
    code, shown, _ = sexton(tmp_path, ledger_url, "show")
    assert (code, BEFORE in shown, HERE.inputs_id in shown) == (1, True, True)
    code, out, errors = sexton(tmp_path, ledger_url, "accept", "--dry-run", "--output", "json")
    record = json.loads(out)
    assert (code, [job["job"] for job in record["jobs"]], record["accepted"]) == (0, ["berlin"], False), errors
    assert record["jobs"][0]["ahead"] == 1
    assert record["jobs"][0]["vanish"]
    assert store.terms.cluster().inputs_id == BEFORE
    assert sexton(tmp_path, ledger_url, "accept")[0] == 1  # nobody to ask
    code, told, errors = sexton(tmp_path, ledger_url, "accept", "--yes")
    assert (code, "no living node has" in told, "1 job edited" in told) == (0, True, True), errors
    state = store.terms.cluster()
    assert (state.inputs_id, state.term, state.leader) == (HERE.inputs_id, term + 1, None)
    revisions = [(row.job_id, row.revision, row.inputs_id) for row in rows(ledger_url, "revisions")]
    assert sorted(revisions) == sorted(
        [(berlin.job_id, 1, BEFORE), (berlin.job_id, 2, HERE.inputs_id), (tokyo.job_id, 1, HERE.inputs_id)]
    )
    assert rows(ledger_url, "claims") == []
    late = batch(store, term, [(read(store, tokyo.job_id), [ahead])])
    assert not store.ticks.commit(late).is_current
    assert "inputs.accepted" in [row.action for row in rows(ledger_url, "events")]
    assert sexton(tmp_path, ledger_url)[0] == 0
    assert sexton(tmp_path, ledger_url, "accept", "--yes")[0] == 1
    assert store.restores.zone_data(HERE.zone_data) is not None


def test_what_changed_since_it_was_shown_is_accepted_by_nobody(
    store: Store, jobs: list[JobRow], ledger_url: str
) -> None:
    berlin, tokyo = jobs
    seen = store.restores.inputs()
    create(store, nightly("another", "Europe/Berlin"))
    with pytest.raises(MovedOn):
        store.restores.accept_inputs(seen, HERE, {berlin.job_id}, "ops")
    seen = store.restores.inputs()
    change = JobChange(ChangeKind.REVISE, tokyo.job_id, nightly("tokyo", "Europe/Berlin"))
    store.edits.edit([change], "ops")
    with pytest.raises(MovedOn):
        store.restores.accept_inputs(seen, HERE, {berlin.job_id}, "ops")
    assert store.terms.cluster().inputs_id == BEFORE
    seen = store.restores.inputs()
    store.restores.accept_inputs(seen, HERE, set(), "ops")  # as if no tick differed
    assert {row.inputs_id for row in rows(ledger_url, "revisions", in_force_until=None)} == {HERE.inputs_id}
    with pytest.raises(MovedOn):
        store.restores.accept_inputs(seen, HERE, {berlin.job_id}, "ops")
    assert len(rows(ledger_url, "inputs")) == 2


def test_the_audit_judges_each_interval_by_its_own_zone_data(store: Store, ledger_url: str) -> None:
    """Where the ledger holds it; else it says that the inputs have changed."""
    version, inputs_id = "0000c", f"0000c/{HERE.engine}/{HERE.holidays}"
    store.terms.enroll("database:", inputs_id, version, HERE.engine)
    store.restores.keep_zone_data(version, zone_data_with({"Europe/Berlin": "Asia/Tokyo"}))
    term = lead(store)
    (job,) = create(store, nightly("berlin", "Europe/Berlin"))
    since = job.at - timedelta(days=3)
    for table, column in (("cursors", "at"), ("revisions", "in_force_since")):
        set_columns(ledger_url, table, {"job_id": job.job_id}, **{column: since})
    add_zone_data(version, store.restores.zone_data(version) or b"")
    spec = {**json.loads(job.revisions[-1].schedule), "timezone": zone_of("Europe/Berlin", version)}
    ticks = list(schedule_from_spec(spec).between(since, store.now()))
    assert len(ticks) == 3
    assert store.ticks.commit(batch(store, term, [(read(store, job.job_id), ticks)])).moved == 1
    store.restores.accept_inputs(store.restores.inputs(), HERE, {job.job_id}, "ops")
    report = audit_ledger(store, since)
    assert (report.is_clean, report.due) == (True, 3), report.differences
    assert set_columns(ledger_url, "zone_data", {"version": version}, version="another") == 1
    assert audit_ledger(store, since).count(Verdict.INPUTS_CHANGED) == 1


def test_a_tick_is_explained_by_the_zone_data_that_decided_it(store: Store, ledger_url: str) -> None:
    """Of a revision that other zone data decided: half past two in Berlin was at half past one UTC, in July too."""
    version = "0000d"
    store.terms.enroll("database:", f"{version}/{HERE.engine}/{HERE.holidays}", version, HERE.engine)
    store.restores.keep_zone_data(version, zone_data_with({"Europe/Berlin": "Africa/Algiers"}))
    (job,) = create(store, nightly("berlin", "Europe/Berlin"))
    set_columns(ledger_url, "revisions", {"job_id": job.job_id}, in_force_since=datetime(2025, 1, 1, tzinfo=UTC))
    then, now = datetime(2025, 7, 1, 1, 30, tzinfo=UTC), datetime(2025, 7, 1, 0, 30, tzinfo=UTC)
    found = explain(store.reads.tick_facts("berlin", then))
    assert (found.is_due, found.zone) == (True, f"Europe/Berlin@{version}")
    assert not explain(store.reads.tick_facts("berlin", now)).is_due
    store.restores.accept_inputs(store.restores.inputs(), HERE, set(), "ops")  # as if no tick differed
    assert explain(store.reads.tick_facts("berlin", now)).is_due
