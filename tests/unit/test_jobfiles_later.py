"""Keys of a later version: their whole grammar is read now, and what is right in them is refused by name."""

from __future__ import annotations

import pytest

from sexton.errors import InvalidJobFile
from sexton.jobfiles.later_readings import bytes_of
from sexton.jobfiles.load import load_job_text

JOB = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    shell: x\n    {}: {}\n"
TARGET = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    {}: {}\n"
LATER = "comes with a later version"


def faults(text: str) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(text)
    return [f"{fault.line}:{fault.column}: {fault.message}" for fault in refused.value.problems]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limits", "{}"),
        ("queue_limit", "100"),
        ("concurrency_key", "null"),
        ("on_lease_lost", "continue"),
        ("alert", "{}"),
        ("alert", "{late: null}"),
        ("alert", "{late: null, failures: null}"),
    ],
)
def test_the_default_of_such_a_key_is_taken(key: str, value: str) -> None:
    (job,) = load_job_text(JOB.format(key, value)).jobs
    (plain,) = load_job_text("version: 1\njobs:\n  a: {schedule: '0 5 * * *', shell: x}\n").jobs
    assert job.definition == plain.definition


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("limits", "{memory: 512MB, cpu_time: 10m, open_files: 1024}", "remove it (until then it is {})"),
        ("queue_limit", "5", "remove it (until then it is 100)"),
        ("concurrency_key", "{key: warehouse, limit: 1}", "remove it (until then it is null)"),
        ("concurrency_key", "{key: warehouse}", "remove it (until then it is null)"),
        ("on_lease_lost", "kill", "remove it (until then it is continue)"),
        ("alert", "{late: 5m, failures: 3}", "remove it (until then it is {late: null, failures: null})"),
        ("limits", "512MB", "remove it (until then it is {})"),
        ("concurrency_key", "warehouse", "remove it (until then it is null)"),
        ("alert", "3", "remove it (until then it is {late: null, failures: null})"),
        ("overlap", "replace", "write skip, queue or allow"),
        ("env", "{A: 'x ${secret:vault.db-1} y'}", "let the job read its secret itself"),
    ],
)
def test_any_other_right_value_is_refused_by_name(key: str, value: str, remedy: str) -> None:
    (fault,) = faults(JOB.format(key, value))
    assert LATER in fault
    assert fault.endswith(remedy)
    assert fault.startswith(f"6:{len(key) + (11 if key == 'env' else 7)}: {key}")


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("http", "https://billing.internal/run"),
        ("http", '{url: "https://billing.internal/run"}'),
        (
            "http",
            '{method: POST, url: "http://h:80/a?b=c#d", headers: {X-A: b, Authorization: "Bearer x"}, body: null, '
            "expect: [200, 202, 204], timeout: 30s, redirects: same-host}",
        ),
        ("celery", '{broker: "redis://broker/0", task: billing.nightly, queue: celery, wait: false}'),
    ],
)
def test_a_right_target_of_a_later_version_has_that_one_fault(target: str, value: str) -> None:
    assert faults(TARGET.format(target, value)) == [
        f"5:{len(target) + 7}: {target} {LATER}; write command, shell or python until then"
    ]


@pytest.mark.parametrize(
    ("key", "value", "column", "says"),
    [
        ("limits", "{memory: 512}", 22, "limits.memory: '512' has no unit; write e.g. 512MB"),
        ("limits", "{memory: 512M}", 22, "limits.memory: '512M' is not spelt as sizes are; write 512MB"),
        ("limits", "{memory: 2 gib}", 22, "write 2GiB"),
        ("limits", "{memory: 2XB}", 22, "has the unit 'XB'; the units are KB, MB, GB, TB, KiB, MiB, GiB, TiB"),
        ("limits", "{memory: 1.5GB}", 22, "is not a size such as 512MB or 2GiB: a whole number and its unit"),
        ("limits", "{memory: 1KB}", 22, "limits.memory: '1KB' is not allowed; it must be at least 1MB"),
        ("limits", "{memory: 9999999TB}", 22, "it must be at most 1024TiB"),
        ("limits", "{memory: [1GB]}", 22, "limits.memory is a list; write a size such as 512MB or 2GiB"),
        ("limits", "{cpu_time: 10}", 24, "limits.cpu_time: '10' has no unit; write e.g. 10s or 10m"),
        ("limits", "{open_files: 2}", 26, "is not a whole number from 8 to 1048576"),
        ("limits", "{openfiles: 9}", 14, "'openfiles' is not a key of limits; did you mean 'open_files'?"),
        ("queue_limit", "0", 18, "queue_limit: '0' is not a whole number from 1 to 1000000"),
        ("queue_limit", "'5'", 18, "stands in quotes"),
        ("concurrency_key", "{limit: 1}", 22, "concurrency_key has no key; write e.g. key: warehouse"),
        ("concurrency_key", "{key: a b}", 28, "concurrency_key.key: 'a b' is not a name"),
        (
            "concurrency_key",
            "{key: a, limit: 0}",
            38,
            "concurrency_key.limit: '0' is not a whole number from 1 to 10000",
        ),
        ("on_lease_lost", "stop", 20, "on_lease_lost: 'stop' is not continue or kill"),
        ("alert", "{late: 5}", 19, "alert.late: '5' has no unit"),
        ("alert", "{late: 500ms}", 19, "alert.late: '500ms' is not allowed; it must be at least 1s"),
        ("alert", "{failures: 0}", 23, "alert.failures: '0' is not a whole number from 1 to 1000"),
        ("alert", "{failure: 3}", 13, "'failure' is not a key of alert; did you mean 'failures'?"),
        ("overlap", "replaces", 14, "overlap: 'replaces' is not skip, queue or allow"),
        ("env", "{A: '${secret:x'}", 14, "'${secret:x' has no closing brace; write ${secret:NAME}"),
        ("env", "{A: '${secret:}'}", 14, "'' is not a secret's name"),
        ("env", "{A: '${secret:a b}'}", 14, "'a b' is not a secret's name"),
    ],
)
def test_a_fault_inside_has_its_place_its_value_and_its_remedy(key: str, value: str, column: int, says: str) -> None:
    (fault,) = faults(JOB.format(key, value))
    assert fault.startswith(f"6:{column}: "), fault
    assert says in fault
    assert LATER not in fault


@pytest.mark.parametrize(
    ("target", "value", "column", "says"),
    [
        ("http", "{method: POST}", 11, "http has no url; write e.g. url: https://billing.internal/run"),
        ("http", "{url: billing/run}", 17, "http.url: 'billing/run' is not an http or https address"),
        ("http", "{url: 'https://'}", 17, "is not an http or https address"),
        (
            "http",
            "{url: 'https://x', method: post}",
            38,
            "http.method: 'post' is not GET, POST, PUT, PATCH, DELETE or HEAD",
        ),
        (
            "http",
            "{url: 'https://x', expect: 200}",
            38,
            "'200'; write expect: [200]",
        ),
        ("http", "{url: 'https://x', expect: [20]}", 39, "http.expect[0]: '20' is not a whole number from 100 to 599"),
        ("http", "{url: 'https://x', timeout: 0s}", 39, "it must be at least 1ms"),
        ("http", "{url: 'https://x', redirects: yes}", 41, "http.redirects: 'yes' is not same-host, all or none"),
        ("http", "{url: 'https://x', headers: {'A B': c}}", 40, "http.headers: 'A B' is not a name of a header"),
        ("http", '{url: "https://x", headers: {A: "b\\nc"}}', 43, "http.headers.A: 'b\\nc' is not a text on one line"),
        ("http", "{url: 'https://x', body: {a: 1}}", 36, "http.body is a mapping; write a text"),
        ("http", "{url: 'https://x', verify: false}", 30, "'verify' is not a key of http"),
        ("celery", "{queue: q}", 13, "celery has no broker and no task; write e.g. broker: redis://broker/0, task:"),
        ("celery", "{broker: broker, task: t}", 22, "celery.broker: 'broker' is not a broker's address"),
        ("celery", "{broker: 'redis://b', task: 'a b'}", 41, "celery.task: 'a b' is not a task's name"),
        ("celery", "{broker: 'redis://b', task: t, wait: 1}", 50, "celery.wait: '1' is not true or false"),
    ],
)
def test_a_fault_inside_a_later_target_stands_beside_its_refusal(
    target: str, value: str, column: int, says: str
) -> None:
    found = faults(TARGET.format(target, value))
    inside = [fault for fault in found if LATER not in fault]
    assert len(inside) == len(found) - 1 == 1
    assert inside[0].startswith(f"5:{column}: "), inside
    assert says in inside[0]


def test_later_keys_in_defaults_are_checked_where_they_stand() -> None:
    text = "version: 1\ndefaults: {alert: {late: 5m}, limits: {memory: 5}}\njobs: {}\n"
    assert [fault.partition(": ")[0] for fault in faults(text)] == ["2:19", "2:48"]


def test_dst_from_defaults_says_how_a_job_gets_out_of_it() -> None:
    text = "version: 1\ndefaults: {dst: {gap: skip}}\njobs:\n  a: {schedule: '*/5 * * * *', shell: x}\n"
    (fault,) = faults(text)
    assert fault.startswith("4:17: cron expression '*/5 * * * *' follows elapsed time")
    assert fault.endswith("write dst: {gap: shift, overlap: first} here")
    mended = text.replace("shell: x", "shell: x, dst: {gap: shift, overlap: first}")
    assert len(load_job_text(mended).jobs) == 1
    own = "version: 1\njobs:\n  a: {schedule: '5 * * * *', shell: x, dst: {overlap: both}}\n"
    (fault,) = faults(own)
    assert fault.startswith("3:45: ")
    assert "defaults" not in fault


@pytest.mark.parametrize(
    ("text", "size"),
    [("1KB", 1000), ("512MB", 512_000_000), ("2GiB", 2 * 1024**3), ("0MB", 0), ("1TiB", 1024**4), ("007KB", 7000)],
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1", "1 MB", "-1MB", "1.5MB", "1mb", "1M", "1MB ", "9999999999999999MB"])
def test_what_is_no_size(text: str) -> None:
    assert bytes_of(text) is None
