"""What an operator can do from the console, through the store's edits: each is recorded with who and why.

Every function returns the sentence to show. Refusals (`SextonError`) are raised as they are; a call whose answer did
not come is the caller's ``TimeoutError``, and its outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sexton.errors import Refused
from sexton.hold_views import HoldDetail
from sexton.holds import HeldTick
from sexton.store.protocol import ChangeKind, HoldAnswer, JobChange, Store
from sexton.store.protocol.holds import approval_of
from sexton_tui.console.core.hold_words import answer_text, lost_text

Action = Callable[[Store], str]


def pause(job: str, why: str, actor: str) -> Action:
    """Pause a job: its ticks are recorded as paused until it is resumed."""

    def act(store: Store) -> str:
        found = store.edits.find_job(job)
        if found.is_paused:
            raise Refused(f"job {found.name} is paused already", hint="r resumes it")
        store.edits.edit([JobChange(ChangeKind.PAUSE, found.job_id, why=why)], actor)
        return f"{found.name} is paused; r resumes it"

    return act


def resume(job: str, actor: str) -> Action:
    """Resume a paused or quarantined job; ticks of the pause are not run."""

    def act(store: Store) -> str:
        found = store.edits.find_job(job)
        if not found.is_paused and not found.is_quarantined:
            raise Refused(f"job {found.name} is neither paused nor quarantined")
        store.edits.edit([JobChange(ChangeKind.RESUME, found.job_id, why="resumed in the console")], actor)
        return f"{found.name} is resumed"

    return act


def trigger(job: str, actor: str, request_id: str) -> Action:
    """Write a manual claim; the same ``request_id`` writes no second one."""

    def act(store: Store) -> str:
        found = store.edits.find_job(job)
        triggered = store.edits.trigger(found.job_id, actor, request_id)
        state = "paused" if found.is_paused else "quarantined" if found.is_quarantined else ""
        note = f"; it stays {state}, and runs this once" if state else ""
        return f"{triggered.name} is triggered: claim {triggered.scheduled_at:%H:%M:%S}{note}"

    return act


def approve(found: HoldDetail, ticks: Sequence[HeldTick], note: str, actor: str) -> Action:
    """Run these ticks of a proposal as it was read, and reject its others."""

    def act(store: Store) -> str:
        return _answered(store.holds.approve(approval_of(found, ticks, note), actor))

    return act


def reject(proposal_id: int, note: str, actor: str) -> Action:
    """Let none of a proposal's ticks run."""

    def act(store: Store) -> str:
        return _answered(store.holds.reject(proposal_id, actor, note))

    return act


def _answered(answer: HoldAnswer) -> str:
    if not answer.is_done:
        raise Refused(lost_text(answer))
    return answer_text(answer)


def resign(actor: str) -> Action:
    """Ask the leader to hand over."""

    def act(store: Store) -> str:
        leader = store.edits.request_resign(actor)
        if leader is None:
            raise Refused("nobody leads: there is no one to ask")
        return f"{leader} is asked to hand over"

    return act


def halt(why: str, actor: str) -> Action:
    """Stop all decisions and grants, durably, until the halt is lifted; runs that run go on."""

    def act(store: Store) -> str:
        done = store.edits.halt(actor, why)
        if not done.changed:
            raise Refused("the cluster is halted already", hint="h lifts it")
        return "halted: no tick is decided, no claim granted; h lifts it"

    return act


def lift(actor: str) -> Action:
    """End the halt; what fell due meanwhile runs late within its grace, older ticks go by each job's policy."""

    def act(store: Store) -> str:
        if not store.edits.lift_halt(actor).changed:
            raise Refused("the cluster is not halted")
        return "the halt is lifted; ticks within their grace run late, older ones go by each job's policy"

    return act


def force(node: str, actor: str) -> Action:
    """Have this node take the term, whatever ZooKeeper says."""

    def act(store: Store) -> str:
        if not store.edits.force_leader(node, actor):
            raise Refused(f"{node} cannot be forced: it was not heard of for 15 s, or its inputs are others")
        return f"{node} is to take the term within seconds, whatever the coordinator says"

    return act


def accept_clock(actor: str) -> Action:
    """Have nodes that doubt the database's clock take it for the truth."""

    def act(store: Store) -> str:
        store.edits.accept_clock(actor)
        return "the database's clock is accepted; the leader decides by it within seconds"

    return act
