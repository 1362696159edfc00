"""Whole job files put together at random: what `validate` takes, an editor takes; what one key spoils, both refuse."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sexton.errors import InvalidJobFile
from sexton.jobfiles.keys import JOB_KEYS
from sexton.jobfiles.load import load_job_text
from tests.support.editor_view import editor_refuses, schema_faults, yaml_values

durations = st.builds("{}{}".format, st.integers(1, 400), st.sampled_from(["s", "m", "h", "m30s", "h0m5s"]))
texts = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), max_size=20).map(
    lambda text: json.dumps(text, ensure_ascii=False)
)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,30}[A-Za-z]x", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(st.characters(codec="ascii", min_codepoint=32)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("k") | st.just("some key"), inner, max_size=2),
    max_leaves=5,
).map(json.dumps)
days = st.dates().filter(lambda day: 1980 <= day.year <= 2100).map(str)
offsets = st.sampled_from(["Z", "+01:00", "-0930"])
instants = st.builds("{}T{:02}:{:02}:00{}".format, days, st.integers(0, 23), st.integers(0, 59), offsets)


def listed(inner: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[str]:
    return st.lists(inner, min_size=least, max_size=3).map(lambda items: f"[{', '.join(items)}]")


def mapping(**keys: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    chosen = st.fixed_dictionaries({}, optional=keys)
    return chosen.map(lambda entries: "{" + ", ".join(f"{name}: {value}" for name, value in entries.items()) + "}")


def words(*listed_words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(listed_words)


parts = st.one_of(
    words("'0 5 * * *'", "'H H(0-7) * * MON-FRI'", "'@daily'", "{cron: '30 4 L * *'}", "'15 30 4 ? * 5L'"),
    st.builds("{{every: {}}}".format, durations),
    st.builds("{{every: {}, anchor: {}}}".format, durations, instants),
    st.builds("{{at: {}}}".format, listed(instants, 1)),
    st.builds(
        "{{calendar: {{{}: {}}}, at: '{:02}:30', start: {}}}".format,
        words("days", "weeks", "months", "years"),
        st.integers(1, 50),
        st.integers(0, 23),
        days,
    ),
)
SHARED = {
    "timezone": words("UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia"),
    "jitter": durations,
    "exclude": mapping(
        dates=listed(days), weekdays=listed(words("SAT", "sun")), holidays=listed(words("DE", "de-be", "'US-CA'"))
    ),
    "dst": mapping(gap=words("shift", "skip"), overlap=words("first", "second", "both")),
    "enabled": words("true", "false"),
    "env": st.dictionaries(words("A", "B_C", "'with blank'"), texts).map(
        lambda entries: "{" + ", ".join(f"{name}: {value}" for name, value in entries.items()) + "}"
    ),
    "cwd": words("null", "/srv", "./here"),
    "stdin": st.just("null") | texts,
    "success_codes": listed(st.integers(0, 255).map(str), 1),
    "queue": names,
    "priority": st.integers(-2, 2).map(str),
    "overlap": words("skip", "queue", "replace", "allow"),
    "max_runtime": durations,
    "kill_after": durations,
    "retries": mapping(
        max=st.integers(0, 1000).map(str),
        delay=words("0s", "1s"),
        factor=words("1", "2.5", "100"),
        max_delay=durations,
        jitter=words("true", "false"),
        on=words("null", "[75]", "[TimeoutError, 3]"),
    ),
    "on_worker_lost": words("retry", "fail"),
    "missed": mapping(
        policy=words("skip", "latest", "all", "hold"),
        grace=durations,
        start_within=st.just("null") | durations,
        within=st.just("null") | durations,
        max=st.integers(1, 100_000).map(str),
        order=words("oldest", "newest"),
        hold_for=durations,
    ),
    "description": texts,
    "owner": texts,
    "tags": listed(names),
    "limits": mapping(
        memory=words("512MB", "1MiB", "3TB"), cpu_time=durations, open_files=st.integers(8, 1_048_576).map(str)
    ),
    "queue_limit": st.integers(1, 1_000_000).map(str),
    "concurrency_key": st.just("null") | st.builds("{{key: {}, limit: {}}}".format, names, st.integers(1, 10_000)),
    "on_lease_lost": words("continue", "kill"),
    "alert": words("{}", "{late: null, failures: null}", "{late: 5m}", "{failures: 3}", "{late: 1s, failures: 1000}"),
}
OWN = {"hash_seed": names, "start": st.just("null"), "end": words("null", "2199-01-01T00:00:00Z")}
targets = st.one_of(
    st.builds("command: [{}, {}]".format, names, texts),
    st.builds("shell: {}".format, names),
    st.builds(
        "python: {}.jobs:run, args: {}".format,
        names.map(lambda name: name.translate({45: 95, 46: 95})),
        listed(json_values),
    ),
    st.builds(
        "http: {{url: 'https://billing.internal/{}', headers: {{X-A: {}, accept: '*/*'}}, method: {}, expect: {}, "
        "body: {}, expect_body: {}, timeout: {}}}".format,
        names,
        names,
        words("GET", "POST", "DELETE"),
        listed(st.integers(100, 599).map(str), 1),
        texts,
        words("null", "'^ok$'", "ok|done"),
        durations,
    ),
    st.builds(
        "celery: {{broker: 'redis://{}/0', task: {}, wait: {}}}, args: {}".format,
        names,
        names,
        words("true", "false"),
        listed(json_values),
    ),
)


def faults_of(text: str) -> list[str]:
    try:
        load_job_text(text)
    except InvalidJobFile as refused:
        return [str(fault) for fault in refused.problems]
    return []


@st.composite
def entries(draw: st.DrawFn, keys: dict[str, st.SearchStrategy[str]]) -> str:
    """A few of the keys, each with a right value."""
    chosen = draw(st.lists(st.sampled_from([*keys]), unique=True, max_size=5))
    return ", ".join(f"{name}: {draw(keys[name])}" for name in chosen)


@st.composite
def job_files(draw: st.DrawFn) -> str:
    defaults = draw(entries(SHARED))
    jobs = []
    for place in range(draw(st.integers(1, 2))):
        schedule = draw(parts | listed(parts, 1))
        more = draw(entries(SHARED | OWN))
        jobs.append(f"  {draw(names)}{place}: {{schedule: {schedule}, {draw(targets)}{', ' if more else ''}{more}}}\n")
    return f"version: 1\ndefaults: {{{defaults}}}\njobs:\n{''.join(jobs)}"


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(job_files())
def test_what_validate_takes_an_editor_takes(text: str) -> None:
    together = (
        *("has no tick", "no tick", "never fires", "max_delay is shorter", "follows elapsed time", "is for processes"),
        *("lets any number run", "on_lease_lost: continue contradicts"),
    )
    assert [fault for fault in faults_of(text) if not any(one in fault for one in together)] == []
    assert schema_faults(yaml_values(text)) == [], text


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(job_files(), st.sampled_from([key.name for key in JOB_KEYS]), st.sampled_from(["{oops: 1}", "!", "[{a: [b]}]"]))
def test_a_faulty_value_is_refused_by_both(text: str, key: str, value: str) -> None:
    spoilt = text + f"  spoilt: {{schedule: '0 5 * * *', shell: x, {key}: {value}}}\n"
    if key in ("args", "kwargs", "schedule", "shell"):
        spoilt = text + f"  spoilt: {{schedule: '0 5 * * *', shell: x, {key}x: {value}}}\n"
    assert faults_of(spoilt)
    assert editor_refuses(spoilt)
