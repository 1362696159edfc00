"""The keys below `http`, `celery`, `limits`, `concurrency_key` and `alert`."""

from __future__ import annotations

from datetime import timedelta

from sexton.jobfiles.gap_readings import Headers, WithSecrets, template
from sexton.jobfiles.http_readings import HEADER_NAME, HEADER_VALUE, Address, Expression, Unrepeated
from sexton.jobfiles.key_tables import Key
from sexton.jobfiles.readings import Choice, Flag, ListOf, MapOf, OrNull, Text, Whole
from sexton.jobfiles.size_readings import Size
from sexton.jobfiles.time_readings import Duration

_SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
_REDIRECTS = ("same-host", "all", "none")


def _celery_address(whose: str) -> WithSecrets:
    address = Text(
        longest=8_192,
        pattern=r"[a-z][a-z0-9+.-]*://\S*|\$\{secret:[^}\s]*\}\S*",
        wanted=f"{whose} address, such as redis://broker/0",
    )
    return WithSecrets(Unrepeated(address))


HTTP_KEYS = (
    Key("method", Choice({method: method for method in _METHODS}), "POST", "The method of the request."),
    Key("url", template(Unrepeated(Address())), "", "Where to.", example="https://billing.internal/run"),
    Key(
        "headers",
        Headers(MapOf(template(Unrepeated(HEADER_VALUE)), HEADER_NAME, "a name of a header", longest=100)),
        "{}",
        "Headers of the request, beside those that carry job, tick, attempt and token.",
    ),
    Key("body", OrNull(template(Text(longest=1_048_576))), "null", "What is sent."),
    Key(
        "expect",
        ListOf(Whole(100, 599), shortest=1, longest=100, wanted="a list of status codes"),
        "[200, 202, 204]",
        "Status codes that count as success.",
    ),
    Key(
        "expect_body",
        OrNull(Expression()),
        "null",
        "A regular expression that must be found in the first 64 KiB of the answer.",
    ),
    Key("timeout", Duration(least=_MILLISECOND), "30s", "How long to wait for the answer."),
    Key(
        "redirects",
        Choice({word: word for word in _REDIRECTS}),
        "same-host",
        "Which redirects are followed: those to the `same-host`, `all`, or `none`.",
    ),
)

CELERY_KEYS = (
    Key("broker", _celery_address("a broker's"), "", "The address of the broker.", example="redis://broker/0"),
    Key(
        "task",
        Text(longest=400, pattern=r"[A-Za-z_][A-Za-z0-9_.-]*", wanted="a task's name, such as billing.nightly"),
        "",
        "The name of the task.",
        example="billing.nightly",
    ),
    Key("queue", Text(longest=200, shortest=1, wanted="a queue's name"), "celery", "The queue of Celery."),
    Key("wait", Flag(), "false", "Whether the run lasts until the task has ended."),
    Key(
        "backend",
        OrNull(_celery_address("a result backend's")),
        "null",
        "Where results are, for `wait: true`; null is the broker, if it keeps results too.",
    ),
)

LIMIT_KEYS = (
    Key("memory", Size("1MB", "1024TiB"), "", "Address space of each process of a run.", example="512MB"),
    Key("cpu_time", Duration(least=_SECOND), "", "Processor time of each process of a run.", example="10m"),
    Key("open_files", Whole(8, 1_048_576), "", "Open files of each process of a run.", example="1024"),
)

CONCURRENCY_KEYS = (
    Key(
        "key",
        Text(
            longest=100,
            pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
            wanted="a name: letters, digits, '.', '_' and '-', at most 100, the first a letter or digit",
        ),
        "",
        "The group's name.",
        example="warehouse",
    ),
    Key("limit", Whole(1, 10_000), "1", "How many of the group may run at once."),
)

ALERT_KEYS = (
    Key(
        "late",
        OrNull(Duration(least=_SECOND)),
        "null",
        "A tick that has not started this long after it fell due; null: within its start_within or grace.",
    ),
    Key("failures", OrNull(Whole(1, 1_000)), "null", "So many failures in a row; null: never."),
)
