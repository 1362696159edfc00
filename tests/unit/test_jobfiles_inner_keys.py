"""The keys that hold mappings of their own: `http`, `celery`, `limits` and `concurrency_key`, and the words beside."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sexton.claims import OnLeaseLost, Overlap
from sexton.errors import InvalidJobFile
from sexton.job_rules import ConcurrencyKey, Limits
from sexton.jobfiles.load import load_job_files, load_job_text
from sexton.jobfiles.python_files import PythonLimits
from sexton.jobs import JobDefinition
from sexton.targets import CeleryTarget, HttpTarget

JOB = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    shell: x\n    {}: {}\n"
TARGET = "version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    {}: {}\n"


def faults(text: str) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(text)
    return [f"{fault.line}:{fault.column}: {fault.message}" for fault in refused.value.problems]


def read(text: str) -> JobDefinition:
    (job,) = load_job_text(text).jobs
    return job.definition


YAML = """
version: 1
jobs:
  a:
    schedule: "0 5 * * *"
    http: {method: PUT, url: "https://x/run", headers: {X-A: b}, body: "{}", expect: [200], timeout: 1m}
  b:
    schedule: "0 5 * * *"
    celery: {broker: "redis://b/0", task: t, wait: true}
    args: [1, {a: [true]}]
    kwargs: {day: "2026-01-01"}
  c:
    schedule: "0 5 * * *"
    shell: x
    limits: {memory: 512MB, cpu_time: 90s, open_files: 64}
    overlap: replace
    queue_limit: 5
    concurrency_key: {key: tape, limit: 2}
    on_lease_lost: kill
"""
TOML = """
version = 1

[jobs.a]
schedule = "0 5 * * *"

[jobs.a.http]
method = "PUT"
url = "https://x/run"
headers = {X-A = "b"}
body = "{}"
expect = [200]
timeout = "1m"

[jobs.b]
schedule = "0 5 * * *"
celery = {broker = "redis://b/0", task = "t", wait = true}
args = [1, {a = [true]}]
kwargs = {day = "2026-01-01"}

[jobs.c]
schedule = "0 5 * * *"
shell = "x"
limits = {memory = "512MB", cpu_time = "90s", open_files = 64}
overlap = "replace"
queue_limit = 5
concurrency_key = {key = "tape", limit = 2}
on_lease_lost = "kill"
"""
PYTHON = """
from datetime import timedelta
from sexton import Job

jobs = [
    Job("a", schedule="0 5 * * *", http={
        "method": "PUT", "url": "https://x/run", "headers": {"X-A": "b"}, "body": "{}", "expect": [200],
        "timeout": timedelta(minutes=1),
    }),
    Job("b", schedule="0 5 * * *", celery={"broker": "redis://b/0", "task": "t", "wait": True},
        args=[1, {"a": [True]}], kwargs={"day": "2026-01-01"}),
    Job("c", schedule="0 5 * * *", shell="x",
        limits={"memory": "512MB", "cpu_time": timedelta(seconds=90), "open_files": 64}, overlap="replace",
        queue_limit=5, concurrency_key={"key": "tape", "limit": 2}, on_lease_lost="kill"),
]
"""


def test_every_format_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "given.py").write_text(PYTHON)
    as_yaml, as_toml = load_job_text(YAML), load_job_text(TOML, "a.toml")
    as_python = load_job_files([tmp_path], PythonLimits(seconds=120))
    definitions = [job.definition for job in as_yaml.jobs]
    assert [job.definition for job in as_toml.jobs] == definitions
    assert [job.definition for job in as_python.jobs] == definitions
    assert [type(one.target) for one in definitions[:2]] == [HttpTarget, CeleryTarget]


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("limits", "{}", Limits()),
        ("limits", "{memory: 512MB}", Limits(memory=512_000_000)),
        ("limits", "{memory: 2GiB, cpu_time: 10m, open_files: 8}", Limits(2 * 1024**3, timedelta(minutes=10), 8)),
        ("queue_limit", "100", 100),
        ("queue_limit", "1", 1),
        ("concurrency_key", "null", None),
        ("concurrency_key", "{key: warehouse}", ConcurrencyKey("warehouse", 1)),
        ("concurrency_key", "{key: a.b-c_1, limit: 10000}", ConcurrencyKey("a.b-c_1", 10_000)),
        ("on_lease_lost", "continue", OnLeaseLost.CONTINUE),
        ("on_lease_lost", "kill", OnLeaseLost.KILL),
        ("overlap", "replace", Overlap.REPLACE),
    ],
)
def test_what_a_job_says_stands_in_its_definition(key: str, value: str, field: object) -> None:
    definition = read(JOB.format(key, value))
    assert getattr(definition, key) == field
    assert JobDefinition.from_text(definition.to_text()) == definition


@pytest.mark.parametrize(
    ("target", "value", "meant"),
    [
        ("http", '{url: "https://billing.internal/run"}', HttpTarget("https://billing.internal/run")),
        (
            "http",
            '{method: PUT, url: "http://u:p@h:80/a?b=c#d", headers: {X-A: b, Accept: "*/*"}, body: "{}", '
            "expect: [201], expect_body: 'done|ok', timeout: 5s, redirects: none}",
            HttpTarget(
                "http://u:p@h:80/a?b=c#d",
                "PUT",
                {"X-A": "b", "Accept": "*/*"},
                "{}",
                (201,),
                "done|ok",
                timedelta(seconds=5),
                "none",
            ),
        ),
        ("http", '{url: "http://[::1]:8080/"}', HttpTarget("http://[::1]:8080/")),
        ("celery", '{broker: "redis://b/0", task: t.u}', CeleryTarget("redis://b/0", "t.u")),
        (
            "celery",
            '{broker: "amqp://b", task: t, queue: night, wait: true}, args: [1, {a: null}], kwargs: {b: x}',
            CeleryTarget("amqp://b", "t", (1, {"a": None}), {"b": "x"}, "night", True),
        ),
    ],
)
def test_a_target_stands_in_its_definition(target: str, value: str, meant: object) -> None:
    definition = read(f"version: 1\njobs:\n  a: {{schedule: '0 5 * * *', {target}: {value}}}\n")
    assert definition.target == meant
    assert JobDefinition.from_text(definition.to_text()) == definition


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
        ("overlap", "replaces", 14, "overlap: 'replaces' is not skip, queue, replace or allow; did you mean replace?"),
    ],
)
def test_a_fault_inside_has_its_place_its_value_and_its_remedy(key: str, value: str, column: int, says: str) -> None:
    (fault,) = faults(JOB.format(key, value))
    assert fault.startswith(f"6:{column}: "), fault
    assert says in fault


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
            "http.method: 'post' is not GET, POST, PUT, PATCH, DELETE or HEAD; did you mean POST?",
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
        (
            "http",
            '{url: "https://x", headers: {A: "b\\nc"}}',
            43,
            "http.headers.A: 'b\\nc' is not a text of ASCII characters on one line",
        ),
        ("http", "{url: 'https://x', body: {a: 1}}", 36, "http.body is a mapping; write a text"),
        ("http", "{url: 'https://x', verify: false}", 30, "'verify' is not a key of http"),
        ("celery", "{queue: q}", 13, "celery has no broker and no task; write e.g. broker: redis://broker/0, task:"),
        ("celery", "{broker: broker, task: t}", 22, "celery.broker: 'broker' is not a broker's address"),
        ("celery", "{broker: 'redis://b', task: 'a b'}", 41, "celery.task: 'a b' is not a task's name"),
        ("celery", "{broker: 'redis://b', task: t, wait: 1}", 50, "celery.wait: '1' is not true or false"),
    ],
)
def test_a_fault_inside_a_target_has_its_place_its_value_and_its_remedy(
    target: str, value: str, column: int, says: str
) -> None:
    (fault,) = faults(TARGET.format(target, value))
    assert fault.startswith(f"5:{column}: "), fault
    assert says in fault


@pytest.mark.parametrize(
    ("line", "write"),
    [
        ("http: https://x/run", "write http: {url: https://x/run}"),
        ("limits: 512MB", "write limits: {memory: 512MB}"),
        ("limits: 10m", "write limits: {cpu_time: 10m}"),
        ("concurrency_key: warehouse", "write concurrency_key: {key: warehouse}"),
        ("memory: 512MB", "write limits: {memory: 512MB}"),
        ("url: https://x/run", "write http: {url: https://x/run}"),
        ("method: GET", "write e.g. http: {method: GET, url: https://billing.internal/run}"),
        ("body: hi", "write e.g. http: {body: hi, url: https://billing.internal/run}"),
        ("broker: redis://b/0", "write e.g. celery: {broker: redis://b/0, task: billing.nightly}"),
        ("mutex: tape", "write concurrency_key: {key: tape}"),
    ],
)
def test_what_was_meant_is_written_out_and_taken(line: str, write: str) -> None:
    shell = "" if line.startswith("http") else "    shell: x\n"
    (fault,) = faults(f"version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n{shell}    {line}\n")
    assert fault.endswith(write)
    entry = write.removeprefix("write ").removeprefix("e.g. ")
    beside = "" if entry.startswith(("http", "celery")) else "    shell: x\n"
    read(f"version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n{beside}    {entry}\n")


@pytest.mark.parametrize(
    ("target", "secret"),
    [
        ("http: {url: 'https://me:hunter2@h:99999/'}", "hunter2"),
        ("http: {url: 'https://h/ x?token=hunter2'}", "hunter2"),
        ("http: {url: 'https://x', headers: {Authorization: \"Bearer hunter2\\u00e4\"}}", "hunter2"),
        ("celery: {broker: 'REDIS://:hunter2@b/0', task: t}", "hunter2"),
    ],
)
def test_a_message_does_not_repeat_what_looks_like_a_secret(target: str, secret: str) -> None:
    (fault,) = faults(f"version: 1\njobs:\n  a:\n    schedule: '0 5 * * *'\n    {target}\n")
    assert secret not in fault
    assert "(hidden)" in fault or "port" in fault


@pytest.mark.parametrize(
    "where",
    [
        "defaults: {{env: {{PASSWORD: {}}}}}\njobs: {{}}",
        "jobs:\n  a: {{schedule: '0 5 * * *', shell: x, env: {{PASSWORD: {}}}}}",
    ],
)
def test_a_variable_that_looks_like_a_secret_is_not_repeated(where: str) -> None:
    (fault,) = faults(f"version: 1\n{where.format('0815')}\n")
    assert "0815" not in fault
    assert "env.PASSWORD" in fault


def test_a_concurrency_key_of_defaults_merges_by_key_and_null_takes_a_job_out() -> None:
    text = (
        "version: 1\ndefaults: {concurrency_key: {key: w, limit: 3}, limits: {memory: 1GB, open_files: 64}}\njobs:\n"
        "  a: {schedule: '0 5 * * *', shell: x}\n"
        "  b: {schedule: '0 5 * * *', shell: x, concurrency_key: {key: v}, limits: {open_files: 128}}\n"
        "  c: {schedule: '0 5 * * *', shell: x, concurrency_key: null}\n"
    )
    found: dict[str, Any] = {job.name: job.definition for job in load_job_text(text).jobs}
    assert [found[name].concurrency_key for name in "abc"] == [ConcurrencyKey("w", 3), ConcurrencyKey("v", 3), None]
    assert found["b"].limits == Limits(memory=10**9, open_files=128)
