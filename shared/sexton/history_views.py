"""What happened to jobs' definitions, as `history` tells it. Values, free of SQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sexton.jobs import JobDefinition


class HistoryKind(StrEnum):
    """What an entry is about; the words are those of the screens."""

    CREATED = "created"
    REVISED = "revised"
    RENAMED = "renamed"
    RETIRED = "retired"
    PAUSED = "paused"
    RESUMED = "resumed"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of one job. ``job``: its name from then on. A revision has its definition, the one before it (None for
    the first) and the interval ``(in_force_since, in_force_until]`` in which its ticks count."""

    at: datetime
    who: str
    kind: HistoryKind
    job_id: int
    job: str
    why: str = ""
    revision: int | None = None
    in_force_since: datetime | None = None
    in_force_until: datetime | None = None
    definition: JobDefinition | None = None
    before: JobDefinition | None = None


@dataclass(frozen=True, slots=True)
class History:
    """Entries, newest first; ``is_whole`` False where older ones were left out."""

    entries: tuple[HistoryEntry, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class PastRevision:
    """A revision of a job as it was, and the job as it is. ``hash_seed``: what H and jitter hashed then, None where
    nothing did."""

    job_id: int
    name: str
    is_retired: bool
    newest: int
    revision: int
    definition: JobDefinition
    hash_seed: str | None
    hash_seed_now: str
    is_paused: bool
    is_quarantined: bool
    current: JobDefinition
