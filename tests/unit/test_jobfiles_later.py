"""The key of a later version: its whole grammar is read now, and what is right in it is refused by name."""

from __future__ import annotations

import pytest

from sexton.errors import InvalidJobFile
from sexton.jobfiles.load import load_job_text

JOB = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    shell: x\n    {}: {}\n"
LATER = "comes with a later version"


def faults(text: str) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(text)
    return [f"{fault.line}:{fault.column}: {fault.message}" for fault in refused.value.problems]


@pytest.mark.parametrize("value", ["{}", "{late: null}", "{late: null, failures: null}"])
def test_its_default_is_taken(value: str) -> None:
    (job,) = load_job_text(JOB.format("alert", value)).jobs
    (plain,) = load_job_text("version: 1\njobs:\n  a: {schedule: '0 5 * * *', shell: x}\n").jobs
    assert job.definition == plain.definition


@pytest.mark.parametrize("value", ["{late: 5m, failures: 3}", "{late: 5m}", "3"])
def test_any_other_right_value_is_refused_by_name(value: str) -> None:
    (fault,) = faults(JOB.format("alert", value))
    assert fault == f"6:12: alert {LATER}; remove it (until then it is {{late: null, failures: null}})"


@pytest.mark.parametrize(
    ("value", "column", "says"),
    [
        ("{late: 5}", 19, "alert.late: '5' has no unit"),
        ("{late: 500ms}", 19, "alert.late: '500ms' is not allowed; it must be at least 1s"),
        ("{failures: 0}", 23, "alert.failures: '0' is not a whole number from 1 to 1000"),
        ("{failure: 3}", 13, "'failure' is not a key of alert; did you mean 'failures'?"),
    ],
)
def test_a_fault_inside_has_its_place_its_value_and_its_remedy(value: str, column: int, says: str) -> None:
    (fault,) = faults(JOB.format("alert", value))
    assert fault.startswith(f"6:{column}: "), fault
    assert says in fault
    assert LATER not in fault


def test_in_defaults_it_is_checked_where_it_stands() -> None:
    (fault,) = faults("version: 1\ndefaults: {alert: {late: 5m}}\njobs: {}\n")
    assert fault.startswith("2:19: defaults.alert comes")
