"""What a row or a screen is about: what enter opens, and what a key acts on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class OfJob:
    """A job by its name."""

    job: str


@dataclass(frozen=True, slots=True)
class OfTick:
    """A tick of a job, whatever was decided about it; ``is_held``: it waited for an answer when this was read."""

    job: str
    scheduled_at: datetime
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class OfRun:
    """A run by its token; ``goes_on``: it had not ended when this was read."""

    job: str
    scheduled_at: datetime
    token: int
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class OfRevision:
    """A revision of a job by its number."""

    job: str
    revision: int


@dataclass(frozen=True, slots=True)
class OfProposal:
    """Held ticks of a job that wait for an answer; not ``is_open``: they had one when this was read. ``tick``: the one
    under the cursor."""

    job: str
    proposal_id: int
    is_open: bool = True
    tick: datetime | None = None


@dataclass(frozen=True, slots=True)
class OfTakeover:
    """A term, and what its leader decided about what it found undecided; with ``gap_until`` what it decided about the
    gap within its term that ended then."""

    term: int
    gap_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class OfDecisions:
    """The ticks of a job in ``(after, upto]`` that one pass of a term decided on together."""

    job: str
    term: int
    after: datetime
    upto: datetime


@dataclass(frozen=True, slots=True)
class OfWorker:
    """A worker by its name."""

    worker: str


@dataclass(frozen=True, slots=True)
class OfNode:
    """A scheduler node by its name."""

    node: str


@dataclass(frozen=True, slots=True)
class OfQueue:
    """A queue by its name."""

    queue: str


@dataclass(frozen=True, slots=True)
class OfEvent:
    """A line of the audit log."""

    event_id: int
    job: str | None


@dataclass(frozen=True, slots=True)
class OfSetting:
    """A setting by its key."""

    key: str


Subject = (
    OfJob
    | OfTick
    | OfRun
    | OfRevision
    | OfProposal
    | OfTakeover
    | OfDecisions
    | OfWorker
    | OfNode
    | OfQueue
    | OfEvent
    | OfSetting
)


def job_of(subject: Subject | None) -> str | None:
    """The job that an action on the subject would be about; None where it is about none."""
    match subject:
        case OfJob(job) | OfTick(job) | OfRun(job) | OfRevision(job) | OfProposal(job) | OfDecisions(job):
            return job
        case OfEvent(_, job):
            return job
        case _:
            return None


def crumb(subject: Subject) -> str:
    """The subject's word in the trail of what was opened: ``term 41``, ``nightly-billing``."""
    match subject:
        case OfJob(job) | OfDecisions(job):
            return job
        case OfTick(job, scheduled_at):
            return f"{job} at {scheduled_at:%Y-%m-%d %H:%M:%S} UTC"
        case OfRun(_, _, token):
            return f"run {token}"
        case OfRevision(_, revision):
            return f"revision {revision}"
        case OfProposal(job, proposal_id):
            return f"proposal {proposal_id} of {job}"
        case OfTakeover(term, gap_until):
            return f"term {term}" if gap_until is None else f"term {term}, gap to {gap_until:%Y-%m-%d %H:%M:%S} UTC"
        case OfWorker(worker):
            return f"worker {worker}"
        case OfNode(node):
            return f"node {node}"
        case OfQueue(queue):
            return f"queue {queue}"
        case OfEvent(event_id):
            return f"event {event_id}"
        case OfSetting(key):
            return key
