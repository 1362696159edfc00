"""The table of keys says what the contract of job files says: every key, its default, its words and its bounds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sexton.errors import InvalidJobFile
from sexton.jobfiles.key_tables import Key, TableOf
from sexton.jobfiles.keys import JOB_KEYS, MAPPINGS, TARGETS
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.readings import Choice, OrNull

CONTRACT = """
schedule:
timezone: UTC
start: null
end: null
exclude: {}
jitter: 0s
dst: {gap: shift, overlap: first}
hash_seed:
enabled: true
command:
shell:
python:
args: []
kwargs: {}
http:
celery:
env: {}
cwd: null
stdin: null
success_codes: [0]
limits: {}
queue: default
priority: 0
overlap: skip
queue_limit: 100
concurrency_key: null
max_runtime: 24h
kill_after: 10s
retries: {}
on_worker_lost: retry
on_lease_lost: continue
missed: {}
description: ""
owner: ""
tags: []
alert: {late: null, failures: null}
renamed_from: null
"""
BELOW = """
retries: {max: 0, delay: 10s, factor: 2, max_delay: 10m, jitter: true, 'on': null}
missed: {policy: latest, grace: 60s, start_within: null, within: null, max: 100, order: oldest, hold_for: 7d}
dst: {gap: shift, overlap: first}
exclude: {dates: [], weekdays: [], holidays: []}
http: {method: POST, url:, headers: {}, body: null, expect: [200, 202, 204],
  expect_body: null, timeout: 30s, redirects: same-host}
celery: {broker:, task:, queue: celery, wait: false, backend: null}
limits: {memory:, cpu_time:, open_files:}
concurrency_key: {key:, limit: 1}
alert: {late: null, failures: null}
"""
WORDS = {
    "overlap": ("skip", "queue", "replace", "allow"),
    "on_worker_lost": ("retry", "fail"),
    "on_lease_lost": ("continue", "kill"),
    "missed.policy": ("skip", "latest", "all", "hold"),
    "missed.order": ("oldest", "newest"),
    "dst.gap": ("shift", "skip"),
    "dst.overlap": ("first", "second", "both"),
}
BY_NAME = {key.name: key for key in JOB_KEYS}


def inner(reading: Any) -> Any:
    while isinstance(reading, OrNull):
        reading = reading.inner
    return reading


def table_of(name: str) -> tuple[Key, ...]:
    table = inner(BY_NAME[name].reading)
    assert isinstance(table, TableOf)
    return table.keys


def defaults_of(keys: tuple[Key, ...]) -> dict[str, Any]:
    return {key.name: yaml.safe_load(key.default) if key.default else None for key in keys}


def test_every_key_stands_in_order_with_its_default() -> None:
    assert list(defaults_of(JOB_KEYS).items()) == list(yaml.safe_load(CONTRACT).items())


def test_the_keys_below_stand_in_order_with_their_defaults() -> None:
    for name, defaults in yaml.safe_load(BELOW).items():
        assert list(defaults_of(table_of(name)).items()) == list(defaults.items()), name


def test_the_words_of_each_choice() -> None:
    for path, words in WORDS.items():
        name, _, below = path.partition(".")
        key = next(key for key in table_of(name) if key.name == below) if below else BY_NAME[name]
        choice = inner(key.reading)
        assert isinstance(choice, Choice)
        assert [*choice.words] == [*words], path


def test_what_each_job_says_for_itself_and_what_merges() -> None:
    own = {"schedule", "renamed_from", "hash_seed", *TARGETS, "args", "kwargs"}
    assert {key.name for key in JOB_KEYS if key.own} == own
    readings = {key.name: key.reading for key in JOB_KEYS if not key.own}
    tables = {name for name, one in readings.items() if isinstance(getattr(one, "inner", one), TableOf)}
    assert tables | {"env"} == set(MAPPINGS)


def is_taken(text: str) -> bool:
    try:
        load_job_text(text)
    except InvalidJobFile:
        return False
    return True


@pytest.mark.parametrize(
    ("entry", "is_right"),
    [
        ("priority: -2", True),
        ("priority: 2", True),
        ("priority: -3", False),
        ("priority: 3", False),
        ("success_codes: [0, 255]", True),
        ("success_codes: [256]", False),
        ("success_codes: []", False),
        ("max_runtime: 0s", False),
        ("max_runtime: 1ms", True),
        ("kill_after: 0s", True),
        ("missed: {start_within: 1s}", True),
        ("missed: {start_within: 999ms}", False),
        ("missed: {grace: 0s}", True),
        ("missed: {max: 0}", False),
        ("missed: {hold_for: 0s}", False),
        ("missed: {within: 0s}", False),
        ("retries: {factor: 0.5}", False),
        ("retries: {max: -1}", False),
        ("jitter: 20d", True),
        ("jitter: 20d1ms", False),
        ("jitter: 1h30m15s250ms", True),
        ("jitter: 90", False),
        ("jitter: 1.5h", False),
        ("jitter: 1 h", False),
        ("jitter: -1h", False),
        ("jitter: 1H", False),
        ("jitter: '１h'", False),
        ("tags: [a]", True),
        ("tags: ['']", False),
        ("hash_seed: ''", False),
        ("env: {A: 1}", False),
        ("start: 2026-01-01", False),
        ("start: '2026-01-01T00:00:00Ｚ'", False),
        ("start: 2026-01-01T00:00:00.0001Z", False),
        ("exclude: {dates: ['２026-01-01']}", False),
    ],
)
def test_bounds(entry: str, is_right: bool) -> None:
    text = f"version: 1\njobs:\n  a: {{schedule: '0 5 * * *', shell: x, {entry}}}\n"
    assert is_taken(text) is is_right


@pytest.mark.parametrize(
    ("schedule", "is_right"),
    [
        ("{every: 1s}", True),
        ("{every: 999ms}", False),
        ("{every: 1s1ms}", True),
        ("{calendar: {days: 1}, at: '02:30', start: 2026-01-31}", True),
        ("{calendar: {days: 0}, at: '02:30', start: 2026-01-31}", False),
        ("{calendar: {hours: 1}, at: '02:30', start: 2026-01-31}", False),
        ("{calendar: {months: 1}, at: '02:30', start: 2026-01-31, month_end: skip}", True),
        ("{calendar: {weeks: 1}, at: '02:30', start: 2026-01-31, month_end: skip}", False),
        ("{calendar: {months: 1}, at: '０2:30', start: 2026-01-31}", False),
        ("{calendar: {months: 1}, at: 02:30, start: 2026-01-31}", False),
        ("{at: [2026-12-24T18:00:00]}", False),
        ("{at: []}", False),
        ("[]", False),
        ("[{every: 1s}, '0 5 * * *']", True),
    ],
)
def test_forms_of_a_schedule(schedule: str, is_right: bool) -> None:
    text = f"version: 1\njobs:\n  a: {{shell: x, schedule: {schedule}}}\n"
    assert is_taken(text) is is_right
