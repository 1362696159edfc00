"""What people write who know another scheduler, or an older habit, and what this format writes in its place.

A remedy is never refused itself: what is proposed has been read by the same readings as any value, and every row is
applied by the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Meant:
    """``paths``: where the value may belong, the likeliest first. ``example``: a value for the first of them, told
    where the author's own does not fit. ``advice``: the sentence that is told instead, where the author's value cannot
    be carried over."""

    paths: tuple[_Path, ...] = ()
    example: Any = None
    advice: str = ""


def _is(*path: str, example: Any = None, or_else: Iterable[_Path] = ()) -> Meant:
    return Meant((path, *or_else), example)


_AT = ["2026-12-24T18:00:00+01:00"]
_SCRIPT = _is("shell", example="report --all", or_else=[("command",)])
_PROGRAM = _is("command", example=["report", "--all"], or_else=[("shell",)])
_ALERTS = Meant(
    (("alert", "failures"),),
    3,
    "who is told, and how, is a setting of the nodes; when is written in the job, e.g. alert: {failures: 3}",
)
_NO_ORDER = Meant(advice="jobs know nothing of each other; let one command start the other")
_USER = Meant(advice="a job runs as its worker's user; choose the worker by 'queue'")
_QUEUE = Meant(advice="workers are chosen by 'queue': run those with 'sexton worker --queue NAME'")
_OVERLAP = Meant((("overlap",),), "skip", "write overlap: skip, queue, replace or allow")
_PAUSE = Meant((("enabled",),), False, "'enabled' says it, and false is a pause")
_LATEST = _is("missed", "policy", example="latest")
_LIMITS = Meant((("limits",),), {"memory": "512MB", "cpu_time": "10m", "open_files": 1024})
_NO_SHARES = Meant(
    advice="limits: {cpu_time: 10m} ends a run that used more; for a lower share start it with 'nice' in 'command'"
)

_ROWS: dict[str, Meant] = {
    "cron crontab cronexpression expression when timing cronschedule": _is("schedule", example="0 2 * * *"),
    "interval every frequency period repeat repeatevery": _is("schedule", "every", example="5m"),
    "at date runat rundate": _is("schedule", "at", example=_AT),
    "oncalendar": _is("schedule", example="0 2 * * *"),
    "calendar": Meant((("schedule",),), {"calendar": {"months": 1}, "at": "02:30", "start": "2026-01-31"}),
    "timeout timelimit deadline executiontimeout activedeadlineseconds maxduration maxtime runtime": _is(
        "max_runtime", example="15m"
    ),
    "killtimeout gracefultimeout terminationgraceperiodseconds": _is("kill_after", example="10s"),
    "tz zone crontz timezonename": _is("timezone", example="Europe/Berlin"),
    "cmd program exec entrypoint execstart argv": _PROGRAM,
    "script bash sh run steps": _SCRIPT,
    "function callable func entry task module": _is("python", example="billing.jobs:nightly"),
    "params parameters arguments": _is("kwargs", example={"name": "value"}, or_else=[("args",)]),
    "retry attempts maxretries maxattempts backofflimit retrycount restarts": _is("retries", "max", example=3),
    "retrydelay backoff retryinterval": _is("retries", "delay", example="10s"),
    "misfiregracetime startingdeadlineseconds gracetime misfirethreshold": _is("missed", "grace", example="60s"),
    "maxinstances concurrencypolicy concurrency maxactiveruns allowoverlap parallelism": _OVERLAP,
    "coalesce misfirepolicy misfire persistent": _LATEST,
    "catchup backfill": _is("missed", "policy", example="all"),
    "dependson needs requires after before upstream downstream": _NO_ORDER,
    "onfailure onerror onsuccess notify notification notifications mailto email mail slack alerts": _ALERTS,
    "user runas username uid": _USER,
    "worker workers host hosts node nodes server pool": _QUEUE,
    "suspend suspended disabled disable paused pause inactive": _PAUSE,
    "active state enable": _is("enabled", example=True),
    "environment environ envvars variables vars": _is("env", example={"NAME": "value"}),
    "workdir workingdir workingdirectory dir directory chdir folder": _is("cwd", example="/srv/billing"),
    "input": _is("stdin", example="text"),
    "comment desc summary title note": _is("description", example="text"),
    "author maintainer team contact": _is("owner", example="billing"),
    "tag label labels category": _is("tags", example=["nightly"]),
    "exitcodes successexitstatus successexitcodes okcodes": _is("success_codes", example=[0]),
    "splay randomdelay randomizeddelaysec spread": _is("jitter", example="30m"),
    "startdate startat notbefore begin from": _is("start", example=_AT[0]),
    "enddate endat notafter until": _is("end", example=_AT[0]),
    "excludedates skipdates exclusions": _is("exclude", "dates", example=["2026-12-25"]),
    "publicholidays": _is("exclude", "holidays", example=["DE"]),
    "seed": _is("hash_seed", example="text"),
    "uri webhook endpoint": _is("http", "url", example="https://billing.internal/run"),
    "request httprequest": _is("http", example={"url": "https://billing.internal/run"}),
    "celerytask": _is("celery", example={"broker": "redis://broker/0", "task": "billing.nightly"}),
    "mutex lock semaphore concurrencygroup": _is("concurrency_key", "key", example="warehouse"),
    "image container docker": Meant(advice="a job is a process on its worker; let 'command' start the container"),
    "mem memorylimit maxmemory memorymax limitas": _is("limits", "memory", example="512MB"),
    "limitcpu maxcputime": _is("limits", "cpu_time", example="10m"),
    "nofile maxfiles limitnofile maxopenfiles": _is("limits", "open_files", example=1024),
    "resources ulimit ulimits rlimits": _LIMITS,
    "cpu nice": _NO_SHARES,
    "slots maxslots": Meant(
        advice="how many run at once is set for a queue (sexton queues set NAME --slots 4) or a 'concurrency_key'"
    ),
    "rate ratelimit throttle throughput maxpersecond": Meant(
        advice="how many start a second is set for a queue: sexton queues set NAME --rate 10/s"
    ),
    "umask": Meant(advice="set it in 'shell': umask 077; report --all"),
    "lease": Meant(advice="it is a setting of the cluster: sexton settings set lease 30s"),
    "heartbeat": Meant(advice="it is a setting of the cluster: sexton settings set heartbeat 10s"),
    "anchor": Meant(advice="it goes into 'schedule', beside every: {every: 15m, anchor: 2026-01-01T00:00:00Z}"),
    "monthend": Meant(advice="it goes into 'schedule', beside calendar"),
    "max": _is("retries", "max", example=3, or_else=[("missed", "max")]),
    "name id jobname jobid": Meant(advice="a job's name is its key under 'jobs'"),
    "oldname previousname formerly": _is("renamed_from", example="old-name"),
}

MEANT: Mapping[str, Meant] = {word: meant for words, meant in _ROWS.items() for word in words.split()}
"""By name, in small letters and without '-', '_' and blanks."""


def meant_by(name: str) -> Meant | None:
    """What a key of this name is here."""
    return MEANT.get(re.sub(r"[-_ ]", "", name[:100].lower()))
