"""Every key of a job file, in one table: how it is read, what it is by default, what it means, and whether `defaults`
may hold it. Readings, messages, the JSON Schema for editors and what exports leave out all come from here.

The order is that of the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sexton.claims import OnLeaseLost, OnWorkerLost, Overlap
from sexton.job_rules import CatchUpOrder, MissedPolicy
from sexton.jobfiles.between_keys import TARGETS
from sexton.jobfiles.day_readings import Day, Region, Weekday
from sexton.jobfiles.gap_readings import WithSecrets
from sexton.jobfiles.http_readings import Unrepeated
from sexton.jobfiles.inner_keys import ALERT_KEYS, CELERY_KEYS, CONCURRENCY_KEYS, HTTP_KEYS, LIMIT_KEYS
from sexton.jobfiles.key_tables import Key, TableOf, keys_meant, place_of, read_keys, unknown_key
from sexton.jobfiles.nodes import Node, Sequence
from sexton.jobfiles.problems import FileProblems
from sexton.jobfiles.readings import (
    BAD,
    Choice,
    Decimal,
    Flag,
    Json,
    JsonSchema,
    ListOf,
    MapOf,
    OrNull,
    Text,
    Whole,
)
from sexton.jobfiles.schedule_reading import ScheduleParts, ZoneName
from sexton.jobfiles.time_readings import Duration, Instant
from sexton.wall_clock_ticks import GapRule, OverlapRule

__all__ = [
    "JOB_KEYS",
    "MAPPINGS",
    "NAME_PATTERN",
    "NAME_WANTED",
    "TARGETS",
    "Key",
    "TableOf",
    "keys_meant",
    "place_of",
    "read_keys",
    "unknown_key",
]

NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
NAME_WANTED = "a name: ASCII letters, digits, '.', '_' and '-', at most 100, the first a letter or digit"

_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_JITTER = timedelta(days=20)  # a column of milliseconds has to hold it
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DOTTED = rf"{_NAME}(?:\.{_NAME})*"


@dataclass(frozen=True, slots=True)
class _CodeOrName:
    """An exit code, or the name of an exception."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        silent = FileProblems(problems.file)
        code = Whole(0, 255).read(node, key, silent)
        return code if code is not BAD else self._name.read(node, key, problems)

    @property
    def _name(self) -> Text:
        wanted = "an exit code (0 to 255) or an exception's name"
        return Text(longest=200, pattern=r"[A-Za-z_][A-Za-z0-9_.]*", wanted=wanted)

    def schema(self) -> JsonSchema:
        return {"anyOf": [Whole(0, 255).schema(), self._name.schema()]}


@dataclass(frozen=True, slots=True)
class _ProgramAndArguments:
    """A list of texts whose first is not empty."""

    def read(self, node: Node, key: str, problems: FileProblems) -> Any:
        argv = self._texts.read(node, key, problems)
        if argv is BAD or argv[0]:
            return argv
        first = node.items[0] if isinstance(node, Sequence) else node
        problems.add(first, f"{key}[0] is empty; write a program, such as {key}: [billing, --night]")
        return BAD

    @property
    def _texts(self) -> ListOf:
        wanted = "a list of program and arguments, or use 'shell' for a text"
        return ListOf(Text(longest=131_072), shortest=1, wanted=wanted, takes_one=False)

    def schema(self) -> JsonSchema:
        return self._texts.schema() | {"prefixItems": [{"type": "string", "minLength": 1}]}


RETRY_KEYS = (
    Key("max", Whole(0, 1_000), "0", "How many times a failed run is tried again."),
    Key("delay", Duration(), "10s", "How long before the first retry."),
    Key("factor", Decimal(1, 100), "2", "What each further delay is multiplied by."),
    Key("max_delay", Duration(), "10m", "The longest delay."),
    Key("jitter", Flag(), "true", "Spread the delays, so that what failed together does not return together."),
    Key(
        "on",
        OrNull(ListOf(_CodeOrName(), shortest=1, longest=100)),
        "null",
        "Exit codes or exception names to retry on; null is every failure.",
    ),
)

MISSED_KEYS = (
    Key(
        "policy",
        Choice({policy.value: policy for policy in MissedPolicy}),
        "latest",
        "Beyond grace: `skip` them; fire the `latest` and merge the others into it; fire `all`; `hold` them for an "
        "operator.",
    ),
    Key("grace", Duration(), "60s", "A tick found not later than this still fires, marked late."),
    Key(
        "start_within",
        OrNull(Duration(least=_SECOND)),
        "null",
        "A claim that no worker takes within this is missed too; null is the grace.",
    ),
    Key(
        "within",
        OrNull(Duration(least=_SECOND)),
        "null",
        "Older ticks expire; null is 1d, under `latest` at least one period of the schedule.",
    ),
    Key("max", Whole(1, 100_000), "100", "Of what would fire at once, the oldest beyond this expire."),
    Key(
        "order",
        Choice({order.value: order for order in CatchUpOrder}),
        "oldest",
        "Under `all`: the `oldest` or the `newest` first.",
    ),
    Key("hold_for", Duration(least=_SECOND), "7d", "An unanswered proposal lapses after this."),
)

DST_KEYS = (
    Key(
        "gap",
        Choice({rule.value: rule for rule in GapRule}),
        "shift",
        "A time that the clock jumps over: `shift` it to the first instant after the jump, or `skip` it.",
    ),
    Key(
        "overlap",
        Choice({rule.value: rule for rule in OverlapRule}),
        "first",
        "A time that the clock shows twice: fire the `first` time, the `second`, or `both`.",
    ),
)

EXCLUDE_KEYS = (
    Key("dates", ListOf(Day(), longest=5_000, wanted="a list of dates such as [2026-12-25]"), "[]", "Single days."),
    Key(
        "weekdays",
        ListOf(Weekday(), longest=6, wanted="a list of weekdays such as [SAT, SUN]"),
        "[]",
        "Days of the week: SUN to SAT.",
    ),
    Key(
        "holidays",
        ListOf(Region(), longest=20, wanted="a list of regions such as [DE-BE]"),
        "[]",
        "Public holidays of regions: DE, or DE-BE for a part of it, as the `holidays` package spells them.",
    ),
)

_OVERLAPS = (Overlap.SKIP, Overlap.QUEUE, Overlap.REPLACE, Overlap.ALLOW)

_WHEN_KEYS = (
    Key(
        "schedule",
        ScheduleParts(),
        "",
        "When: a cron string, a mapping with cron, every, calendar or at, or a list of these: one set of ticks.",
        own=True,
    ),
    Key("timezone", ZoneName(), "UTC", "An IANA name; printed by `validate`, `plan` and `next`."),
    Key("start", OrNull(Instant()), "null", "No tick before this instant."),
    Key("end", OrNull(Instant()), "null", "No tick at or after this instant."),
    Key(
        "exclude",
        TableOf(EXCLUDE_KEYS, "exclude"),
        "{}",
        "Days without ticks, by the local date of the tick.",
        example="{dates: ['2026-12-25'], weekdays: [SAT, SUN], holidays: [DE-BE]}",
    ),
    Key(
        "jitter",
        Duration(most=_LONGEST_JITTER),
        "0s",
        "Each tick becomes available up to this much later, by a delay fixed per job and tick.",
    ),
    Key(
        "dst",
        TableOf(DST_KEYS, "dst"),
        "{gap: shift, overlap: first}",
        "What fixed times do in the nights the clocks change. Refused where minute or hour starts with `*`.",
    ),
    Key(
        "hash_seed",
        Text(longest=200, shortest=1),
        "",
        "What `H` and jitter hash; by default the job's first name, kept by renamed_from.",
        own=True,
    ),
    Key("enabled", Flag(), "true", "`false` is a pause by file."),
)

_WHAT_KEYS = (
    Key(
        "command",
        _ProgramAndArguments(),
        "",
        "A program and its arguments, started without a shell.",
        own=True,
        example="[billing, --night]",
    ),
    Key("shell", Text(longest=262_144, shortest=1, wanted="a script for /bin/sh"), "", "For `/bin/sh -c`.", own=True),
    Key(
        "python",
        Text(
            longest=400,
            pattern=rf"{_DOTTED}:{_DOTTED}",
            wanted="a module and a function, such as billing.jobs:nightly",
        ),
        "",
        "A function as package.module:function, called with `args` and `kwargs`.",
        own=True,
        example="billing.jobs:nightly",
    ),
    Key(
        "args",
        ListOf(Json(), wanted="a list of JSON values"),
        "[]",
        "Arguments of the Python function or the Celery task: JSON values.",
        own=True,
    ),
    Key(
        "kwargs",
        MapOf(Json(), _NAME, "a name of an argument"),
        "{}",
        "Named arguments of the Python function or the Celery task: JSON values.",
        own=True,
    ),
    Key(
        "http",
        TableOf(HTTP_KEYS, "http", required=("url",)),
        "",
        "An HTTP request, sent by the worker.",
        own=True,
    ),
    Key(
        "celery",
        TableOf(CELERY_KEYS, "celery", required=("broker", "task")),
        "",
        "A task of a Celery deployment, sent to its broker.",
        own=True,
    ),
    Key(
        "env",
        MapOf(WithSecrets(Unrepeated(Text(longest=131_072))), r"[^=\x00]{1,200}", "a name of a variable"),
        "{}",
        "Added to a clean environment; values are strings, and may hold `${secret:NAME}`.",
    ),
    Key("cwd", OrNull(Text(longest=4_096, shortest=1, wanted="a folder")), "null", "The folder to start in."),
    Key("stdin", OrNull(Text(longest=1_048_576)), "null", "What commands and shell scripts read."),
    Key(
        "success_codes",
        ListOf(Whole(0, 255), shortest=1, longest=256, wanted="a list of exit codes"),
        "[0]",
        "Exit codes that count as success.",
    ),
    Key(
        "limits",
        TableOf(LIMIT_KEYS, "limits"),
        "{}",
        "What each process of a run may use: address space, processor time, open files.",
    ),
)

_HOW_KEYS = (
    Key("queue", Text(longest=100, pattern=NAME_PATTERN, wanted=NAME_WANTED), "default", "Which workers may pull it."),
    Key("priority", Whole(-2, 2), "0", "-2 to 2, higher first."),
    Key(
        "overlap",
        Choice({overlap.name.lower(): overlap for overlap in _OVERLAPS}),
        "skip",
        "A tick that finds the job still running: `skip` it, `queue` it, `replace` the run by it, or `allow` both.",
    ),
    Key(
        "queue_limit",
        Whole(1, 1_000_000),
        "100",
        "Under `overlap: queue`: how many may wait; the oldest beyond it end skipped.",
    ),
    Key(
        "concurrency_key",
        OrNull(TableOf(CONCURRENCY_KEYS, "concurrency_key", required=("key",))),
        "null",
        "One group of slots across jobs; overlap then speaks of the key.",
    ),
    Key("max_runtime", Duration(least=_MILLISECOND), "24h", "Then SIGTERM to its process group."),
    Key("kill_after", Duration(), "10s", "From SIGTERM to SIGKILL."),
    Key("retries", TableOf(RETRY_KEYS, "retries"), "{}", "How failed runs are tried again."),
    Key(
        "on_worker_lost",
        Choice({"retry": OnWorkerLost.RETRY, "fail": OnWorkerLost.FAIL}),
        "retry",
        "A run whose worker vanished: `retry` (at least once) or `fail` (at most once).",
    ),
    Key(
        "on_lease_lost",
        Choice({rule.value: rule for rule in OnLeaseLost}),
        "continue",
        "A run whose worker could not renew its lease: `continue` or `kill`; kill is implied by on_worker_lost: fail, "
        "overlap: replace and concurrency_key.",
    ),
)

_ABOUT_KEYS = (
    Key("missed", TableOf(MISSED_KEYS, "missed"), "{}", "What becomes of ticks that are found after they fell due."),
    Key("description", Text(longest=10_000), "''", "Shown beside the name."),
    Key("owner", Text(longest=200), "''", "Shown, and filtered by."),
    Key("tags", ListOf(Text(longest=100, shortest=1), longest=100, wanted="a list of texts"), "[]", "Filtered by."),
    Key(
        "alert",
        TableOf(ALERT_KEYS, "alert"),
        "{late: null, failures: null}",
        "When somebody is told; where to is a setting of the nodes.",
    ),
    Key(
        "renamed_from",
        OrNull(Text(longest=100, pattern=NAME_PATTERN, wanted=NAME_WANTED)),
        "null",
        "Keeps the cursor, the history and the hash seed of the old name.",
        own=True,
    ),
)

JOB_KEYS: tuple[Key, ...] = (*_WHEN_KEYS, *_WHAT_KEYS, *_HOW_KEYS, *_ABOUT_KEYS)

MAPPINGS = ("env", "limits", "concurrency_key", "retries", "missed", "dst", "exclude", "alert")  # these merge by key
