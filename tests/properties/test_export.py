"""What runs, exported: no change where it comes from, and the same ticks where there was nothing (invariant 8)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sexton.jobfiles.exporting import ONE_FILE_EACH, export_files, export_text
from sexton.jobfiles.load import load_job_files, load_job_text
from sexton.jobfiles.plan import plan_changes
from sexton.jobs import JobDefinition
from sexton.store.protocol import CurrentJob
from sexton.targets import CommandTarget, HttpTarget
from tests.support.drawn_definitions import DEFINITIONS

JOBS = st.tuples(DEFINITIONS, st.sampled_from(["", "the-name-before"]), st.booleans(), st.booleans()).map(
    lambda drawn: CurrentJob(
        job_id=7,
        name=drawn[0].name,
        revision=3,
        definition=replace(drawn[0], renamed_from=None),
        hash_seed=drawn[0].hash_seed or drawn[1] or drawn[0].name,
        is_paused=drawn[2],
        is_quarantined=drawn[3],
    )
)


@given(JOBS)
@settings(max_examples=60, deadline=None)
def test_an_export_changes_nothing_here_and_gives_the_same_ticks_elsewhere(job: CurrentJob) -> None:
    loaded = load_job_text(export_text([job]))
    assert plan_changes(loaded, [job], prune=True).is_empty
    (there,) = plan_changes(loaded, []).added
    seed = there.hash_seed or there.name
    assert seed == job.hash_seed
    assert there.schedule_text(seed) == job.definition.schedule_text(job.hash_seed)
    assert there.firing_text(seed) == job.definition.firing_text(job.hash_seed)
    assert there.enabled == job.definition.enabled


def a_job(number: int, env: dict[str, str] | None = None, name: str = "") -> CurrentJob:
    name = name or f"job-{number}"
    definition = JobDefinition(name, ({"cron": "0 2 * * *"},), CommandTarget(("true",)), env=env or {})
    return CurrentJob(number, name, 1, definition, name, is_paused=False, is_quarantined=False)


def test_each_of_a_few_jobs_has_a_file_and_only_those_with_env_are_private() -> None:
    files = list(export_files([a_job(2, env={"A": "b"}), a_job(1)]))
    assert [(file.name, file.is_private) for file in files] == [("job-1.yaml", False), ("job-2.yaml", True)]


def test_what_may_hold_secrets_is_private() -> None:
    definition = JobDefinition("a", ({"cron": "0 2 * * *"},), HttpTarget("https://x/?token=abc"))
    jobs = [replace(a_job(1), definition=definition), a_job(2)]
    assert [file.is_private for file in export_files(jobs)] == [True, False]


def test_many_jobs_share_files_that_can_be_read_back() -> None:
    jobs = [a_job(number) for number in range(ONE_FILE_EACH * 2 + 1)]
    jobs += [a_job(9000 + number, env={"A": "x" * 100_000}) for number in range(120)]
    files = list(export_files(jobs))
    names = [job.name for file in files for job in load_job_text(file.text).jobs]
    assert names == sorted((job.name for job in jobs), key=str.lower)
    assert 5 <= len(files) <= 9
    assert all(len(file.text) < 10 * 1024 * 1024 for file in files)


def test_a_job_s_file_is_not_taken_for_its_folder_s_defaults(tmp_path: Path) -> None:
    jobs = [a_job(1, name="defaults"), a_job(2, name="defaults.yaml")]
    for file in export_files(jobs):
        (tmp_path / file.name).write_text(file.text)
    assert plan_changes(load_job_files([tmp_path]), jobs, prune=True).is_empty
