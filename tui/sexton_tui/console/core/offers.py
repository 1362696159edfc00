"""Which keys are offered: by what is under the cursor, and by what this console may do."""

from __future__ import annotations

from sexton_tui.console.core.subjects import OfProposal, OfRun, OfTick, OfWorker, Subject, job_of

_OF_A_JOB = frozenset({"pause", "resume", "trigger", "skip_next", "backfill"})
_OF_THE_CLUSTER = frozenset({"resign", "halt", "force_leader", "accept_clock", "pause_all"})


def offered(
    action: str, subject: Subject | None, *, read_only: bool, can_kill: bool, can_undo: bool, can_force: bool = True
) -> bool | None:
    """Whether the key of an action is offered; None where it is none that changes anything."""
    if action == "explain":
        return isinstance(subject, OfTick | OfRun)
    if action == "force_leader" and not can_force:
        return False
    is_offered = _is_offered(action, subject, can_kill=can_kill, can_undo=can_undo)
    return None if is_offered is None else is_offered and not read_only


def why_not(action: str) -> str:
    """What to say of an act whose key is pressed where it is not offered; empty where that is no act."""
    if action in _OF_A_JOB:
        return f"to {action.replace('_', ' ')} wants a job under the cursor: pane 4 has them"
    return _WHY_NOT.get(action, "")


_WHY_NOT = {
    "explain": "to explain wants a tick or a run under the cursor: pane 5, or an opened job",
    "approve": "to approve wants a proposal, or a held tick, that nobody answered under the cursor: pane 3",
    "reject": "to reject wants a proposal, or a held tick, that nobody answered under the cursor: pane 3",
    "cancel": "to cancel wants what runs, or a job, under the cursor",
    "run_again": "to run once more wants a tick, or a run that ended, under the cursor",
    "drain": "to drain wants a worker under the cursor: pane 6",
    "undo": "there is nothing to undo",
    "force_leader": "no node could be forced to lead now: none with the cluster's inputs was heard of within 15 s",
    "kill_leader": "the leader is killed only by what started it: `sexton up`, `make cluster`",
}


def _is_offered(action: str, subject: Subject | None, *, can_kill: bool, can_undo: bool) -> bool | None:
    if action in _OF_A_JOB:
        return job_of(subject) is not None
    if action in _OF_THE_CLUSTER:
        return True
    if action in ("approve", "reject"):
        return (isinstance(subject, OfProposal) and subject.is_open) or (
            isinstance(subject, OfTick) and subject.is_held
        )
    if action == "cancel":
        return job_of(subject) is not None and not (isinstance(subject, OfRun) and not subject.goes_on)
    if action == "run_again":
        return isinstance(subject, OfTick) or (isinstance(subject, OfRun) and not subject.goes_on)
    if action == "drain":
        return isinstance(subject, OfWorker)
    if action == "kill_leader":
        return can_kill
    return can_undo if action == "undo" else None
