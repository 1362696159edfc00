"""What a trial of an outage expects of missed ticks: jobs due every second, one per policy, and each one's rule.

`check_decisions` judges every decision that the ledger lists by the rules of `docs/missed-ticks.md`, reckoned here a
second time: ticks fall on whole seconds and a grace is whole seconds too, so the numbers are exact. `figures` is the
line that `make soak` prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from sexton.claims import Origin
from sexton.decisions import Cause
from sexton.store.tables import claims, decisions, jobs, runs
from tests.support.trial import Trial

SECOND = timedelta(seconds=1)
GRACE = 3  # whole seconds: of ticks every second, as many as lie within it, one of them just now or up to a second ago
POLICIES = ("skip", "latest", "all", "hold")
COUNTS = ("missed", "fired", "merged", "skipped", "expired", "held")


def jobs_text(**more: str) -> str:
    """A job file: a job for each policy, named like it, and others given as ``name="policy"``."""
    parts = [
        f"""
  {name}:
    schedule: "* * * * * *"
    command: ["true"]
    overlap: allow
    missed: {{policy: {policy}, grace: {GRACE}s, max: 1000, start_within: 1h}}"""
        for name, policy in {**dict(zip(POLICIES, POLICIES, strict=True)), **more}.items()
    ]
    return f"version: 1\njobs:{''.join(parts)}\n"


def expected(policy: str, missed: int) -> dict[str, int]:
    """What becomes of so many ticks in a row, the newest due less than a second ago."""
    in_grace = min(missed, GRACE)
    return {
        "skip": {"fired": in_grace, "skipped": missed - in_grace},
        "latest": {"fired": 1, "merged": missed - 1},
        "all": {"fired": missed},
        "hold": {"fired": in_grace, "held": missed - in_grace},
    }[policy]


def check_decisions(trial: Trial) -> Counter[str]:
    """Every decision about the jobs of ``POLICIES`` is the expected one; the sums of what became of their ticks."""
    sums: Counter[str] = Counter()
    for row in decided(trial):
        wanted = dict.fromkeys(COUNTS, 0) | expected(row.policy, row.missed) | {"missed": row.missed}
        assert {name: getattr(row, name) for name in COUNTS} == wanted, row
        sums.update(wanted)
    return sums


def decided(trial: Trial, term: int | None = None, names: Sequence[str] = POLICIES) -> list[Any]:
    """The decisions of passes over what these jobs missed (none named: all), of one term or of all, oldest first."""
    query = (
        select(decisions, jobs.c.name)
        .join(jobs, jobs.c.job_id == decisions.c.job_id)
        .where(decisions.c.missed > 0, decisions.c.cause.in_([Cause.TAKEOVER, Cause.LATE_LEADER]))
        .order_by(decisions.c.decided_at, jobs.c.name)
    )
    if names:
        query = query.where(jobs.c.name.in_(names))
    if term is not None:
        query = query.where(decisions.c.term == term)
    with trial.store.reads.snapshot() as connection:
        return list(connection.execute(query).all())


def missed_by(trial: Trial, after: datetime, upto: datetime) -> dict[str, int]:
    """By job, the ticks of this stretch that passes over missed ticks decided; each job's decisions overlap nowhere."""
    found: Counter[str] = Counter()
    for row in decided(trial):
        begin, end = max(row.after, after), min(row.upto, upto)
        if begin < end:
            found[row.name] += (end - begin) // SECOND
    return dict(found)


def lateness(trial: Trial, since: datetime, *origins: Origin) -> list[float]:
    """Milliseconds by which runs of ticks after this instant started late, sorted."""
    query = (
        select(runs.c.lateness_ms)
        .join(claims, (claims.c.job_id == runs.c.job_id) & (claims.c.scheduled_at == runs.c.scheduled_at))
        .where(
            claims.c.scheduled_at > since, claims.c.origin.in_([*map(int, origins)]), runs.c.lateness_ms.is_not(None)
        )
    )
    with trial.store.reads.snapshot() as connection:
        return sorted(connection.execute(query).scalars())


def figures(trial: Trial, since: datetime) -> str:
    """What was decided since, how late what ran on schedule began, and what the audit says of it all."""
    sums: Counter[str] = Counter()
    for row in decided(trial, names=()):
        if row.decided_at > since:
            sums.update({name: getattr(row, name) for name in COUNTS})
    told = ", ".join(f"{sums[name]} {name}" for name in COUNTS[1:] if sums[name])
    late = lateness(trial, since, Origin.SCHEDULE)
    spread = f"p50 {late[len(late) // 2]:.0f}, p99 {late[len(late) * 99 // 100]:.0f} ms" if late else "none ran"
    report = trial.audit()
    return (
        f"{sums['missed']} ticks missed: {told or 'nothing to decide'}; on schedule started late by {spread}; "
        f"audit: {report['due']} due, {report['decided']} decided, {len(report['differences'])} differences"
    )
