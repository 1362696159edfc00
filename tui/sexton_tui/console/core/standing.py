"""How the cluster stands, in one word, and what must not be overlooked.

The word is one of four: *confirmed*, *unconfirmed*, *degraded*, *no leader*; of a race one of two: *racing*, *no
racer*. Beside it stand alarms: each says what is
the matter in words that begin with its name in capitals, and what to do next. ZooKeeper's servers are put together
from what the nodes see, for a node that is cut off sees them otherwise than the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from sexton.cluster_views import NodeView, Overview
from sexton.settings import settings_from_rows
from sexton.terms import CoordinatorServer, Strategy
from sexton_tui.console.core.words import duration, instant

HEARTBEAT_SILENCE = timedelta(seconds=10)
NODE_SILENCE = timedelta(seconds=5)
"""A node reports every second or two: what one says that was silent for longer than this is no longer shown as so."""
NODE_GONE = timedelta(seconds=30)
"""From then on a node is not counted on to take over."""
OVERDUE_SESSIONS = 3
"""A successor is elected within one and a half sessions, or two where the leader was cut off from the database."""
FORCE_SILENCE = timedelta(seconds=15)
"""A node that is silent for longer cannot be forced, and a force of it lapses."""
_NAMED = 3


class Word(StrEnum):
    """The one word for who leads."""

    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"  # the leader goes on while its election is in doubt
    DEGRADED = "degraded"  # a node took over by the leader lease while ZooKeeper was away
    NO_LEADER = "no leader"  # nobody leads, or who leads gives no sign of life
    RACING = "racing"  # strategy race: nobody leads, and nobody should
    NO_RACER = "no racer"  # a race without a sign of life


@dataclass(frozen=True, slots=True)
class Alarm:
    """What must not be overlooked. `is_urgent`: ticks are not decided, or nothing is granted, because of it."""

    text: str
    todo: str
    is_urgent: bool = True

    @property
    def name(self) -> str:
        """Its first words, in capitals: ``NO LEADER``."""
        return " ".join(itertools.takewhile(str.isupper, self.text.partition(":")[0].split()))


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """A server of the coordinator. `seen`: each state with the nodes that see it so, what most see first."""

    address: str
    seen: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def state(self) -> str:
        """As most nodes see it; where they are even, as one sees it that it serves."""
        return self.seen[0][0]

    @property
    def serves(self) -> bool:
        return CoordinatorServer(self.address, self.state).serves

    @property
    def otherwise(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What the others see; empty where all agree."""
        return self.seen[1:]


def word(overview: Overview) -> Word:
    """Who leads, in one word."""
    if is_race(overview):
        return Word.NO_RACER if overview.heartbeat_age > _silence(overview) else Word.RACING
    if overview.leader is None or is_silent(overview):
        return Word.NO_LEADER
    try:
        return Word(overview.confirmation)
    except ValueError:  # of a newer version
        return Word.UNCONFIRMED


def is_silent(overview: Overview) -> bool:
    """Whether the leader's heartbeat has stood still for so long that another node should lead by now."""
    return overview.leader is not None and overview.heartbeat_age > _silence(overview)


def _silence(overview: Overview) -> timedelta:
    return max(HEARTBEAT_SILENCE, settings_from_rows(overview.settings).session * 1.5)


def is_race(overview: Overview) -> bool:
    """Whether every node decides, and nobody leads."""
    return overview.strategy == Strategy.RACE


def racers(overview: Overview) -> tuple[NodeView, ...]:
    """The nodes that race, as their fresh word says."""
    return tuple(node for node in living(overview) if node.role == "racer")


def late_beat(overview: Overview) -> timedelta:
    """From which age on a heartbeat is late: two of three that a session takes were missed."""
    return settings_from_rows(overview.settings).session * 2 / 3


def living(overview: Overview) -> tuple[NodeView, ...]:
    """The nodes whose word is fresh."""
    return tuple(node for node in overview.nodes if node.age <= NODE_SILENCE)


def uses_zookeeper(overview: Overview) -> bool:
    """Whether ZooKeeper decides who tries to lead; a race asks no coordinator."""
    return not is_race(overview) and overview.coordinator.startswith("zookeeper:")


def servers(nodes: Sequence[NodeView]) -> tuple[ServerSeen, ...]:
    """The coordinator's servers as these nodes see them, in the order of their addresses in the setting."""
    seen: dict[str, dict[str, list[str]]] = {}
    for node in nodes:
        for server in node.coordinator_servers:
            seen.setdefault(server.address, {}).setdefault(server.state, []).append(node.name)
    return tuple(ServerSeen(address, _by_weight(address, states)) for address, states in seen.items())


def _by_weight(address: str, states: dict[str, list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    def weight(state: str) -> tuple[int, bool]:
        return -len(states[state]), not CoordinatorServer(address, state).serves

    return tuple((state, tuple(states[state])) for state in sorted(states, key=weight))


def has_quorum(found: Sequence[ServerSeen]) -> bool:
    return sum(server.serves for server in found) * 2 > len(found)


def leader_session(overview: Overview) -> str:
    """What the leader says of its session; empty where it says nothing."""
    return next((node.coordinator_status for node in living(overview) if node.name == overview.leader), "")


def forceable(overview: Overview) -> tuple[NodeView, ...]:
    """The nodes that could be forced to lead now."""
    return tuple(node for node in overview.nodes if node.age <= FORCE_SILENCE and node.inputs_id == overview.inputs_id)


def forceable_words(overview: Overview) -> str:
    """Which nodes could be forced to lead now."""
    able = [f"{node.name}{' (leads now)' if node.name == overview.leader else ''}" for node in forceable(overview)]
    return (
        f"These can: {', '.join(able)}" if able else "None can: no node with the cluster's inputs was heard of lately"
    )


def ahead_words(overview: Overview) -> str:
    """What becomes of ticks if the leader dies now."""
    upto = overview.claims_upto
    if not settings_from_rows(overview.settings).horizon or upto is None or upto <= overview.now:
        return "No claims are written ahead: the next leader decides what fell due meanwhile."
    return f"Claims are written {duration(upto - overview.now)} ahead: until then no tick is missed."


# --- alarms -----------------------------------------------------------------------------------------


def alarms(overview: Overview) -> tuple[Alarm, ...]:
    """All that must not be overlooked on any screen, worst first."""
    found = [
        *_halted(overview),
        *_leaderless(overview),
        *_raceless(overview),
        *_clock(overview),
        *_unconfirmed(overview),
        *_degraded(overview),
        *_forced(overview),
        *_paused(overview),
    ]
    return tuple(sorted(found, key=lambda alarm: not alarm.is_urgent))


def _halted(overview: Overview) -> list[Alarm]:
    if not overview.is_halted:
        return []
    return [
        Alarm(f"HALTED{halt_words(overview)}: no tick is decided, no claim granted", "`sexton halt --lift` ends it")
    ]


def halt_words(overview: Overview) -> str:
    """By whom, since when and why the cluster is halted, as a part of a sentence; empty where nobody knows."""
    if (halt := overview.halt) is None:
        return ""
    by = f" by {halt.by}" if halt.by else ""
    why = f" ({halt.reason})" if halt.reason else ""
    return f"{by} since {instant(halt.at, overview.now)}{why}"


def _leaderless(overview: Overview) -> list[Alarm]:
    if word(overview) is not Word.NO_LEADER:
        return []
    why, todo = _why_leaderless(overview)
    after = f" since {overview.predecessor} handed over" if overview.leader is None and overview.predecessor else ""
    silent = ""
    if overview.leader is not None:
        silent = f"{overview.leader} gives no sign of life for {duration(overview.heartbeat_age)}"
    told = "; ".join(filter(None, [", ".join(filter(None, [silent, why])), "no tick is decided"]))
    return [Alarm(f"NO LEADER{after}: {told}", todo)]


def _raceless(overview: Overview) -> list[Alarm]:
    if word(overview) is not Word.NO_RACER:
        return []
    silent = f"no node gave a sign of racing for {duration(overview.heartbeat_age)}"
    living_nodes = [node for node in overview.nodes if node.age <= NODE_GONE]
    todo = "nodes live, and should race: `sexton cluster`, and their logs"
    if not living_nodes:
        todo = "no node lives: start `sexton scheduler`"
    elif not any(node.inputs_id == overview.inputs_id for node in living_nodes):
        todo = "no node has the cluster's inputs: `sexton inputs`"
    return [Alarm(f"NO RACER: {silent}; no tick is decided", todo)]


def _why_leaderless(overview: Overview) -> tuple[str, str]:
    """The likely cause, empty where there is nothing but the leader's end to tell, and what to do next."""
    # A node of the leader's name that follows was started again after the leader's end.
    others = [node for node in overview.nodes if node.name != overview.leader or node.role != "leader"]
    able = [node for node in others if node.age <= NODE_GONE]
    if not able:
        return _nobody_lives(overview, others)
    forced = overview.forced_to
    if forced is not None and not any(node.name == forced for node in living(overview)):
        return f"the others stand aside for {forced}, which is silent", "`sexton leader force --lift`"
    able = [node for node in able if node.inputs_id == overview.inputs_id]
    if not able:
        return "the others stand aside, for their inputs differ", "no node has the cluster's inputs: `sexton inputs`"
    heard = [node for node in able if node.age <= NODE_SILENCE]
    force = f"`sexton leader force {min(able, key=lambda node: node.age).name}`"
    if uses_zookeeper(overview) and (found := _barred_by_zookeeper(overview, heard, force)):
        return found
    silent = [node for node in others if node.age > NODE_SILENCE]
    why = f"{_names(silent)} silent too" if silent else ""
    if overview.heartbeat_age > OVERDUE_SESSIONS * settings_from_rows(overview.settings).session:
        return ", ".join(filter(None, [why, "no node took over"])), f"{force}; the nodes' logs tell why"
    return why, "another node should take over now: `sexton cluster`"


def _nobody_lives(overview: Overview, others: Sequence[NodeView]) -> tuple[str, str]:
    """No node but the leader that is silent was heard of lately."""
    if overview.leader is None and not overview.term:
        return "no node has led yet", "no node lives: start `sexton scheduler`"
    if not others:
        return "the only node" if overview.leader else "", "no node lives: start `sexton scheduler`"
    heard = duration(min(node.age for node in others))
    return f"{_names(others)} silent for {heard}", "no node lives or reaches the database: start `sexton scheduler`"


def _barred_by_zookeeper(overview: Overview, heard: Sequence[NodeView], force: str) -> tuple[str, str] | None:
    """What keeps nodes that were just heard from being elected, and what to do next; None: nothing."""
    found, settings = servers(heard), settings_from_rows(overview.settings)
    after = settings.failover_database_after
    if found and not has_quorum(found):
        why = f"ZooKeeper is away ({sum(server.serves for server in found)} of {len(found)} serve)"
        if overview.heartbeat_age > after + OVERDUE_SESSIONS * settings.session:
            return f"{why}, and no node took over", f"mend ZooKeeper, or {force}"
        return why, f"mend ZooKeeper; a node takes over after {duration(after)}"
    said = [node.coordinator_status for node in heard if node.coordinator_status]
    if not said or any("connected" in one and "not connected" not in one for one in said):
        return None
    trouble = next(filter(None, (one.partition(": ")[2] for one in said)), "")
    return f"no node has a session with ZooKeeper{f' ({trouble})' if trouble else ''}", f"`sexton cluster`, or {force}"


def _names(nodes: Sequence[NodeView]) -> str:
    return f"{len(nodes)} nodes" if len(nodes) > _NAMED else " and ".join(node.name for node in nodes)


def _clock(overview: Overview) -> list[Alarm]:
    doubting = [node for node in living(overview) if node.clock_jump is not None]
    if not doubting:
        return []
    leading = [node for node in doubting if node.name == overview.leader]
    most = max(leading or doubting, key=lambda node: abs(node.clock_jump or timedelta(0)))
    jump = most.clock_jump or timedelta(0)
    jumped = f"the database's clock jumped by {'+' if jump >= timedelta(0) else ''}{duration(jump)}"
    who = "its leader decides nothing" if leading else f"{most.name} would decide nothing"
    if is_race(overview):
        who = f"{', '.join(node.name for node in doubting)} {'decides' if len(doubting) == 1 else 'decide'} nothing"
    return [Alarm(f"CLOCK IN DOUBT: {jumped}; {who}", "set it right, or `sexton clock accept` if it is right now")]


def _unconfirmed(overview: Overview) -> list[Alarm]:
    if word(overview) is not Word.UNCONFIRMED:
        return []
    how = f"the election of {overview.leader} is in doubt; it goes on, ticks are decided"
    todo = "restart no node; mend ZooKeeper" if uses_zookeeper(overview) else "restart no node: `sexton cluster`"
    return [Alarm(f"UNCONFIRMED: {how}", todo, is_urgent=False)]


def _degraded(overview: Overview) -> list[Alarm]:
    if word(overview) is not Word.DEGRADED:
        return []
    how = f"{overview.leader} took over by leader lease while ZooKeeper was away; ticks are decided"
    return [Alarm(f"DEGRADED: {how}", "mend ZooKeeper; it then confirms or moves leadership", is_urgent=False)]


def _paused(overview: Overview) -> list[Alarm]:
    if (pause := overview.pause_of_all) is None:
        return []
    told = f"ALL PAUSED by {pause.who} since {instant(pause.since, overview.now)} ({pause.why}): no tick is run"
    return [Alarm(told, "`sexton resume --all` ends it", is_urgent=False)]


def _forced(overview: Overview) -> list[Alarm]:
    if overview.forced_to is None:
        return []
    told = f"FORCED to {overview.forced_to}: the other nodes stand aside until it is confirmed"
    todo = "nothing; `sexton leader force --lift` ends it, `leader force NODE` moves it"
    node = next((node for node in overview.nodes if node.name == overview.forced_to), None)
    beats_late = overview.leader == overview.forced_to and overview.heartbeat_age > late_beat(overview)
    if beats_late or node is None or node.age > NODE_SILENCE:
        lapses = f"the force lapses {duration(FORCE_SILENCE)} after its last word"
        told = f"FORCED to {overview.forced_to}, which is silent: {lapses}"
        todo = "wait, or force another: `sexton leader force NODE`"
    return [Alarm(told, todo, is_urgent=False)]
