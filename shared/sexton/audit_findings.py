"""What the audit finds: verdicts, differences, and the report that they add up to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sexton.bulk_ticks import instant_of, micros_of

_TOLD = 100  # findings of one verdict that a job has told one by one


class Verdict(StrEnum):
    MISSING = "missing"
    DOUBLE = "double"
    OVERDUE = "overdue"
    UNEXPECTED = "unexpected"
    MISCOUNTED = "miscounted"
    INPUTS_CHANGED = "inputs changed"
    BROKEN = "broken"
    PENDING = "pending"
    PRUNED = "pruned"

    @property
    def fails(self) -> bool:
        return self not in (Verdict.PENDING, Verdict.PRUNED)


@dataclass(frozen=True, slots=True)
class Window:
    """What is judged: ticks in ``(after, upto]``. ``now`` is the snapshot's database time."""

    after: datetime
    upto: datetime
    now: datetime
    pruned_before: datetime | None
    inputs_id: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One finding about one job: ``count`` ticks, from ``at`` on."""

    job: str
    verdict: Verdict
    at: datetime
    count: int
    detail: str


@dataclass(frozen=True, slots=True)
class JobAudit:
    job: str
    due: int  # ticks that fell due in the window, by recomputation
    decided: int
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class AuditReport:
    """The whole audit; ``is_clean`` is what the exit code says."""

    window: Window
    jobs: int = 0
    due: int = 0
    decided: int = 0
    differences: list[Difference] = field(default_factory=list)

    def add(self, audit: JobAudit) -> None:
        self.jobs += 1
        self.due += audit.due
        self.decided += audit.decided
        self.differences.extend(audit.differences)

    def count(self, verdict: Verdict) -> int:
        return sum(difference.count for difference in self.differences if difference.verdict is verdict)

    def counts(self) -> dict[str, int]:
        """Every verdict's word with how many ticks it was given to."""
        return {verdict.value: self.count(verdict) for verdict in Verdict}

    @property
    def is_clean(self) -> bool:
        return not any(difference.verdict.fails for difference in self.differences)


DECIDED_WITHIN = timedelta(seconds=5)
"""With a grace of 0s a tick would be overdue in the instant it falls due; no leader decides faster than at once."""


@dataclass(slots=True)
class _Finding:
    first: Difference
    last: int
    count: int


class Findings:
    """Differences of one job; what follows one another for one reason is one, and what is beyond telling is summed."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._by_verdict: dict[Verdict, list[_Finding]] = {}

    def add(self, verdict: Verdict, at: int, count: int, detail: str) -> None:
        told = self._by_verdict.setdefault(verdict, [])
        if told and told[-1].first.detail == detail:
            told[-1].last = at
            told[-1].count += count
        elif len(told) < _TOLD:
            told.append(_Finding(Difference(self._job, verdict, instant_of(at), count, detail), at, count))
        else:
            told[-1].first = replace(told[-1].first, detail="and more of the kind")
            told[-1].last = at
            told[-1].count += count

    def told(self) -> tuple[Difference, ...]:
        findings = [_told(one) for told in self._by_verdict.values() for one in told]
        return tuple(sorted(findings, key=lambda difference: difference.at))


def _told(finding: _Finding) -> Difference:
    first = finding.first
    if micros_of(first.at) == finding.last:
        return replace(first, count=finding.count)
    last = f"{instant_of(finding.last):%Y-%m-%dT%H:%M:%SZ}"
    return replace(first, count=finding.count, detail=f"{first.detail}; the last of them {last}")
