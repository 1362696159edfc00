"""How a job stands at the moment an edit of it is planned: what the edit would meet. Values, free of SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class RunsInFlight:
    """Runs of one job under one revision that have not ended; ``since``: when the first of them was granted."""

    revision: int
    count: int
    since: datetime


@dataclass(frozen=True, slots=True)
class NamedTick:
    """A tick to come that is not to run, and who named it."""

    tick: datetime
    named_by: str


@dataclass(frozen=True, slots=True)
class JobStanding:
    """What an edit of this job now would meet.

    ``ahead``: claims written ahead that nobody was ever granted, which an edit withdraws; ``ahead_upto`` is the tick of
    the last. ``decided_upto``: the last tick ahead of now that an edit leaves as it is, because a worker has or had its
    claim or a skip record covers it; the edit counts from there. ``named``: ticks after it that are not to run
    (skip-next), which an edit takes back. ``proposals``: the missed ticks held for an operator.
    ``durations``: of its newest ended runs, newest first. ``made_by`` and ``made_at``: who made its present revision,
    and when; None where nobody asked.
    """

    job_id: int
    pause_reason: str | None = None
    ahead: int = 0
    ahead_upto: datetime | None = None
    decided_upto: datetime | None = None
    named: tuple[NamedTick, ...] = ()
    in_flight: tuple[RunsInFlight, ...] = ()
    proposals: int = 0
    held_ticks: int = 0
    durations: tuple[timedelta, ...] = ()
    made_by: str | None = None
    made_at: datetime | None = None

    @property
    def usual_duration(self) -> UsualDuration | None:
        """p50 and p95 of the durations; None where no run has ended."""
        if not self.durations:
            return None
        ordered = sorted(self.durations)
        return UsualDuration(len(ordered), _quantile(ordered, 50), _quantile(ordered, 95))


@dataclass(frozen=True, slots=True)
class UsualDuration:
    """How long a job's last ``runs`` runs took."""

    runs: int
    p50: timedelta
    p95: timedelta


@dataclass(frozen=True, slots=True)
class Standings:
    """The standing of jobs at one moment of the database, and the queues that workers serve then. ``inputs_id``: the
    inputs that the cluster's ticks are computed with, empty while no node has enrolled."""

    now: datetime
    jobs: Mapping[int, JobStanding] = field(default_factory=dict)
    served_queues: frozenset[str] = frozenset()
    workers: int = 0
    inputs_id: str = ""

    def of(self, job_id: int) -> JobStanding:
        """The job's standing; one of no claims and no runs where there is none."""
        return self.jobs.get(job_id) or JobStanding(job_id)


def _quantile(ordered: list[timedelta], percent: int) -> timedelta:
    """The smallest value that at least ``percent`` of them do not exceed."""
    return ordered[max((len(ordered) * percent + 99) // 100 - 1, 0)]
