"""Whatever a definition holds, the file written for it is read back to the same definition."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sexton.errors import InvalidInput
from sexton.job_rules import DstRules, ExcludeRules, MissedPolicy, MissedRules
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.writing import JobEntry, job_file_text, keys_of
from sexton.jobs import JobDefinition
from sexton.targets import CommandTarget, ShellTarget
from sexton.wall_clock_ticks import GapRule, OverlapRule
from tests.support.drawn_definitions import DEFINITIONS, EXCLUDED, TEXTS


def read_back(definition: JobDefinition) -> JobDefinition:
    text = job_file_text([JobEntry(definition.name, keys_of(definition))])
    (job,) = load_job_text(text).jobs
    assert yaml.safe_load(text)["version"] == 1  # and other readers can read it too
    return job.definition


@given(DEFINITIONS)
@settings(max_examples=70, deadline=None)
def test_a_definition_comes_back_from_its_file_as_it_was(definition: JobDefinition) -> None:
    assert read_back(definition) == definition


@pytest.mark.parametrize(
    "rules",
    [
        {"start": datetime(2026, 1, 1, tzinfo=UTC), "end": datetime(2030, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)},
        {"exclude": ExcludeRules((date(2026, 12, 25), date(2027, 1, 1)), (0, 6), ("DE-BE", "NO"))},
        {"dst": DstRules(GapRule.SKIP, OverlapRule.BOTH)},
        {"dst": DstRules(GapRule.SHIFT, OverlapRule.SECOND)},
        {"success_codes": tuple(range(256))},
    ],
)
def test_rules_that_need_a_fitting_schedule_come_back_too(rules: dict[str, Any]) -> None:
    definition = JobDefinition("a", ({"cron": "0 2 * * *"},), CommandTarget(("x",)), **rules)
    assert read_back(definition) == definition


@given(EXCLUDED)
@settings(max_examples=30, deadline=None)
def test_excluded_days_come_back(exclude: ExcludeRules) -> None:
    definition = JobDefinition(
        "a", ({"every_ms": 3_600_000, "anchor": "1970-01-01T00:00:00Z"},), CommandTarget(("x",)), exclude=exclude
    )
    assert read_back(definition) == definition


@given(st.lists(TEXTS, max_size=3), TEXTS)
@settings(max_examples=50, deadline=None)
def test_comments_are_comments_whatever_they_say(comments: list[str], text: str) -> None:
    entry = JobEntry("a", {"schedule": "0 2 * * *", "shell": text or "x"}, tuple(comments))
    written = job_file_text([entry, JobEntry("b", entry.keys)], header=tuple(comments), defaults={"env": {"A": text}})
    jobs = load_job_text(written).jobs
    assert [job.name for job in jobs] == ["a", "b"]
    assert all(job.definition.target == ShellTarget(text or "x") and job.definition.env == {"A": text} for job in jobs)


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x\nb\0"])
def test_a_text_that_no_database_stores_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="nightly: shell holds"):
        job_file_text([JobEntry("nightly", {"schedule": "0 2 * * *", "shell": text})])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**30, object()])
def test_a_value_that_no_file_holds_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidInput, match="nightly: args holds"):
        job_file_text([JobEntry("nightly", {"schedule": "0 2 * * *", "python": "a:b", "args": [value]})])


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'cron' is not a key"):
        job_file_text([JobEntry("nightly", {"cron": "0 2 * * *"})])


def test_the_text_is_as_a_person_would_write_it() -> None:
    nightly = JobDefinition(
        "nightly-billing",
        ({"cron": "0 2 * * *"},),
        CommandTarget(("billing", "--night")),
        timezone="Europe/Berlin",
        env={"MODE": "full", "DAY": "2026-01-01"},
        missed=MissedRules(policy=MissedPolicy.ALL, grace=timedelta(minutes=5)),
        tags=("money", "night"),
        description="Bills everybody",
    )
    backup = JobDefinition(
        "backup",
        ({"every_ms": 900_000, "anchor": "1970-01-01T00:00:00Z"}, {"at": ["2026-12-24T17:00:00Z"]}),
        ShellTarget('set -e\npg_dump "$DB" > out\n'),
    )
    entries = [JobEntry(one.name, keys_of(one)) for one in (nightly, backup)]
    entries[1] = JobEntry("backup", entries[1].keys, ("nightly.crontab:3",))
    assert job_file_text(entries, header=("What runs",)) == (
        "# What runs\n"
        "\n"
        "version: 1\n"
        "jobs:\n"
        "  nightly-billing:\n"
        '    schedule: "0 2 * * *"\n'
        "    timezone: Europe/Berlin\n"
        "    command: [billing, --night]\n"
        "    env:\n"
        "      MODE: full\n"
        '      DAY: "2026-01-01"\n'
        "    missed: {policy: all, grace: 5m}\n"
        "    description: Bills everybody\n"
        "    tags: [money, night]\n"
        "\n"
        "  # nightly.crontab:3\n"
        "  backup:\n"
        '    schedule: [{every: 15m}, {at: ["2026-12-24T17:00:00Z"]}]\n'
        "    shell: |\n"
        "      set -e\n"
        '      pg_dump "$DB" > out\n'
    )


def test_no_jobs_is_a_file_too() -> None:
    assert load_job_text(job_file_text([])).jobs == ()
