"""What messages about job files tell their authors to write is taken when it is written."""

from __future__ import annotations

import re

import pytest
import yaml

from sexton.errors import InvalidJobFile, Problem
from sexton.jobfiles.keys import JOB_KEYS, TARGETS, TableOf
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.meant_keys import MEANT, meant_by
from sexton.jobfiles.nodes import Mapping
from sexton.jobfiles.problems import FileProblems
from sexton.jobfiles.remedies import entry, node_from
from sexton.jobfiles.yaml_nodes import parse

BASE = {"schedule": "schedule: '0 5 * * *'", "shell": "shell: x"}
TOML_BASE = {"schedule": "schedule = '0 5 * * *'", "shell": "shell = 'x'"}
KEYS = {key.name: key for key in JOB_KEYS}


def refused(text: str, file: str = "jobs.yaml") -> list[Problem]:
    try:
        load_job_text(text, file)
    except InvalidJobFile as error:
        return list(error.problems)
    return []


def job(line: str, *, toml: bool = False) -> str:
    """A file with one job that holds ``line``, and what a job needs beside it."""
    key = re.split(r"[ :={]", line, maxsplit=1)[0]
    given = dict(TOML_BASE if toml else BASE)
    given.pop(key, None)
    if key in TARGETS:
        given.pop("shell", None)
    if key in ("args", "kwargs"):
        given["shell"] = "python = 'a:b'" if toml else "python: a:b"
    head = "version = 1\n[jobs.a]\n" if toml else "version: 1\njobs:\n  a:\n"
    indent = "" if toml else "    "
    return head + "".join(f"{indent}{one}\n" for one in (*given.values(), line))


def remedy(message: str) -> str:
    match = re.search(r"(?:write e\.g\.|write|such as) (?P<line>[a-z_]+(?::| =) .*)$", message)
    assert match is not None, message
    return match["line"]


@pytest.mark.parametrize("name", MEANT)
def test_what_is_said_of_a_key_of_another_scheduler_can_be_written(name: str) -> None:
    meant = MEANT[name]
    for path in meant.paths:
        assert path[0] in KEYS
    if meant.paths:
        value = {meant.paths[0][1]: meant.example} if len(meant.paths[0]) == 2 else meant.example
        assert refused(job(entry(meant.paths[0][0], node_from(value), FileProblems("jobs.yaml")))) == []
        toml = entry(meant.paths[0][0], node_from(value), FileProblems("jobs.toml"))
        assert refused(job(toml, toml=True), "jobs.toml") == []
    told = refused(job(f"{name}: nothing we would take"))[0].message
    if not meant.advice:
        assert refused(job(remedy(told))) == [], told


@pytest.mark.parametrize("line", ["slots: 2", "limits: {slots: 2}", "rate: 10/s", "limits: {rate: 10/s}"])
def test_what_is_set_for_a_queue_is_said_to_be(line: str) -> None:
    (problem,) = refused(job(line))
    assert "for a queue" in problem.message
    assert "sexton queues set NAME --" in problem.message


def test_no_name_of_a_key_stands_for_another() -> None:
    assert [key.name for key in JOB_KEYS if meant_by(key.name)] == []


@pytest.mark.parametrize(
    ("line", "write"),
    [
        ("script: backup --all", 'write shell: "backup --all"'),
        ("cmd: backup --all", 'write shell: "backup --all"'),
        ("exec: [backup, --all]", "write command: [backup, --all]"),
        ("timeout: 30m", "write max_runtime: 30m"),
        ("timeout: 5", "such as max_runtime: 15m"),
        ("interval: 90s", "write schedule: {every: 90s}"),
        ("maxRetries: 4", "write retries: {max: 4}"),
        ("backoffLimit: 4", "write retries: {max: 4}"),
        ("grace: 5m", "write missed: {grace: 5m}"),
        ("weekdays: SAT", "write exclude: {weekdays: [SAT]}"),
        ("exclude_dates: 2026-12-25", "write exclude: {dates: [2026-12-25]}"),
        ("retries: {attempts: 3}", "write max: 3"),
        ("hostname: x", "the keys are schedule, timezone, start"),
        ("retries: 3", "write retries: {max: 3}"),
        ("retries: 30s", "write retries: {delay: 30s}"),
        ("retries: [75]", 'write retries: {"on": [75]}'),
        ("missed: skip", "write missed: {policy: skip}"),
        ("missed: 5m", "write missed: {grace: 5m}"),
        ("dst: skip", "write dst: {gap: skip}"),
        ("dst: both", "write dst: {overlap: both}"),
        ("exclude: 2026-12-25", "write exclude: {dates: [2026-12-25]}"),
        ("exclude: SAT, SUN", "write exclude: {weekdays: [SAT, SUN]}"),
        ("exclude: DE-BE", "write exclude: {holidays: [DE-BE]}"),
        ("success_codes: 0", "write success_codes: [0]"),
        ("success_codes: 0, 75", "write success_codes: [0, 75]"),
        ("tags: nightly", "write tags: [nightly]"),
        ("tags: a, b c", 'write tags: [a, "b c"]'),
        ("env: A=b", "write env: {A: b}"),
        ("env: [A=1, C=d e]", 'write env: {A: "1", C: "d e"}'),
        ("env: nothing", "such as env: {NAME: value}"),
    ],
)
def test_the_answer_is_written_out_and_taken(line: str, write: str) -> None:
    (problem,) = refused(job(line))
    assert write in problem.message
    if line.startswith(("host", "retries: {")):
        return
    answer = remedy(problem.message)
    text = job(answer)
    assert refused(text) == []
    root = parse(text, FileProblems("jobs.yaml"))
    assert isinstance(root, Mapping)
    assert yaml.safe_load(text)["jobs"]["a"] is not None


@pytest.mark.parametrize(
    ("line", "write"),
    [
        ("retries = 3", "write retries = {max = 3}"),
        ("exclude = 2026-12-25", 'write exclude = {dates = ["2026-12-25"]}'),
        ('env = "A=b"', 'write env = {A = "b"}'),
        ('interval = "15m"', 'write schedule = {every = "15m"}'),
        ("script = 'echo \"a\"'", "write shell = 'echo \"a\"'"),
    ],
)
def test_the_answer_has_the_form_of_the_file(line: str, write: str) -> None:
    (problem,) = refused(job(line, toml=True), "jobs.toml")
    assert problem.message.endswith(write)
    assert refused(job(remedy(problem.message), toml=True), "jobs.toml") == []


def test_the_answer_to_a_python_file_is_python() -> None:
    problems = FileProblems("jobs.py")
    assert entry("retries", node_from({"max": 3, "jitter": True}), problems) == 'retries={"max": 3, "jitter": True}'
    assert entry("exclude.dates", node_from(["2026-12-25"]), problems) == '"dates": ["2026-12-25"]'


@pytest.mark.parametrize("name", [key.name for key in JOB_KEYS])
def test_a_misspelt_key_never_leads_to_one_that_is_refused(name: str) -> None:
    told = [one.message for one in refused(job(f"{name}x: 1"))]
    assert told == [f"'{name}x' is not a key of a job; did you mean {name!r}?"]


def test_all_keys_are_offered_where_none_is_near() -> None:
    (problem,) = refused(job("zzzz: 1"))
    offered = problem.message.partition("the keys are ")[2].split(", ")
    assert set(offered) == set(KEYS)


def test_a_key_of_defaults_that_is_each_job_s_own_is_said_to_be() -> None:
    (problem,) = refused("version: 1\ndefaults: {cmd: x, retry: 3}\njobs: {}\n")[:1]
    assert problem.message == "'cmd' is not a key of defaults; it is written as 'command', in each job"
    (_, second) = refused("version: 1\ndefaults: {cmd: x, retry: 3}\njobs: {}\n")
    assert second.message == "'retry' is not a key of defaults; write retries: {max: 3}"


def test_every_table_with_one_value_has_its_answer_or_names_its_keys() -> None:
    for name, key in KEYS.items():
        if isinstance(key.reading, TableOf):
            (problem,) = refused(job(f"{name}: nothing at all"))
            assert "write a mapping with the keys" in problem.message


@pytest.mark.parametrize(("number", "name"), [(0, "SUN"), (6, "SAT"), (7, "SUN")])
def test_a_weekday_s_number_has_its_name(number: int, name: str) -> None:
    (problem,) = refused(job(f"exclude: {{weekdays: [{number}]}}"))
    assert problem.message.endswith(f"such as {name}")
