"""What the audit finds: verdicts, differences, and the report that they add up to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum


class Verdict(StrEnum):
    MISSING = "missing"
    DOUBLE = "double"
    OVERDUE = "overdue"
    UNEXPECTED = "unexpected"
    MISCOUNTED = "miscounted"
    INPUTS_CHANGED = "inputs changed"
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
