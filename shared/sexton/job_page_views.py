"""A job opened, part by part, each as a screen reads it by itself: values, free of SQL and of presentation.

Instants are UTC. Texts are untrusted: whoever draws them cleans them first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sexton.history_views import HistoryEntry
from sexton.jobs import JobDefinition
from sexton.views import ClaimView, JobView, PauseView, RunView, SkipView


@dataclass(frozen=True, slots=True)
class OpenedJob:
    """What a job is, what it fires next and how its newest runs went.

    ``hash_seed``: what ``H`` and jitter hash. ``runs``: the newest by their ticks, newest first. ``pauses``: newest
    first.
    """

    job: JobView
    definition: JobDefinition
    hash_seed: str
    cursor: datetime | None
    runs: tuple[RunView, ...]
    pauses: tuple[PauseView, ...]


@dataclass(frozen=True, slots=True)
class OpenedTicks:
    """A page of a job's ticks: claims and skip records up to an instant, newest first.

    On the newest page also ``ahead``, the nearest claims written ahead of their tick, and ``upcoming``, the next ticks
    after them; both nearest first. ``older``: give it as `before` for the next page; None at the end.
    """

    job: JobView
    definition: JobDefinition
    hash_seed: str
    claims: tuple[ClaimView, ...]
    skips: tuple[SkipView, ...]
    ahead: tuple[ClaimView, ...]
    upcoming: tuple[datetime, ...]
    older: datetime | None


@dataclass(frozen=True, slots=True)
class OpenedRuns:
    """A page of a job's runs by their ticks, newest first; on the newest page also the claims that run now.
    ``older``: give it as `before` for the next page; None at the end."""

    running: tuple[ClaimView, ...]
    runs: tuple[RunView, ...]
    older: datetime | None


@dataclass(frozen=True, slots=True)
class DayOfRuns:
    """How many runs the ticks from ``start`` to the next day's had, and how many of them failed, timed out or were
    lost; ``is_whole`` False: only the newest of the day were looked at."""

    start: datetime
    runs: int
    failed: int
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class OpenedRevision:
    """A revision of a job; ``newest`` is the number of the job's newest."""

    entry: HistoryEntry
    newest: int
