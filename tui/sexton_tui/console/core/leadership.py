"""The leadership block: who leads, in one word, on whose word, and how the other nodes and ZooKeeper's servers stand.

Where there is little room (80 x 24), what is well is told in one line, so that what is not keeps its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sexton.cluster_views import NodeView, Overview
from sexton.races import RaceCounts
from sexton.terms import ElectedBy
from sexton_tui.console.core.lines import ALARM, BAD, DIM, GOOD, PLAIN, STRONG, WARN, WARNING, Line, Part, line
from sexton_tui.console.core.standing import (
    NODE_SILENCE,
    Alarm,
    ServerSeen,
    Word,
    alarms,
    forceable,
    has_quorum,
    is_race,
    is_silent,
    late_beat,
    leader_session,
    living,
    racers,
    servers,
    uses_zookeeper,
    word,
)
from sexton_tui.console.core.words import duration, instant, plural

_WORD_STYLES = {
    Word.CONFIRMED: GOOD,
    Word.UNCONFIRMED: WARN,
    Word.DEGRADED: BAD,
    Word.NO_LEADER: BAD,
    Word.RACING: GOOD,
    Word.NO_RACER: BAD,
}


def alarm_lines(overview: Overview, *, with_keys: bool = False) -> list[Line]:
    """The banner: one line for each alarm, with what to do next. ``with_keys``: the console's keys in the place of
    commands."""
    return [alarm_line(alarm, _by_key(alarm, overview) if with_keys else alarm.todo) for alarm in alarms(overview)]


def alarm_line(alarm: Alarm, todo: str) -> Line:
    style = ALARM if alarm.is_urgent else WARNING
    return line((f"{'!!' if alarm.is_urgent else '!'} {alarm.text}. Next: {todo}", style))


_KEYS = {
    "HALTED": "h lifts it",
    "CLOCK IN DOUBT": "set it right; if it is right now, C accepts it",
    "ALL PAUSED": "P ends it",
}
_FORCE = re.compile(r"`(?:sexton )?leader force (\w[^`]*)`")


def _by_key(alarm: Alarm, overview: Overview) -> str:
    """What to do about an alarm, by keys where there are some that work now."""
    if alarm.name in _KEYS:
        return _KEYS[alarm.name]
    if not forceable(overview):
        return alarm.todo
    return _FORCE.sub(lambda found: "F" if found[1] == "NODE" else f"F forces {found[1]}", alarm.todo)


def leadership_lines(overview: Overview, height: int | None = None, *, with_nodes: bool = True) -> list[Line]:
    """Leader, term, since when, its one word, how far claims are written, the other nodes, ZooKeeper's servers.

    Of `height` lines at most where that can be: what is well is then told shortly.
    """
    head = _head_lines(overview)
    found = servers(living(overview))
    others = [node for node in overview.nodes if with_nodes and node.name != overview.leader]
    short_servers: list[Line] = []
    all_servers: list[Line] = []
    if uses_zookeeper(overview):
        short_servers, all_servers = [_servers_line(found, _session(overview))], _servers_lines(overview, found)
    short_nodes, all_nodes = _nodes_line(others), [_node_line(node) for node in others]
    are_well = all(server.serves and not server.otherwise for server in found)
    between: list[list[Line]] = [[*short_servers, *all_nodes], [*all_servers, *short_nodes]]
    choices: list[list[Line]] = [
        [*all_servers, *all_nodes],
        *(between if are_well else reversed(between)),
        [*short_servers, *short_nodes],
    ]
    return head + next((one for one in choices if height is None or len(head) + len(one) <= height), choices[-1])


def _head_lines(overview: Overview) -> list[Line]:
    told = word(overview)
    if is_race(overview):
        return _race_lines(overview, told)
    shown = told.value if told is Word.CONFIRMED else told.value.upper()
    if overview.leader is None:
        return [line((shown, BAD), f"  last term {overview.term}")]
    since = instant(overview.leader_since, overview.now)
    sign: Part = ("○ ", BAD) if is_silent(overview) else ("● ", GOOD)
    by = _by(overview, told)
    beat: Part = (
        f"beat {duration(overview.heartbeat_age)}{' ago' if is_silent(overview) else ''}",
        _beat_style(overview),
    )
    return [
        line(sign, (overview.leader, STRONG), f"  term {overview.term}  since {since}"),
        line("  ", (shown, _WORD_STYLES[told]), ", ", beat, (f", {by}" if by else "", DIM)),
        claims_line(overview),
    ]


def _race_lines(overview: Overview, told: Word) -> list[Line]:
    """How many race, since when, how far claims are written, and what it costs."""
    shown = told.value if told is Word.RACING else told.value.upper()
    since = instant(overview.leader_since, overview.now)
    beat = f", beat {duration(overview.heartbeat_age)}{' ago' if told is Word.NO_RACER else ''}"
    return [
        line(
            (shown, _WORD_STYLES[told]),
            f"  {plural(len(racers(overview)), 'node')}  term {overview.term}  since {since}",
        ),
        line("  no coordinator", (beat, _beat_style(overview))),
        claims_line(overview),
        line((f"  {race_cost(overview)}", DIM)),
    ]


def race_cost(overview: Overview) -> str:
    """``3.0 attempts a tick: 1,234 attempts, 822 conflicts, 411 ticks``."""
    counts = race_counts(overview)
    each = counts.attempts_a_tick
    told = f"{counts.attempts:,} attempts, {counts.conflicts:,} conflicts, {counts.ticks:,} ticks"
    return told if each is None else f"{each:.1f} attempts a tick: {told}"


def race_counts(overview: Overview) -> RaceCounts:
    """What racing has cost this cluster in all."""
    return RaceCounts(*(overview.counters.get(f"race_{name}", 0) for name in ("attempts", "conflicts", "ticks")))


def _by(overview: Overview, told: Word) -> str:
    """On whose word the leader leads now; empty where that is in doubt."""
    if told is Word.CONFIRMED and uses_zookeeper(overview):
        return "ZooKeeper"  # however the term was taken
    if told is Word.DEGRADED or (told is Word.CONFIRMED and overview.elected_by is ElectedBy.DATABASE):
        return "by lease"
    return "forced" if overview.elected_by is ElectedBy.FORCED else ""


def _beat_style(overview: Overview) -> str:
    if is_silent(overview):
        return BAD
    if word(overview) is Word.NO_RACER:
        return BAD
    return WARN if overview.heartbeat_age > late_beat(overview) else DIM


def claims_line(overview: Overview) -> Line:
    """How far claims are written: until then runs go on, whoever leads."""
    if overview.claims_upto is None:
        if is_silent(overview):  # its node was started again, and knows nothing of its term
            return line(f"  {plural(overview.ahead, 'claim')} ahead", (", run in time", DIM))
        return line(f"  claims: {'the racers have' if is_race(overview) else 'the leader has'} not said yet")
    ahead = overview.claims_upto - overview.now
    written = f"  claims to {instant(overview.claims_upto, overview.now)}, "
    if ahead < timedelta(0):
        return line(written, (f"{duration(-ahead)} behind", WARN))
    return line(written, (f"{duration(ahead)} ahead", DIM))


# --- nodes ------------------------------------------------------------------------------------------


def _node_line(node: NodeView) -> Line:
    if node.age > NODE_SILENCE:
        return line(("○ ", DIM), node.name, (f"  silent for {duration(node.age)}", WARN))
    offset = f"{node.clock_offset / timedelta(milliseconds=1):+.0f} ms"
    warm = f"  {'' if node.jobs_warm else 'cold, '}{duration(node.behind)} behind, {offset}"
    return line(("● ", GOOD) if node.role == "racer" else ("○ ", PLAIN), node.name, (warm, DIM))


def _nodes_line(others: Sequence[NodeView]) -> list[Line]:
    """The other nodes in one line."""
    if not others:
        return []
    silent = [node.name for node in others if node.age > NODE_SILENCE]
    standing_by = [node.name for node in others if node.age <= NODE_SILENCE]
    parts: list[Part] = [("○ ", PLAIN), ", ".join(standing_by)] if standing_by else [("○ ", DIM)]
    if silent:
        parts.append((f"{'; ' if standing_by else ''}silent: {', '.join(silent)}", WARN))
    return [line(*parts)]


# --- ZooKeeper's servers ----------------------------------------------------------------------------


def _servers_lines(overview: Overview, found: Sequence[ServerSeen]) -> list[Line]:
    """The servers, a line each, and the leader's session."""
    lines = [_servers_line(found, with_troubles=False)]
    if session := _session_words(leader_session(overview)):
        is_away = "not connected" in session or "connecting" in session
        lines.append(line((f"  {session}", WARN if is_away else DIM)))
    return [*lines, *(one for server in found for one in _server_lines(server))]


def _session(overview: Overview) -> Part:
    """How long the leader's session outlives its connection, and whether there is one; empty where it does not say."""
    said = leader_session(overview).partition(": ")[0].removeprefix("ZooKeeper ").split(", ")
    if not said[0].startswith("session "):
        return ""
    lasts = next((word for word in said[1:] if not word.endswith("connected") and "connected" not in word), "")
    return f", session {lasts}".rstrip() + (" not connected" if "not connected" in said else "")


def _servers_line(found: Sequence[ServerSeen], session: Part = "", *, with_troubles: bool = True) -> Line:
    """How many of the servers serve; shortly, which do not, or else how the leader's session is."""
    if not found:
        return line("ZooKeeper", (": no fresh word of its servers", DIM))
    serving = sum(server.serves for server in found)
    style = PLAIN if serving == len(found) else WARN if has_quorum(found) else BAD
    told: list[Part] = ["ZooKeeper ", (f"{serving} of {len(found)} serve", style)]
    if with_troubles:
        # Counted, for a narrow block cuts addresses off; the needs name them.
        troubles = Counter(server.state for server in found if not server.serves)
        if in_dispute := sum(bool(server.otherwise) for server in found if server.serves):
            troubles["in dispute"] = in_dispute
        if len(troubles) == 1:  # of several, no room
            told += [(f"; {number} {trouble}", style or WARN) for trouble, number in troubles.items()]
        if not troubles:
            told.append(session)
    return line(*told)


def _session_words(status: str) -> str:
    """What a node says of its session, whether it is connected first: a narrow block shows no more."""
    said, colon, trouble = status.partition(": ")
    return ", ".join(reversed(said.removeprefix("ZooKeeper ").split(", "))) + colon + trouble


def _server_lines(server: ServerSeen) -> list[Line]:
    """A server's state, and below it which nodes see another one."""
    lines = [line(("  ", PLAIN), (f"{server.state:<11} ", DIM if server.serves else BAD), server.address)]
    return [*lines, line((f"    {_otherwise(server)}", WARN))] if server.otherwise else lines


def _otherwise(server: ServerSeen) -> str:
    """``silent as sched-3 sees it``."""
    return ", ".join(f"{state} as {' and '.join(nodes)} sees it" for state, nodes in server.otherwise)


# --- for `--output json` ----------------------------------------------------------------------------


def leadership_record(overview: Overview) -> dict[str, Any]:
    """The same as values: the word, the alarms, the servers with who sees them how, the leader's session."""
    return {
        "word": word(overview).value,
        "alarms": alarms(overview),
        "session": leader_session(overview),
        "servers": [
            {
                "address": server.address,
                "state": server.state,
                "serves": server.serves,
                "seen": {node: state for state, nodes in server.seen for node in nodes},
            }
            for server in servers(living(overview))
        ],
    }
