"""The key `alert`: when somebody is told of a job's troubles."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sexton.errors import InvalidJobFile
from sexton.job_rules import AlertRules
from sexton.jobfiles.differences import differences_between
from sexton.jobfiles.load import load_job_text
from sexton.jobs import JobDefinition

JOB = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    shell: x\n    {}: {}\n"


def read(text: str) -> JobDefinition:
    (job,) = load_job_text(text).jobs
    return job.definition


def fault(key: str, value: str) -> str:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(JOB.format(key, value))
    (one,) = refused.value.problems
    return f"{one.line}:{one.column}: {one.message}"


@pytest.mark.parametrize("value", ["{}", "{late: null}", "{late: null, failures: null}"])
def test_its_default_says_nothing(value: str) -> None:
    assert read(JOB.format("alert", value)).to_text() == read(JOB.format("tags", "[]")).to_text()


def test_what_it_says_is_kept_and_is_the_first_key_of_a_definition() -> None:
    """By which the watch finds it without reading the rest (`store.read_alerts`)."""
    definition = read(JOB.format("alert", "{late: 5m, failures: 3}"))
    assert definition.alert == AlertRules(timedelta(minutes=5), 3)
    assert definition.to_text().startswith('{"alert":')
    assert JobDefinition.from_text(definition.to_text()) == definition


def test_in_defaults_it_merges_by_key() -> None:
    text = "version: 1\ndefaults: {alert: {late: 5m}}\njobs: {a: {schedule: '@daily', shell: x, alert: {failures: 2}}}"
    assert read(text).alert == AlertRules(timedelta(minutes=5), 2)


def test_a_plan_tells_what_changes_in_it() -> None:
    old, new = read(JOB.format("alert", "{failures: 3}")), read(JOB.format("alert", "{failures: 4, late: 90s}"))
    told = [(one.key, one.old, one.new) for one in differences_between(old, new)]
    assert told == [("alert.failures", "3", "4"), ("alert.late", None, "1m30s")]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("alert", "{late: 5}", "6:19: alert.late: '5' has no unit"),
        ("alert", "{late: 500ms}", "6:19: alert.late: '500ms' is not allowed; it must be at least 1s"),
        ("alert", "{failures: 0}", "6:23: alert.failures: '0' is not a whole number from 1 to 1000"),
        ("alert", "{failure: 3}", "6:13: 'failure' is not a key of alert; did you mean 'failures'?"),
        ("alert", "5m", "6:12: alert is"),
        ("on_failure", "mail ops", "6:5: 'on_failure' is not a key of a job; who is told, and how, is a setting"),
    ],
)
def test_a_fault_has_its_place_its_value_and_its_remedy(key: str, value: str, says: str) -> None:
    assert fault(key, value).startswith(says)
