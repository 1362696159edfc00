"""The schema for editors: it takes whatever `validate` takes, and refuses most of what `validate` refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sexton.errors import InvalidJobFile
from sexton.jobfiles.keys import JOB_KEYS
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.schema import job_file_schema
from tests.support.command_line import CommandLine
from tests.support.editor_view import editor_refuses, schema_faults, toml_values, validator, yaml_values

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "cases"
JOB = "version: 1\njobs:\n  a: {{schedule: '0 5 * * *', shell: x, {}}}\n"
SCHEDULE = "version: 1\njobs:\n  a:\n    shell: x\n    schedule: {}\n"


def is_valid(text: str) -> bool:
    try:
        load_job_text(text)
    except InvalidJobFile:
        return False
    return True


def whole_job_files() -> list[tuple[str, str]]:
    """Every job file of the examples, the documentation and the tests' inputs, by a name that says its format."""
    files = [file for suffix in ("yaml", "yml", "toml") for file in ROOT.glob(f"examples/**/*.{suffix}")]
    files.append(ROOT / "tests/support/twenty_jobs.yaml")
    found = [(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")) for file in files]
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
        text = page.read_text(encoding="utf-8")
        for language, block in re.findall(r"^```(yaml|toml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            if re.search("^version *[:=]", block, re.MULTILINE):
                found.append((f"{page.relative_to(ROOT)}#{len(found)}.{language}", block))
    return found


def test_it_is_a_schema_of_its_draft() -> None:
    Draft202012Validator.check_schema(job_file_schema())
    assert json.loads(json.dumps(job_file_schema())) == job_file_schema()


def test_the_command_prints_it(tmp_path: Path) -> None:
    done = CommandLine(tmp_path).run("schema")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == job_file_schema()
    assert json.loads(done.stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(done.stdout)["$id"].startswith("urn:")


@pytest.mark.parametrize(("name", "text"), [pytest.param(*one, id=one[0]) for one in whole_job_files()])
def test_every_job_file_that_we_show_is_valid_in_an_editor(name: str, text: str) -> None:
    values = toml_values(text) if name.endswith(".toml") else yaml_values(text)
    assert schema_faults(values) == []
    if "jobs" in values:
        load_job_text(text, "jobs.toml" if name.endswith(".toml") else "jobs.yaml")


def test_the_readme_and_the_pages_show_job_files() -> None:
    shown = {name.partition("#")[0] for name, _ in whole_job_files()}
    assert {"README.md", "docs/job-files.md", "docs/getting-started.md", "examples/jobs/night.yaml"} <= shown


def test_every_expression_that_is_a_case_is_valid_in_an_editor() -> None:
    cases = json.loads((CASES / "schedules.json").read_text(encoding="utf-8"))
    expressions = {case["expr"] for case in cases} | {"@daily", "@HOURLY", " 0  5 * * * ", "\t0 5 ? * mon#2"}
    texts = {one: SCHEDULE.format(json.dumps(one)) for one in expressions}
    texts = {one: text for one, text in texts.items() if is_valid(text)}
    assert len(texts) > 40
    assert [one for one, text in texts.items() if editor_refuses(text)] == []


def test_a_key_that_is_not_there_is_refused() -> None:
    assert not editor_refuses(JOB.format("queue: q"))
    assert editor_refuses(JOB.format("queues: q"))
    assert not editor_refuses(JOB.format("alert: {late: 5m}"))
    assert editor_refuses(JOB.format("alert: {lately: 5m}"))


@pytest.mark.parametrize("key", [key for key in JOB_KEYS if key.default], ids=lambda key: key.name)
def test_a_key_s_default_is_what_it_is_without_the_key(key: Any) -> None:
    target = "python: a:b" if key.name in ("args", "kwargs") else "shell: x"
    plain = f"version: 1\njobs:\n  a: {{schedule: '0 5 * * *', {target}}}\n"
    said = f"version: 1\njobs:\n  a: {{schedule: '0 5 * * *', {target}, {key.name}: {key.default}}}\n"
    assert [job.definition for job in load_job_text(said).jobs] == [job.definition for job in load_job_text(plain).jobs]
    assert not editor_refuses(said)


def described(schema: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every property that the schema names, at any depth."""
    if isinstance(schema, list):
        return [one for place, item in enumerate(schema) for one in described(item, f"{path}/{place}")]
    if not isinstance(schema, dict):
        return []
    named = list(schema["properties"].items()) if isinstance(schema.get("properties"), dict) else []
    here = [(f"{path}/{name}", one) for name, one in named]
    return here + [one for name, item in schema.items() for one in described(item, f"{path}/{name}")]


def test_every_default_and_example_satisfies_its_own_schema() -> None:
    checked = 0
    for path, schema in described(job_file_schema()):
        for value in [schema["default"]] if "default" in schema else []:
            assert validator().evolve(schema=schema).is_valid(value), path
            checked += 1
    keys = {name: one for name, one in job_file_schema()["$defs"].items() if name.startswith("key-")}
    for name, schema in keys.items():
        for value in [*([schema["default"]] if "default" in schema else []), *schema.get("examples", [])]:
            assert validator().evolve(schema=schema).is_valid(value), name
            checked += 1
    assert checked > 50


def test_every_key_is_described() -> None:
    page = (ROOT / "docs" / "job-files.md").read_text(encoding="utf-8")
    for key in JOB_KEYS:
        assert re.search(f"[`{{]{key.name}\\b", page), f"docs/job-files.md does not know {key.name}"
        assert key.meaning.endswith("."), key.name
        assert job_file_schema()["$defs"][f"key-{key.name}"]["description"].startswith(key.meaning)


@pytest.mark.parametrize(
    ("keys", "is_right"),
    [
        ("shell: x", True),
        ("command: [x]", True),
        ("python: a:b, args: [1], kwargs: {c: 2}", True),
        ("celery: {broker: 'redis://b/0', task: t}, args: [1], kwargs: {c: 2}", True),
        ("http: {url: 'https://x/'}", True),
        ("http: {method: GET}", False),
        ("celery: {broker: 'redis://b/0'}", False),
        ("http: {url: 'https://x/'}, args: [1]", False),
        ("queue: q", False),
        ("shell: x, command: [x]", False),
        ("python: a:b, command: [x]", False),
        ("shell: x, args: [1]", False),
        ("command: [x], kwargs: {c: 2}", False),
    ],
)
def test_a_job_has_one_target_and_arguments_only_for_calls(keys: str, is_right: bool) -> None:
    text = f"version: 1\njobs:\n  a: {{schedule: '0 5 * * *', {keys}}}\n"
    assert (not editor_refuses(text)) is is_valid(text) is is_right


def test_a_job_without_a_schedule_and_keys_that_no_table_has_are_refused() -> None:
    assert editor_refuses("version: 1\njobs: {}\nmore: 1\n")
    assert editor_refuses("version: 1\njobs: {}\ndefaults: {queues: a}\n")
    assert editor_refuses("version: 2\njobs: {}\n")
    assert editor_refuses("version: 1\njobs:\n  a b: {schedule: '0 5 * * *', shell: x}\n")
    assert editor_refuses("version: 1\njobs:\n  a: {shell: x}\n")


def test_a_folder_s_defaults_alone_are_valid_and_a_file_of_nothing_is_not() -> None:
    assert not editor_refuses("version: 1\ndefaults: {timezone: Europe/Berlin}\n")
    assert editor_refuses("version: 1\n")
    assert editor_refuses("version: 1\ndefaults: {schedule: '0 5 * * *'}\njobs: {}\n")


ONLY_VALIDATE_SEES = {
    "what a cron expression means": SCHEDULE.format("'0 10-5 * * *'"),
    "what can never fire": SCHEDULE.format("'0 0 30 2 *'"),
    "a region that the holidays package does not know": JOB.format("exclude: {holidays: [XX]}"),
    "a day that the calendar does not have": JOB.format("exclude: {dates: [2026-02-30]}"),
    "the upper bound of a duration": JOB.format("jitter: 21d"),
    "how values go together": JOB.format("retries: {max: 1, delay: 1h, max_delay: 1m}"),
    "keys that another target needs": JOB.format("env: {A: b}").replace("shell: x", "http: {url: 'https://x/'}"),
    "overlap beside a concurrency_key": JOB.format("overlap: allow, concurrency_key: {key: k}"),
    "a promise that the lease contradicts": JOB.format("on_lease_lost: continue, on_worker_lost: fail"),
    "a start after the end": JOB.format("start: 2026-02-01T00:00:00Z, end: 2026-01-01T00:00:00Z"),
    "dst where the schedule follows elapsed time": JOB.format("dst: {gap: skip}").replace("0 5", "* 5"),
    "month_end beside days": SCHEDULE.format("{calendar: {days: 1}, at: '02:30', start: 2026-01-31, month_end: skip}"),
    "names that differ in case alone": "version: 1\njobs:\n  a: {schedule: '0 5 * * *', shell: x}\n"
    "  A: {schedule: '0 5 * * *', shell: x}\n",
    "quotes that other readers of YAML need": JOB.format("description: yes"),
    "what a rename contradicts": JOB.format("renamed_from: a"),
    "a tag or a merge": "version: 1\njobs:\n  a: {schedule: '0 5 * * *', shell: !!str x}\n",
}


@pytest.mark.parametrize("text", ONLY_VALIDATE_SEES.values(), ids=ONLY_VALIDATE_SEES)
def test_these_faults_only_validate_sees(text: str) -> None:
    assert not is_valid(text)
    assert not editor_refuses(text)


def test_most_of_what_must_be_refused_is_refused_in_an_editor_too() -> None:
    definitions = json.loads((CASES / "refused_definitions.json").read_text(encoding="utf-8"))
    texts = {case["id"]: case["input"] for case in definitions}
    texts = {name: text for name, text in texts.items() if "&" not in text and len(text) < 10_000}  # no exploding ones
    seen = {name for name, text in texts.items() if editor_refuses(text)}
    assert len(seen) >= 0.6 * len(texts), sorted(set(texts) - seen)
    schedules = json.loads((CASES / "refused_schedules.json").read_text(encoding="utf-8"))
    zones = [case["input"] for case in schedules if case["kind"] == "timezone"]
    assert [zone for zone in zones if not editor_refuses(JOB.format(f"timezone: {json.dumps(zone)}"))] == []
    expressions = [case["input"] for case in schedules if case["kind"] == "expr"]
    refused = [one for one in expressions if editor_refuses(SCHEDULE.format(json.dumps(one)))]
    assert len(refused) >= 0.35 * len(expressions)


VALUES = (
    *("null", "~", "true", "false", "yes", "no", "'true'", "0", "1", "-1", "-2", "2", "5", "100", "255", "256", "-0"),
    *("+5", "1.0", "1.5", "2.0", "1e3", "0x1F", "0o17", "017", "1_000", ".5", ".inf", "1000000", "'5'", "12:30"),
    *("'12:30'", "'24:00'", "2026-12-25", "2026-1-1", "'2026-12-25'", "2026-12-24T18:00:00+01:00", "2026-12-24 18:00Z"),
    *("2026-12-24T18:00:00", "'2026-12-24T18:00:00.123Z'", "2026-12-24t18:00:00z", "2026-12-24T18:00:00+0100"),
    *("0s", "1s", "999ms", "1ms", "250ms", "1h30m", "30m1h", "20d", "21d", "0d0s", "000s", "1.5h", "15M", "PT15M"),
    *("36500d", "999999999999d", "512MB", "512", "2GiB", "''", "' '", "x", "a.b", "a:b", "a.b:c.d", "billing.jobs:f"),
    *(
        "UTC",
        "Europe/Berlin",
        "europe/berlin",
        "'*'",
        "'0 5 * * *'",
        "0 5 * * *",
        "'@daily'",
        "'H H * * *'",
        "[]",
        "{}",
    ),
    *("[]", "{}", "[x]", "['']", "[1]", "['1']", "[0]", "[0, 255]", "[75, TimeoutError]", "[null]", "[[x]]", "[sat]"),
    *(
        "[SAT, SUN]",
        "[MON, TUE, WED, THU, FRI, SAT, SUN]",
        "[DE]",
        "[de-be]",
        "['DE-BE']",
        "[NO]",
        "['NO']",
        "[2026-12-25]",
    ),
    *("{A: b}", "{A: ''}", "{A: 1}", "{A: '1'}", "{'A=B': c}", "{'': c}", "{a: [1, {b: null}]}", "{'1a': b}"),
    *("{max: 3}", "{max: 0, on: null}", "{jitter: false, factor: 1}", "{policy: hold}", "{policy: run}", "{max: 1}"),
    *(
        "{gap: skip}",
        "{overlap: both}",
        "{dates: [2026-12-25]}",
        "{weekdays: [SUN]}",
        "{holidays: [DE]}",
        "{late: null}",
    ),
    *(
        "{late: null}",
        "{memory: 512MB, cpu_time: 1s, open_files: 8}",
        "{memory: 1KB}",
        "{key: a}",
        "{key: a, limit: 10000}",
        "{limit: 2}",
        "{url: 'https://x/', headers: {A: b}, expect: [599], expect_body: 'a|b', body: null}",
        "{url: 'https://x:65536/'}",
        "{url: 'https://x/', expect_body: '('}",
        "{url: 'https://x/', method: HEAD, redirects: none, timeout: 1ms}",
        "{url: 'https://x/', headers: {A: ' b'}}",
        "{broker: 'redis://b/0', task: t}",
        "{broker: 'amqp+ssl://b', task: a.b-c, wait: true, queue: q}",
        "{every: 15m}",
        "{every: 1s, anchor: 2026-01-01T00:00:00Z}",
        "{every: 999ms}",
        "{every: 0s}",
    ),
    *(
        "{at: [2026-12-24T18:00:00+01:00]}",
        "{at: []}",
        "{anchor: 2026-01-01T00:00:00Z}",
        "{cron: '0 5 * * *', every: 1m}",
    ),
    *("{cron: '0 5 * * *', every: 1m}",),
    *("{calendar: {months: 1}, at: '02:30', start: 2026-01-31}", "{calendar: {days: 1, weeks: 1}, at: '02:30'}"),
    *("{calendar: {weeks: 2}, at: '02:30:15', start: '2026-01-31'}", "['0 5 * * *', {every: 1h}]", "[[]]"),
    *("skip", "'skip'", "queue", "allow", "replace", "retry", "fail", "continue", "kill", "latest", "all", "SKIP"),
    *(
        '"a\\nb"',
        '"a\\0b"',
        '"\\ud800"',
        "é",
        "'😀'",
        "a" * 99,
        "a" * 100,
        "a" * 101,
        "a" * 201,
        "-a",
        ".a",
        "a/b",
        "a b",
    ),
)


def test_nothing_that_validate_takes_is_refused_in_an_editor() -> None:
    """Every key with every value of a wide choice: `validate` may be the stricter of the two, never the schema."""
    taken = 0
    disagreements = []
    for key in JOB_KEYS:
        base = {"schedule": "'0 5 * * *'", "python": "m:f"} if key.name in ("args", "kwargs") else {}
        base = base or {"schedule": "'0 5 * * *'", "command": "[x]"}
        if key.name in ("shell", "python", "http", "celery"):
            del base["command"]
        for value in VALUES:
            entries = ", ".join(f"{name}: {one}" for name, one in {**base, key.name: value}.items())
            text = f"version: 1\njobs:\n  a: {{{entries}}}\n"
            if is_valid(text):
                taken += 1
                if editor_refuses(text):
                    disagreements.append(f"{key.name}: {value}")
    assert disagreements == []
    assert taken > 400


TOML_VALUES = (
    *("true", "0", "-2", "+5", "0x1F", "0o17", "0b1", "1_000", "1.5", "1e3", "-0.0", "inf", "nan", "[]", "{}"),
    *("2026-12-25", "02:30:00", "02:30:00.5", "2026-12-24T18:00:00Z", "2026-12-24 18:00:00.123+01:00"),
    *("2026-12-24T18:00:00", "'30s'", "'x'", '"""a\nb"""', "'Europe/Berlin'", "'0 5 * * *'", "['x', 'y']", "[0, 75]"),
    *(
        "[2026-12-25, '2026-12-26']",
        "['SAT']",
        "{dates = [2026-12-25]}",
        "{gap = 'skip'}",
        "{policy = 'hold', max = 1}",
    ),
    *(
        "{every = '15m', anchor = 2026-01-01T00:00:00Z}",
        "{at = [2026-12-24T18:00:00+01:00]}",
        "{max = 3, factor = 1.5}",
    ),
    *("{calendar = {months = 1}, at = '02:30', start = 2026-01-31}", "{A = 'b'}", "{A = 1}", "[{every = '1h'}]"),
    *("{calendar = {months = 1}, at = 02:30:00, start = 2026-01-31}", "[1, {a = 2026-01-01}]", "{a = [1.5, 'x']}"),
)


def test_nothing_that_validate_takes_of_toml_is_refused_in_an_editor() -> None:
    taken = 0
    for key in JOB_KEYS:
        base = {"schedule": "'0 5 * * *'", "python" if key.name in ("args", "kwargs") else "shell": "'m:f'"}
        if key.name in ("command", "python", "http", "celery"):
            del base["shell"]
        for value in TOML_VALUES:
            text = "version = 1\n[jobs.a]\n" + "".join(
                f"{name} = {one}\n" for name, one in {**base, key.name: value}.items()
            )
            try:
                load_job_text(text, "jobs.toml")
            except InvalidJobFile:
                continue
            taken += 1
            assert schema_faults(toml_values(text)) == [], text
    assert taken > 60
