"""What an edit comes to, decided without a database: from the jobs as they stand and the changes asked for.

Both stores carry the result out by the edit routine of docs/architecture.md: lock, cut, lock, E, withdraw, write.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sexton.claims import Overlap
from sexton.cluster_views import PauseOfAll
from sexton.errors import MovedOn, NotFound, Refused
from sexton.inputs import are_same
from sexton.job_rules import ConcurrencyKey
from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeDone, ChangeKind, CurrentJob, EditConditions, JobChange, PauseSeen

PAUSED_BY_FILE = "enabled: false"
_PLAN_AGAIN = "nothing was changed; plan again"
_LOOK_AGAIN = "nothing was changed; look at it again"
MOVES = ("job.created", "job.revised", "job.retired")
"""The events after which a job is not any more what a change was planned against."""
_ACTIONS = {
    ChangeKind.CREATE: "job.created",
    ChangeKind.REVISE: "job.revised",
    ChangeKind.RETIRE: "job.retired",
    ChangeKind.PAUSE: "job.paused",
    ChangeKind.RESUME: "job.resumed",
    ChangeKind.SKIP: "job.skips_named",
}


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as an edit finds it, its cursor locked."""

    job_id: int
    name: str
    revision: int
    hash_seed: str
    is_paused: bool
    pause_reason: str | None
    is_retired: bool
    is_paused_with_all: bool
    pause: PauseSeen
    resumed_at: datetime | None  # when its newest pause ended


@dataclass(frozen=True, slots=True)
class NewRevision:
    """The row of `revisions` that an edit adds, but for the interval."""

    definition: str
    schedule: str
    firing: str
    hash_seed: str
    concurrency: ConcurrencyKey | None = None


@dataclass(frozen=True, slots=True)
class PlannedEdit:
    """One job's part of an edit. ``pauses`` is the reason of the pause that begins at E, None if none does; ``keeps``
    that of one which began with the pause of all and is the job's own from now on."""

    kind: ChangeKind
    job_id: int
    name: str
    revision: int  # after the edit
    new_revision: NewRevision | None
    pauses: str | None
    resumes: bool
    why: str
    keeps: str | None = None
    with_all: bool = False  # a part of the pause of all jobs, or of its end

    @property
    def creates(self) -> bool:
        return self.kind is ChangeKind.CREATE

    @property
    def retires(self) -> bool:
        return self.kind is ChangeKind.RETIRE

    @property
    def comes_to_run(self) -> bool:
        """Whether a definition that was applied makes it run from now on."""
        return self.pauses is None and (self.creates or (self.kind is ChangeKind.REVISE and self.resumes))

    @property
    def lifts_quarantine(self) -> bool:
        return self.kind is ChangeKind.REVISE or (self.kind is ChangeKind.RESUME and not self.with_all)

    @property
    def name_key(self) -> str:
        return name_key(self.name)

    @property
    def action(self) -> str:
        """The name of its event."""
        return _ACTIONS[self.kind]

    def done(self, effective_at: datetime, withdrawn: int) -> ChangeDone:
        return ChangeDone(self.job_id, self.name, self.kind, self.revision, effective_at, withdrawn)

    def detail(self, effective_at: datetime, withdrawn: int) -> dict[str, object]:
        """What its event says."""
        detail: dict[str, object] = {
            "job": self.name,
            "revision": self.revision,
            "effective_at": effective_at.isoformat().replace("+00:00", "Z"),
            "withdrawn": withdrawn,
        }
        if self.why:
            detail["why"] = self.why
        return detail


def name_key(name: str) -> str:
    """What is unique among jobs not retired: names differ in more than case."""
    return name.lower()


def edited_ids(changes: Iterable[JobChange]) -> list[int]:
    """The existing jobs that the changes name, in order. Raises ``Refused`` where one is named twice."""
    job_ids = [change.job_id for change in changes if change.job_id is not None]
    twice = sorted({job_id for job_id in job_ids if job_ids.count(job_id) > 1}) if len(job_ids) < 1000 else []
    if twice or len(set(job_ids)) != len(job_ids):
        raise Refused(f"one edit names job id {twice[0] if twice else '...'} twice", hint="make it two edits")
    return sorted(job_ids)


def new_revisions(changes: Sequence[JobChange], seeds: Mapping[int, str]) -> tuple[NewRevision | None, ...]:
    """What each change that brings a definition adds to `revisions`; ``seeds`` are those of the jobs that exist.

    It takes long (a definition is written three times), so it is made before an edit holds any lock. Raises
    ``Refused`` where a definition contradicts itself.
    """
    return tuple(
        None if change.definition is None else _new_revision(change.definition, _seed_of(change, seeds))
        for change in changes
    )


def _seed_of(change: JobChange, seeds: Mapping[int, str]) -> str:
    definition = _definition_of(change)
    return definition.hash_seed or seeds.get(change.job_id or 0, definition.name)


def plan_edits(
    changes: Sequence[JobChange],
    states: Mapping[int, JobState],
    new_ids: Iterable[int],
    made: Sequence[NewRevision | None] = (),
) -> tuple[PlannedEdit, ...]:
    """One plan a change, in the order of ``changes``; ``new_ids`` are for those that create.

    ``made``: the ``new_revisions`` of these changes. One of another seed than the job has now is made anew.
    Raises ``NotFound`` for a job that is not there, ``MovedOn`` where ``expected_revision`` does not hold.
    """
    ids = iter(new_ids)
    return tuple(
        _plan_creation(change, next(ids), one)
        if change.kind is ChangeKind.CREATE
        else _plan_change(change, states, one)
        for change, one in zip(changes, made or itertools.repeat(None), strict=bool(made))
    )


def _plan_creation(change: JobChange, job_id: int, made: NewRevision | None) -> PlannedEdit:
    definition = _definition_of(change)
    seed = definition.hash_seed or definition.name
    return PlannedEdit(
        kind=change.kind,
        job_id=job_id,
        name=definition.name,
        revision=1,
        new_revision=_new_revision(definition, seed, made),
        pauses=None if definition.enabled else PAUSED_BY_FILE,
        resumes=False,
        why=change.why,
    )


def _plan_change(change: JobChange, states: Mapping[int, JobState], made: NewRevision | None) -> PlannedEdit:
    state = states.get(change.job_id or 0)
    if change.expected_revision is not None and state is not None:
        check_revision(state.job_id, state.name, state.revision, state.is_retired, change.expected_revision)
    if state is None or state.is_retired:
        raise NotFound(f"there is no job with id {change.job_id} any more", hint="`sexton jobs` lists what there is")
    name, revision, new_revision, pauses, resumes, keeps = state.name, state.revision, None, None, False, None
    match change.kind:
        case ChangeKind.REVISE:
            definition = _definition_of(change)
            name, revision = definition.name, state.revision + 1
            new_revision = _new_revision(definition, definition.hash_seed or state.hash_seed, made)
            if not definition.enabled and not state.is_paused:
                pauses = PAUSED_BY_FILE
            if not definition.enabled and state.is_paused_with_all:
                keeps = PAUSED_BY_FILE
            by_file = state.pause_reason == PAUSED_BY_FILE and not state.is_paused_with_all
            resumes = definition.enabled and state.is_paused and by_file
        case ChangeKind.PAUSE:
            _check_pause(change, state)
            pauses = None if state.is_paused else change.why
            keeps = change.why if state.is_paused_with_all and not change.with_all else None
        case ChangeKind.RESUME | ChangeKind.RETIRE:
            _check_pause(change, state)
            resumes = state.is_paused_with_all if change.with_all else state.is_paused
    return PlannedEdit(
        kind=change.kind,
        job_id=state.job_id,
        name=name,
        revision=revision,
        new_revision=new_revision,
        pauses=pauses,
        resumes=resumes,
        why=change.why,
        keeps=keeps,
        with_all=change.with_all,
    )


def _definition_of(change: JobChange) -> JobDefinition:
    if change.definition is None:
        raise ValueError(f"a change of kind {change.kind} carries a definition")
    return change.definition


def _new_revision(definition: JobDefinition, seed: str, made: NewRevision | None = None) -> NewRevision:
    if made is not None and made.hash_seed == seed:
        return made
    key = definition.concurrency_key
    if key is not None and definition.overlap is Overlap.ALLOW:
        raise Refused(
            f"job {definition.name!r}: overlap: allow lets any number run, and its concurrency_key lets {key.limit}",
            hint="nothing was changed; choose another overlap, or leave out the key",
        )
    return NewRevision(definition.to_text(), definition.schedule_text(seed), definition.firing_text(seed), seed, key)


def check_revision(job_id: int, name: str, revision: int, is_retired: bool, expected: int) -> None:
    """Raise ``MovedOn`` where a job is not any more what a change was planned against."""
    if is_retired:
        raise MovedOn(f"job {name!r} is retired", job_id=job_id, hint=_PLAN_AGAIN)
    if revision != expected:
        raise MovedOn(f"job {name!r} is at revision {revision}, not {expected}", job_id=job_id, hint=_PLAN_AGAIN)


def _check_pause(change: JobChange, state: JobState) -> None:
    """Raise ``Refused`` where the job is not paused as the change expects."""
    if change.expected_pause not in (None, state.pause):
        raise Refused(f"{state.name} is {_moved_to(state.pause, change.expected_pause)}", hint=_LOOK_AGAIN)
    if change.expected_resume not in (None, state.resumed_at):
        is_now = pause_words("paused anew", state.pause) if state.is_paused else "paused and resumed again"
        raise Refused(f"{state.name} was resumed, and then {is_now}", hint=_LOOK_AGAIN)


def _moved_to(pause: PauseSeen, expected: PauseSeen) -> str:
    if pause.quarantined_since != expected.quarantined_since:
        return "not in quarantine any more" if pause.quarantined_since is None else "in quarantine"
    if pause.since is None:
        return "not paused any more"
    return pause_words("paused already," if expected.since is None else "paused anew", pause)


def pause_words(what: str, pause: PauseSeen | PauseOfAll) -> str:
    """A pause in a sentence: by whom, since when and why."""
    since = "" if pause.since is None else pause.since.isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"{what} by {pause.who or 'somebody'} since {since}" + (f": {pause.why}" if pause.why else "")


def check_cluster(conditions: EditConditions, cluster_id: str, inputs_id: str) -> None:
    """Raise ``MovedOn`` where an edit was planned for another cluster, or for other ticks."""
    if conditions.cluster_id not in (None, cluster_id):
        raise MovedOn(
            f"this plan was made for the cluster {conditions.cluster_id}, and this is the cluster {cluster_id}",
            hint="nothing was changed; name the database it was made for, or plan again for this one",
        )
    if inputs_id and conditions.inputs_id is not None and not are_same(inputs_id, conditions.inputs_id):
        raise MovedOn(
            f"this plan shows the ticks of the inputs {conditions.inputs_id} (zone data / tick engine / holidays), "
            f"and the cluster's are {inputs_id}",
            hint="nothing was changed; plan again, with a Sexton of the cluster's inputs",
        )


def told_by(error: MovedOn, actor: str, action: str, at: datetime) -> MovedOn:
    """``error`` with the newest change of its job: who made it, and when."""
    done = action.removeprefix("job.")
    when = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    facts = str(error).removesuffix(f"; {error.hint}")
    return MovedOn(f"{facts}: {actor} {done} it at {when}", job_id=error.job_id, hint=error.hint)


def name_taken(name: str, job_id: int | None) -> MovedOn:
    """The refusal of a name that another job has: the one of this id, where it is known."""
    return MovedOn(
        f"there is a job named {name!r} already, or one whose name differs only in case",
        job_id=job_id,
        hint="nothing was changed; choose another name, or plan again if someone has just added it",
    )


def pick_job(name: str, jobs: Iterable[CurrentJob]) -> CurrentJob:
    """The job of this name, case aside; raises ``NotFound`` with the nearest names."""
    by_key = {name_key(job.name): job for job in jobs}
    found = by_key.get(name_key(name))
    if found is not None:
        return found
    near = [by_key[key].name for key in difflib.get_close_matches(name_key(name), by_key, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`sexton jobs` lists what there is"
    raise NotFound(f"there is no job named {name!r}", hint=hint)
