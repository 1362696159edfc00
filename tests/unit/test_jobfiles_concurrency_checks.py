"""One limit for each concurrency key: told between files at `validate`, and beside the cluster's jobs at `plan`."""

from __future__ import annotations

import pytest

from sexton.errors import InvalidJobFile
from sexton.jobfiles.load import LoadedJobs, load_job_text
from sexton.jobfiles.plan import plan_changes
from sexton.store.protocol import CurrentJob

JOB = """\
  {name}:
    schedule: "@daily"
    command: ["true"]
    overlap: queue
    concurrency_key: {{key: {key}, limit: {limit}}}
"""


def load(*jobs: tuple[str, str, int]) -> LoadedJobs:
    body = "".join(JOB.format(name=name, key=key, limit=limit) for name, key, limit in jobs)
    return load_job_text(f"version: 1\njobs:\n{body}")


def current(*jobs: tuple[str, str, int]) -> list[CurrentJob]:
    return [
        CurrentJob(number, job.name, 1, job.definition, job.name, is_paused=False, is_quarantined=False)
        for number, job in enumerate(load(*jobs).jobs, 1)
    ]


def problems_of(error: InvalidJobFile) -> list[str]:
    return [str(problem) for problem in error.problems]


def test_jobs_of_one_key_with_one_limit_load() -> None:
    assert len(load(("a", "warehouse", 2), ("b", "warehouse", 2), ("c", "mail", 1)).jobs) == 3


def test_every_job_that_contradicts_the_first_is_told_at_its_place() -> None:
    with pytest.raises(InvalidJobFile) as caught:
        load(("a", "warehouse", 2), ("b", "warehouse", 3), ("c", "warehouse", 2), ("d", "warehouse", 1))
    told = problems_of(caught.value)
    assert len(told) == 2
    assert "jobs.yaml:8:3" in told[0]
    assert "limit 3 here and 2 in 'a' (jobs.yaml:3:3)" in told[0]
    assert "limit 1 here and 2 in 'a'" in told[1]


def test_a_job_of_the_cluster_that_stays_has_a_say() -> None:
    with pytest.raises(
        InvalidJobFile, match=r"limit 3 here and 2 in the cluster's job 'old', which no file here names"
    ):
        plan_changes(load(("a", "warehouse", 3)), current(("old", "warehouse", 2), ("a", "warehouse", 2)))


def test_a_job_that_is_pruned_or_changed_along_has_none() -> None:
    old = current(("old", "warehouse", 2), ("a", "warehouse", 2))
    assert plan_changes(load(("a", "warehouse", 3)), old, prune=True).retired
    both = plan_changes(load(("a", "warehouse", 3), ("old", "warehouse", 3)), old)
    assert len(both.revised) == 2
