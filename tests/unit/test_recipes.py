"""What a worker reads of a definition is what the definition says."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from sexton.claims import OnLeaseLost, OnWorkerLost, Overlap
from sexton.errors import YoungerFormat
from sexton.job_rules import ConcurrencyKey, Limits, RetryRules
from sexton.jobs import JobDefinition
from sexton.recipes import recipe_from_text, recipe_of
from sexton.targets import CommandTarget, PythonTarget

PLAIN = JobDefinition("nightly", ({"every_ms": 60_000},), PythonTarget("app.jobs:run", (1, "b"), {"c": [2]}))
FULL = JobDefinition(
    "full",
    ({"cron": "0 3 * * *"},),
    CommandTarget(("/bin/true", "x")),
    env={"A": "b"},
    cwd="/srv",
    stdin="in",
    success_codes=(0, 3),
    limits=Limits(memory=2**30, cpu_time=timedelta(seconds=5), open_files=64),
    max_runtime=timedelta(minutes=3),
    kill_after=timedelta(milliseconds=1500),
    retries=RetryRules(max=2, delay=timedelta(seconds=1), on=(1, "OSError")),
)
BINDING: tuple[dict[str, object], ...] = (
    {"on_lease_lost": OnLeaseLost.KILL},
    {"on_worker_lost": OnWorkerLost.FAIL},
    {"overlap": Overlap.REPLACE},
    {"concurrency_key": ConcurrencyKey("db", 2)},
)


@pytest.mark.parametrize("definition", [PLAIN, FULL], ids=["plain", "full"])
def test_a_recipe_is_read_from_the_text_as_from_the_definition(definition: JobDefinition) -> None:
    text = definition.to_text()
    assert recipe_from_text(text) == recipe_of(definition) == recipe_of(JobDefinition.from_text(text))


@pytest.mark.parametrize("keys", BINDING, ids=lambda keys: next(iter(keys)))
def test_what_binds_a_run_to_its_lease_is_read(keys: dict[str, object]) -> None:
    definition = JobDefinition("one", PLAIN.schedule_parts, PLAIN.target, **keys)  # type: ignore[arg-type]  # as above
    read = recipe_from_text(definition.to_text())
    assert read == recipe_of(definition)
    assert read.rules.ends_with_lease
    assert not recipe_of(PLAIN).rules.ends_with_lease


def test_a_younger_format_is_not_read() -> None:
    younger = json.dumps({**json.loads(PLAIN.to_text()), "format": 99})
    with pytest.raises(YoungerFormat, match="nightly"):
        recipe_from_text(younger)
