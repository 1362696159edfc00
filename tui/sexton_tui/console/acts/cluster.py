"""Acts on the whole cluster: who leads, the halt, the clock, and its workers."""

from __future__ import annotations

from sexton.cluster_views import Halt
from sexton.errors import NotFound, Refused
from sexton.store.protocol import DrainAsked, Store, WorkerChoice
from sexton_tui.console.acts import Act, Done, Undo


def resign(leader: str | None, actor: str) -> Act:
    """Ask the leader to hand over: the one that is named, if one is."""

    def act(store: Store) -> Done:
        asked = store.edits.request_resign(actor, leader)
        if asked is None:
            raise Refused(f"{leader} does not lead any more" if leader else "nobody leads: there is no one to ask")
        return Done(f"{asked} is asked to hand over")

    return act


def halt(why: str, actor: str) -> Act:
    """Stop all decisions and grants, durably, until the halt is lifted; runs that run go on."""

    def act(store: Store) -> Done:
        done = store.edits.halt(actor, why)
        if not done.changed:
            raise Refused("the cluster is halted already", hint="h lifts it")
        return Done("halted: no tick is decided, no claim granted; h lifts it")

    return act


def lift(halt: Halt | None, actor: str) -> Act:
    """End this halt, or one that nobody signed. What fell due meanwhile runs late within its grace, older ticks go by
    each job's policy."""

    def act(store: Store) -> Done:
        if not store.edits.lift_halt(actor, halt).changed:
            raise Refused("the cluster is not halted any more")
        return Done("the halt is lifted; ticks within their grace run late, older ones go by each job's policy")

    return act


def force(node: str, actor: str) -> Act:
    """Have this node take the term, whatever ZooKeeper says."""

    def act(store: Store) -> Done:
        if not store.edits.force_leader(node, actor):
            raise Refused(f"{node} cannot be forced: it was not heard of for 15 s, or its inputs are others")
        return Done(f"{node} is to take the term within seconds, whatever the coordinator says")

    return act


def accept_clock(actor: str) -> Act:
    """Have nodes that doubt the database's clock take it for the truth."""

    def act(store: Store) -> Done:
        store.edits.accept_clock(actor)
        return Done("the database's clock is accepted; the leader decides by it within seconds")

    return act


def drain(worker: str, actor: str) -> Act:
    """Ask a worker to take no more claims and end when its runs have. Undone while nobody asked it anew."""

    def act(store: Store) -> Done:
        done = _heard_of(worker, store.operations.drain(WorkerChoice(name=worker), actor))
        if not all(one.heeds for one in done):
            raise Refused(f"{worker} is of an older Sexton, which does not heed this", hint="send it SIGTERM")
        event = done[0].event
        undo = None if event is None else Undo(f"the drain of {worker}", _go_on(worker, event, actor))
        return Done(f"{worker} takes no more claims, and ends when its runs have", undo)

    return act


def _go_on(worker: str, event: int, actor: str) -> Act:
    """Take back the drain that this event recorded, and no later one."""

    def act(store: Store) -> Done:
        choice = WorkerChoice(name=worker)
        done = _heard_of(worker, store.operations.drain(choice, actor, asked=False, since=event))
        if not any(one.changed for one in done):
            raise Refused(f"{worker} was asked anew since, or goes on already", hint="pane 8 says who asked it")
        return Done(f"{worker} goes on")

    return act


def _heard_of(worker: str, done: tuple[DrainAsked, ...]) -> tuple[DrainAsked, ...]:
    if not done:
        raise NotFound(f"no worker {worker} that goes on was heard of in the last 10 minutes")
    return done
