"""What is wrong between the keys of a job is told at its place, with what to write instead."""

from __future__ import annotations

import pytest

from sexton.errors import InvalidJobFile
from sexton.jobfiles.load import load_job_text
from sexton.jobs import JobDefinition

HTTP = "http: {url: 'https://x/'}"
CELERY = "celery: {broker: 'redis://b/0', task: t}"


def text_of(*lines: str, defaults: str = "{}") -> str:
    keys = "".join(f"    {line}\n" for line in ("schedule: '0 5 * * *'", *lines))
    return f"version: 1\ndefaults: {defaults}\njobs:\n  a:\n{keys}"


def faults(*lines: str, defaults: str = "{}") -> list[str]:
    try:
        load_job_text(text_of(*lines, defaults=defaults))
    except InvalidJobFile as refused:
        return [f"{fault.line}:{fault.column}: {fault.message}" for fault in refused.problems]
    return []


def read(*lines: str, defaults: str = "{}") -> JobDefinition:
    (job,) = load_job_text(text_of(*lines, defaults=defaults)).jobs
    return job.definition


@pytest.mark.parametrize("target", [HTTP, CELERY])
@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("env: {A: b}", "env: {}"),
        ("cwd: /srv", "cwd: null"),
        ("stdin: x", "stdin: null"),
        ("success_codes: [0, 75]", "success_codes: [0]"),
        ("limits: {memory: 1GB}", "limits: {}"),
    ],
)
def test_what_only_a_process_has_is_refused_for_a_target_that_starts_none(target: str, line: str, plain: str) -> None:
    (fault,) = faults(target, line)
    name, kind = line.partition(":")[0], target.partition(":")[0]
    assert fault.startswith(f"7:5: {name} is for processes (command, shell, python), and '{kind}' starts none; ")
    assert faults(target, plain) == []
    assert faults("shell: x", line) == []


@pytest.mark.parametrize("target", [HTTP, CELERY])
def test_defaults_hold_for_the_jobs_that_can_use_them(target: str) -> None:
    defaults = "{env: {A: b}, cwd: /srv, stdin: x, success_codes: [0, 75], limits: {memory: 1GB}, owner: me}"
    assert read(target, defaults=defaults) == read(target, "owner: me")
    assert read("shell: x", defaults=defaults).env == {"A": "b"}


def test_a_queue_limit_of_defaults_is_for_jobs_that_queue() -> None:
    assert read("shell: x", defaults="{queue_limit: 5}") == read("shell: x")
    assert read("shell: x", "overlap: queue", defaults="{queue_limit: 5}").queue_limit == 5
    assert read("shell: x", "queue_limit: 5").queue_limit == 5


@pytest.mark.parametrize(
    ("target", "line", "is_right"),
    [
        (CELERY, "args: [1]", True),
        (CELERY, "kwargs: {a: 1}", True),
        ("python: a:b", "args: [1]", True),
        (HTTP, "args: [1]", False),
        (HTTP, "kwargs: {a: 1}", False),
    ],
)
def test_arguments_go_with_functions_and_tasks(target: str, line: str, is_right: bool) -> None:
    found = faults(target, line)
    assert (found == []) is is_right
    assert is_right or "goes with 'python' and 'celery' only; put what 'http' needs into 'http'" in found[0]


def test_two_targets_are_one_too_many() -> None:
    (fault,) = faults(HTTP, CELERY)
    assert fault == "7:5: the job a has the targets http and celery; keep exactly one"


def test_allow_contradicts_a_concurrency_key() -> None:
    key = "concurrency_key: {key: tape, limit: 2}"
    (fault,) = faults("shell: x", "overlap: allow", key)
    assert fault.startswith("7:14: overlap: allow lets any number run, and concurrency_key 'tape' lets 2; ")
    assert fault.endswith("write overlap: queue, or overlap: skip, or remove the concurrency_key")
    (fault,) = faults("shell: x", key, defaults="{overlap: allow}")
    assert fault.startswith("7:22: ")
    assert fault.endswith("the job has its overlap from defaults: write overlap: queue here")
    (fault,) = faults("shell: x", "overlap: allow", defaults="{concurrency_key: {key: tape}}")
    assert fault.startswith("7:14: ")
    for overlap in ("skip", "queue", "replace"):
        assert faults("shell: x", f"overlap: {overlap}", key) == []


@pytest.mark.parametrize("line", ["on_worker_lost: fail", "overlap: replace", "concurrency_key: {key: tape}"])
def test_continue_is_refused_where_the_job_promises_what_needs_kill(line: str) -> None:
    (fault,) = faults("shell: x", "on_lease_lost: continue", line)
    what = "a concurrency_key" if line.startswith("concurrency") else line
    assert fault.startswith(
        f"7:20: on_lease_lost: continue contradicts {what}, under which a run ends with its lease; "
    )
    assert fault.endswith("remove it, or write on_lease_lost: kill")
    assert faults("shell: x", "on_lease_lost: kill", line) == []
    assert faults("shell: x", line) == []
    assert faults("shell: x", line, defaults="{on_lease_lost: continue}") == []  # implied, where the job says nothing
    (fault,) = faults("shell: x", "on_lease_lost: continue", defaults=f"{{{line}}}")
    assert "(from defaults)" in fault
    assert read("shell: x", line).ends_with_lease


def test_continue_alone_is_the_default() -> None:
    assert not read("shell: x", "on_lease_lost: continue").ends_with_lease
    assert read("shell: x", "on_lease_lost: kill").ends_with_lease


def test_headers_are_the_same_whatever_their_case() -> None:
    (fault,) = faults("http: {url: 'https://x/', headers: {X-A: b, x-a: c}}")
    assert fault == "6:49: http.headers: 'x-a' is the same header as X-A; keep one of them"


def test_an_answer_without_a_body_holds_nothing() -> None:
    (fault,) = faults("http: {url: 'https://x/', method: HEAD, expect_body: ok}")
    assert fault.startswith("6:58: http.expect_body: the answer to HEAD has no body")
    assert faults("http: {url: 'https://x/', method: HEAD, expect_body: null}") == []


def test_the_keys_of_the_documentation_all_with_their_defaults_are_taken() -> None:
    lines = (
        *("shell: x", "env: {}", "cwd: null", "stdin: null", "success_codes: [0]", "limits: {}", "queue: default"),
        *("priority: 0", "overlap: skip", "queue_limit: 100", "concurrency_key: null", "on_worker_lost: retry"),
        *("on_lease_lost: continue", "alert: {late: null, failures: null}", "renamed_from: null"),
    )
    assert read(*lines) == read("shell: x")


def test_dst_from_defaults_says_how_a_job_gets_out_of_it() -> None:
    text = "version: 1\ndefaults: {dst: {gap: skip}}\njobs:\n  a: {schedule: '*/5 * * * *', shell: x}\n"
    (fault,) = faults_of(text)
    assert fault.startswith("4:17: cron expression '*/5 * * * *' follows elapsed time")
    assert fault.endswith("write dst: {gap: shift, overlap: first} here")
    mended = text.replace("shell: x", "shell: x, dst: {gap: shift, overlap: first}")
    assert len(load_job_text(mended).jobs) == 1
    own = "version: 1\njobs:\n  a: {schedule: '5 * * * *', shell: x, dst: {overlap: both}}\n"
    (fault,) = faults_of(own)
    assert fault.startswith("3:45: ")
    assert "defaults" not in fault


def faults_of(text: str) -> list[str]:
    with pytest.raises(InvalidJobFile) as refused:
        load_job_text(text)
    return [f"{fault.line}:{fault.column}: {fault.message}" for fault in refused.value.problems]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("command: [run, 'x=${secret:a.b}']", "6:20: command"),
        ("shell: 'echo ${secret:x}'", "6:12: shell"),
    ],
)
def test_a_secret_is_refused_where_nobody_would_fill_it(line: str, place: str) -> None:
    (fault,) = faults(line)
    assert fault.startswith(f"{place}: '${{secret:"), fault
    assert fault.endswith("let env carry it")
    assert faults("shell: x", "cwd: '/srv/${secret:x}'", "stdin: '${secret:x}'")[0].startswith("7:10: cwd: ")
    assert len(faults("python: a:b", "args: [{k: '${secret:x}'}]", "kwargs: {k: '${secret:x}'}")) == 2
    assert faults("command: [bash, -c, 'echo ${secret:3}']", "env: {A: '${secret:x}'}") == []
