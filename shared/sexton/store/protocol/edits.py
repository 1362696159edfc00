"""What operators and job files change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sexton.cluster_views import Halt
    from sexton.jobs import JobDefinition
    from sexton.queue_rules import RuleChange
    from sexton.settings import ClusterSettings


class ChangeKind(StrEnum):
    CREATE = "create"
    REVISE = "revise"  # also a rename: the new definition carries the new name
    RETIRE = "retire"
    PAUSE = "pause"
    RESUME = "resume"  # also lifts a quarantine
    SKIP = "skip"  # names ticks ahead that are not to run, or takes that back: `backfills.skip_ahead`


@dataclass(frozen=True, slots=True)
class PauseSeen:
    """How a job stood when it was read: since when, by whom and why it is paused, and since when it is in quarantine;
    None where it is not."""

    since: datetime | None = None
    who: str = ""
    why: str = ""
    quarantined_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class JobChange:
    """One change of one job. ``job_id`` None only for CREATE; ``definition`` for CREATE and REVISE."""

    kind: ChangeKind
    job_id: int | None = None
    definition: JobDefinition | None = None
    expected_revision: int | None = None  # REVISE and RETIRE: refuse if the job has moved on
    why: str = ""
    with_all: bool = False  # PAUSE and RESUME: as a part of the pause of all jobs (`pauses`)
    expected_pause: PauseSeen | None = None  # PAUSE and RESUME: refuse unless it stands so
    expected_resume: datetime | None = None  # PAUSE: refuse unless it runs since its newest pause ended then


@dataclass(frozen=True, slots=True)
class EditConditions:
    """What has to hold in the transaction of an edit, beside the ``expected_revision`` of its changes.

    ``unchanged``: jobs, by id, that are to be at these revisions still, and not retired. ``cluster_id`` and
    ``inputs_id``: the cluster's, None where they do not matter; a cluster whose inputs are not known yet has any.
    """

    unchanged: Mapping[int, int] = field(default_factory=dict)
    cluster_id: str | None = None
    inputs_id: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeDone:
    """What an edit did: from ``effective_at`` (E in the design) on, the new state counts."""

    job_id: int
    name: str
    kind: ChangeKind
    revision: int
    effective_at: datetime
    withdrawn: int  # claims written ahead under the old state and deleted


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """A job not retired, for planning an apply and for listing."""

    job_id: int
    name: str
    revision: int
    definition: JobDefinition
    hash_seed: str
    is_paused: bool
    is_quarantined: bool
    pause: PauseSeen = PauseSeen()


@dataclass(frozen=True, slots=True)
class Triggered:
    """A manual claim. ``existed``: the request id had been used, and this is that claim."""

    job_id: int
    name: str
    scheduled_at: datetime
    existed: bool


@dataclass(frozen=True, slots=True)
class HaltChange:
    """``changed``: whether the call changed anything. ``halt``: the one that stands, or that was lifted; None where
    there was none, or nobody knows who made it."""

    changed: bool
    halt: Halt | None


class EditStore(Protocol):
    """What operators and job files change. Each is recorded in ``events`` with its actor."""

    def edit(
        self, changes: Sequence[JobChange], actor: str, conditions: EditConditions | None = None
    ) -> tuple[ChangeDone, ...]:
        """All changes in one transaction by the edit routine of the design; or none of them.

        Raises ``MovedOn`` where an ``expected_revision`` or one of the conditions does not hold (with who changed the
        job, and when), ``Refused`` where a name is taken, the job is not paused as a change expects, or the locks
        cannot be had after retries.
        """
        ...

    def current_jobs(self) -> tuple[CurrentJob, ...]:
        """Every job that is not retired, by name."""
        ...

    def find_job(self, name: str) -> CurrentJob:
        """The job of this name (case does not count); raises ``NotFound`` with the nearest names."""
        ...

    def trigger(self, job_id: int, actor: str, request_id: str | None = None) -> Triggered:
        """Write a ``manual`` claim at database time, off the millisecond grid that schedules use."""
        ...

    def settings(self) -> ClusterSettings:
        """The cluster's settings, defaults included."""
        ...

    def set_setting(self, key: str, value: str, actor: str) -> ClusterSettings:
        """Change one setting, checked against the others; raises ``InvalidSetting``."""
        ...

    def set_queue_rule(self, name: str, limits: Mapping[str, str], actor: str) -> RuleChange:
        """Set ``slots`` or ``rate`` of a queue, or both, from text (``none``: no limit); what is not named stays.

        From then on no pull that begins takes more than the rule allows; runs that are under way go on. Raises
        ``InvalidSetting``, and ``Refused`` where the rule's lock cannot be had after retries.
        """
        ...

    def request_resign(self, actor: str, leader: str | None = None) -> str | None:
        """Ask the leader to hand over; its name, or None when nobody leads, or another than the named ``leader``.

        Raises ``Refused`` where its last heartbeat was not confirmed: with the coordinator away nobody would follow it
        until the leader lease lapses.
        """
        ...

    def halt(self, actor: str, reason: str) -> HaltChange:
        """Halt the cluster: after it returns, no tick is decided, and no pull that begins grants anything, until
        ``lift_halt``. Runs go on and their results count. A cluster that is halted keeps its first halt."""
        ...

    def lift_halt(self, actor: str, expected: Halt | None = None) -> HaltChange:
        """End the halt; what fell due meanwhile is decided by each job's policy. ``expected``: this halt and no other;
        raises ``Refused`` where another stands."""
        ...

    def force_leader(self, node: str, actor: str) -> bool:
        """Have this node take the term, whatever the coordinator says; False: it was not heard of for 15 s, or its
        inputs are not the cluster's. The force stands until the node's leadership is confirmed."""
        ...

    def lift_force(self, actor: str) -> str | None:
        """End the force that stands, whether or not its node leads; the node it named, or None. Who leads, leads on."""
        ...

    def accept_clock(self, actor: str) -> int:
        """Have nodes that doubt the database's clock take it for the truth; how often that was said so far."""
        ...

    def record(self, actor: str, action: str, detail: Mapping[str, object], job_id: int | None = None) -> None:
        """Add an event to the audit log."""
        ...
