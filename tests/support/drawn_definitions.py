"""Definitions of jobs as Hypothesis draws them: every key, and texts that YAML readers trip over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from sexton.claims import OnLeaseLost, OnWorkerLost, Overlap
from sexton.job_rules import (
    NO_LIMITS,
    AlertRules,
    CatchUpOrder,
    ConcurrencyKey,
    ExcludeRules,
    Limits,
    MissedPolicy,
    MissedRules,
    RetryRules,
)
from sexton.jobs import JobDefinition
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, PythonTarget, ShellTarget

HOSTILE = (
    *("yes", "No", "on", "~", "null", "", "=", "<<", "08", "0x1f", "1e3", "1.5", "-1", "1_000", "12:30", "12:30:45"),
    *(".inf", ".nan", "2026-01-01", "2026-01-01T00:00:00Z", "@daily", "* * * * *", "*/5", "&a", "*a", "!tag", "%x"),
    *(
        "- x",
        "-",
        "--",
        "---",
        "...",
        "? x",
        ": x",
        "a: b",
        "a:",
        "a #b",
        "#a",
        "[a",
        "{a",
        "a,b",
        "a]",
        "|",
        ">",
        "|-",
    ),
    *(" lead", "trail ", " ", "  a\n b\n", "\n", "\n\n", "\na", "a\n", "a\n\n", "a\n\n\nb", "a\n  ", "\ta\nb", "a\tb"),
    *(
        "a\r\nb",
        "a\rb",
        "'",
        '"',
        "''",
        "\\",
        '"\\"',
        "it's",
        'say "hi"',
        "a\\n",
        "\x01\x1b[31m\x7f",
        "\x85\u2028\u2029",
    ),
    *("\ufeff", "a\ufeffb", "\U0001f600", "ü\nß\n", "\u00a0x", "a\x00b"[:1], "x" * 2_000, "é" * 2_000, "a\n" * 50),
    *("${HOME}", "`id`", "--night", "-v", "/usr/bin/x", "./x", ".x", "x:y", "http://a/b?c=d&e", "a  b", "y", "NO"),
    *("'a'", '"a"', "a'b\"c", "\u3000", "%Y-%m-%d", "@", "`", "a - b", "a\n---\nb", "a\n...\nb", "--- a\nb"),
)
KEPT = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.one_of(
    st.sampled_from(HOSTILE), st.text(KEPT, max_size=40), st.text(st.sampled_from(" \n\ta'\"\\:#-|"), max_size=12)
)
SHORT = TEXTS.map(lambda text: text[:90])
NAMES = st.one_of(
    st.sampled_from(
        ["a", "08", "1e3", "yes", "NULL", "2026-01-01", "0x1f", "1.5", "9", "on", "nightly-billing", "x" * 100]
    ),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
)
INSTANTS = st.integers(0, 2_200_000_000_000).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
)
SPANS = st.integers(0, 10**9).map(lambda ms: timedelta(milliseconds=ms))
LONG_SPANS = SPANS.map(lambda span: span + timedelta(seconds=1))
DAYS = st.dates(date(1990, 1, 1), date(2040, 1, 1))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
ARGUMENTS = st.sampled_from(["start", "dates", "cron", "schedule", "shell", "yes", "_x", "k" * 1_200])


def _iso(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


PARTS = st.one_of(
    st.sampled_from(["0 2 * * *", "*/15 * * * *", "@daily", "30 0 2 ? * MON#2", "H H(0-3) * * *", "0 0 L * *"]).map(
        lambda text: {"cron": text}
    ),
    st.tuples(st.integers(1_000, 10**9), st.just("1970-01-01T00:00:00Z") | INSTANTS.map(_iso)).map(
        lambda pair: {"every_ms": pair[0], "anchor": pair[1]}
    ),
    st.tuples(st.sampled_from(["months", "years"]), st.integers(1, 40), DAYS, st.sampled_from(["clamp", "skip"])).map(
        lambda of: {"calendar": {of[0]: of[1]}, "at": "02:30:00", "start": of[2].isoformat(), "month_end": of[3]}
    ),
    st.tuples(
        st.sampled_from(["days", "weeks"]), st.integers(1, 40), DAYS, st.sampled_from(["00:00:00", "23:59:07"])
    ).map(lambda of: {"calendar": {of[0]: of[1]}, "at": of[3], "start": of[2].isoformat(), "month_end": "clamp"}),
    st.lists(INSTANTS, min_size=1, max_size=9).map(lambda listed: {"at": [_iso(one) for one in sorted(set(listed))]}),
)
HEADERS = st.dictionaries(
    st.sampled_from(["Accept", "X-A", "on", "1e3", "Authorization", "yes", "null", "!#$%&'*+.^_`|~"]),
    st.sampled_from(
        [
            text
            for text in HOSTILE
            if text.strip() == text and text.isascii() and text.isprintable() and "${" not in text
        ]
    ),
    max_size=3,
)
STATUS_CODES = st.lists(st.integers(100, 599), min_size=1, max_size=40).map(tuple)
REQUESTS = st.builds(
    HttpTarget,
    url=st.sampled_from(["https://billing.internal/run", "http://me:pw@[::1]:8080?a=b&c={d}#e", "http://x/'\",]:#"]),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    headers=HEADERS,
    body=st.none() | TEXTS,
    expect=STATUS_CODES,
    expect_body=st.none() | st.sampled_from(["ok", "on", r'"state": *"\w+"', "a|b\n", " #x", "^yes$"]),
    timeout=LONG_SPANS,
    redirects=st.sampled_from(["same-host", "all", "none"]),
)
TASKS = st.builds(
    CeleryTarget,
    broker=st.sampled_from(["redis://broker/0", "amqps://u:p@b:5671//v", "sqs://x"]),
    task=st.sampled_from(["billing.nightly", "on", "_x", "yes"]),
    args=st.lists(JSON, max_size=3).map(tuple),
    kwargs=st.dictionaries(ARGUMENTS, JSON, max_size=3),
    queue=SHORT.filter(bool),
    wait=st.booleans(),
    backend=st.none() | st.sampled_from(["redis://b/1", "rpc://x"]),
)
TARGETS = st.one_of(
    REQUESTS,
    TASKS,
    st.tuples(TEXTS.filter(bool), st.lists(TEXTS, max_size=12)).map(lambda argv: CommandTarget((argv[0], *argv[1]))),
    TEXTS.filter(bool).map(ShellTarget),
    st.tuples(st.lists(JSON, max_size=3), st.dictionaries(ARGUMENTS, JSON, max_size=3)).map(
        lambda given: PythonTarget("billing.jobs:nightly", tuple(given[0]), given[1])
    ),
)
CODES = st.lists(st.integers(0, 255), min_size=1, max_size=40).map(tuple)
MISSED = st.builds(
    MissedRules,
    policy=st.sampled_from(MissedPolicy),
    grace=SPANS,
    start_within=st.none() | LONG_SPANS,
    within=st.none() | LONG_SPANS,
    max=st.integers(1, 100_000),
    order=st.sampled_from(CatchUpOrder),
    hold_for=LONG_SPANS,
)
RETRIES = st.builds(
    RetryRules,
    max=st.integers(0, 9),
    delay=SPANS,
    factor=st.floats(1, 100),
    max_delay=SPANS.map(lambda span: span + timedelta(days=20)),
    jitter=st.booleans(),
    on=st.none() | st.lists(st.integers(0, 255) | st.sampled_from(["OSError", "a.b.C"]), min_size=1).map(tuple),
)
LIMITS = st.builds(
    Limits,
    memory=st.none() | st.sampled_from([10**6, 512 * 10**6, 2**21, 3 * 2**30, 1001 * 10**3, 1024 * 2**40]),
    cpu_time=st.none() | LONG_SPANS,
    open_files=st.none() | st.integers(8, 1_048_576),
)
ALERTS = st.builds(AlertRules, late=st.none() | LONG_SPANS, failures=st.none() | st.integers(1, 1_000))
KEYS = st.none() | st.builds(ConcurrencyKey, key=NAMES, limit=st.integers(1, 10_000))


def _as_files_can_say(definition: JobDefinition) -> JobDefinition:
    """A target that starts no process has nothing that only processes have, and `allow` has no concurrency key."""
    if isinstance(definition.target, HttpTarget | CeleryTarget):
        definition = replace(definition, env={}, cwd=None, stdin=None, success_codes=(0,), limits=NO_LIMITS)
    return replace(definition, concurrency_key=None) if definition.overlap is Overlap.ALLOW else definition


EXCLUDED = st.builds(
    ExcludeRules,
    dates=st.lists(DAYS, max_size=30, unique=True).map(lambda days: tuple(sorted(days))),
    weekdays=st.sets(st.integers(0, 6), max_size=3).map(lambda days: tuple(sorted(days))),
    holidays=st.sets(st.sampled_from(["NO", "DE", "DE-BE"]), max_size=2).map(lambda codes: tuple(sorted(codes))),
)
DEFINITIONS = st.builds(
    JobDefinition,
    name=NAMES,
    schedule_parts=st.lists(PARTS, min_size=1, max_size=3).map(tuple),
    target=TARGETS,
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "Etc/GMT+5"]),
    jitter=SPANS,
    hash_seed=st.none() | SHORT.filter(bool),
    enabled=st.booleans(),
    env=st.dictionaries(SHORT.filter(lambda text: text and "=" not in text), TEXTS, max_size=5),
    cwd=st.none() | SHORT.filter(bool),
    stdin=st.none() | TEXTS,
    success_codes=CODES,
    queue=NAMES,
    priority=st.integers(-2, 2),
    overlap=st.sampled_from(Overlap),
    queue_limit=st.integers(1, 1_000_000),
    concurrency_key=KEYS,
    limits=LIMITS,
    max_runtime=LONG_SPANS,
    kill_after=SPANS,
    retries=RETRIES,
    on_worker_lost=st.sampled_from(OnWorkerLost),
    on_lease_lost=st.sampled_from(OnLeaseLost),
    missed=MISSED,
    description=TEXTS,
    owner=SHORT,
    tags=st.lists(SHORT.filter(bool), max_size=12).map(tuple),
    alert=ALERTS,
    renamed_from=st.none() | st.just("what-it-was"),
).map(_as_files_can_say)
