"""How the cluster stands: one word, the alarms, ZooKeeper's servers; plain values in and out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sexton.cluster_views import Halt, Overview
from sexton.terms import ElectedBy
from sexton_tui.console.core.leadership import alarm_lines, leadership_lines, leadership_record
from sexton_tui.console.core.lines import ALARM, WARNING
from sexton_tui.console.core.needs import needs
from sexton_tui.console.core.standing import Word, alarms, has_quorum, servers, word
from tests.unit.test_console_needs import HEALTHY, NODE, NOW, SECOND, servers_seen

UP = servers_seen("follower", "leader", "follower")
LEADER = replace(NODE, name="sched-2", role="leader", coordinator_status="session 0x1a, 6s, connected to zk1:2181")
THREE = replace(
    HEALTHY,
    coordinator="zookeeper://zk1:2181,zk2:2181,zk3:2181/sexton",
    nodes=tuple(
        replace(node, coordinator_servers=UP) for node in (NODE, LEADER, replace(NODE, name="sched-3", jobs_warm=0))
    ),
)
DOWN = tuple(
    replace(node, coordinator_servers=servers_seen("not serving", "refused", "refused"), coordinator_status=status)
    for node, status in zip(THREE.nodes, ("", "session 0x1a, not connected: no server answers", ""), strict=True)
)
RACE: dict[str, Any] = {"strategy": "race", "leader": None}


def texts(overview: Overview, height: int | None = None) -> list[str]:
    return [line.text for line in leadership_lines(overview, height)]


# --- the word ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, Word.CONFIRMED),
        ({"confirmation": "unconfirmed"}, Word.UNCONFIRMED),
        ({"confirmation": "degraded"}, Word.DEGRADED),
        ({"confirmation": "a word of a newer version"}, Word.UNCONFIRMED),
        ({"leader": None}, Word.NO_LEADER),
        ({"heartbeat_age": 10 * SECOND}, Word.CONFIRMED),
        ({"heartbeat_age": 10.1 * SECOND}, Word.NO_LEADER),
        ({"heartbeat_age": 14 * SECOND, "settings": {"session": "10s"}}, Word.CONFIRMED),
        ({"heartbeat_age": 16 * SECOND, "settings": {"session": "10s"}}, Word.NO_LEADER),
        ({"heartbeat_age": 16 * SECOND, "confirmation": "degraded"}, Word.NO_LEADER),
        ({"strategy": "race", "leader": None}, Word.RACING),
        ({"strategy": "race", "leader": None, "heartbeat_age": 10.1 * SECOND}, Word.NO_RACER),
    ],
)
def test_one_word_says_who_leads(changed: dict[str, Any], expected: Word) -> None:
    assert word(replace(HEALTHY, **changed)) is expected


# --- alarms -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "text", "todo"),
    [
        (
            {"leader": None, "predecessor": "sched-1"},
            "NO LEADER since sched-1 handed over: no tick",
            "should take over",
        ),
        ({"leader": None, "nodes": ()}, "NO LEADER: no tick is decided", "start `sexton scheduler`"),
        ({"leader": None, "nodes": (replace(NODE, inputs_id="x"),)}, "NO LEADER", "no node has the cluster's inputs"),
        (
            {"leader": None, "nodes": DOWN[::2]},
            "NO LEADER: ZooKeeper is away (0 of 3 serve); no tick",
            "mend ZooKeeper; a node takes over after 30 s",
        ),
        (
            {"heartbeat_age": 12 * SECOND, "nodes": (LEADER,)},
            "NO LEADER: sched-2 gives no sign of life for 12 s, the only node; no tick",
            "start `sexton scheduler`",
        ),
        (
            RACE | {"heartbeat_age": 12 * SECOND},
            "NO RACER: no node gave a sign of racing for 12 s; no tick is decided",
            "nodes live, and should race",
        ),
        (RACE | {"heartbeat_age": 12 * SECOND, "nodes": ()}, "NO RACER", "no node lives: start `sexton scheduler`"),
        (
            RACE | {"heartbeat_age": 12 * SECOND, "nodes": (replace(NODE, inputs_id="x"),)},
            "NO RACER",
            "no node has the cluster's inputs",
        ),
        (
            RACE | {"nodes": (replace(NODE, role="racer", clock_jump=61 * SECOND),)},
            "CLOCK IN DOUBT: the database's clock jumped by +1m01s; sched-1 decides nothing",
            "`sexton clock accept`",
        ),
        ({"is_halted": True}, "HALTED: no tick is decided, no claim granted", "ends it"),
        (
            {"is_halted": True, "halt": Halt(NOW, "ana@ops", "restoring a backup")},
            "HALTED by ana@ops since 02:30:00 (restoring a backup): no tick is decided",
            "ends it",
        ),
        (
            {"nodes": (replace(LEADER, clock_jump=timedelta(hours=1)),)},
            "CLOCK IN DOUBT: the database's clock jumped by +1h00m; its leader decides nothing",
            "`sexton clock accept`",
        ),
        (
            {"nodes": (LEADER, replace(NODE, clock_jump=-61 * SECOND))},
            "CLOCK IN DOUBT: the database's clock jumped by -1m01s; sched-1 would decide nothing",
            "`sexton clock accept`",
        ),
    ],
)
def test_what_stops_decisions_is_an_urgent_alarm_with_what_to_do(changed: dict[str, Any], text: str, todo: str) -> None:
    (alarm,) = alarms(replace(THREE, **changed))
    assert text in alarm.text
    assert todo in alarm.todo
    assert alarm.is_urgent
    (band,) = alarm_lines(replace(THREE, **changed))
    assert band.text.startswith(f"!! {alarm.text}. Next: ")
    assert [span.style for span in band.spans] == [ALARM]


@pytest.mark.parametrize(
    ("changed", "text", "todo"),
    [
        ({"confirmation": "unconfirmed"}, "UNCONFIRMED: the election of sched-2 is in doubt", "restart no node"),
        ({"confirmation": "degraded"}, "DEGRADED: sched-2 took over by leader lease", "mend ZooKeeper"),
        ({"forced_to": "sched-1"}, "FORCED to sched-1: the other nodes stand aside", "leader force --lift"),
        (
            {"forced_to": "sched-2", "heartbeat_age": 4.1 * SECOND},
            "FORCED to sched-2, which is silent: the force lapses",
            "leader force NODE",
        ),
        (
            {"forced_to": "sched-1", "nodes": (replace(NODE, age=5.1 * SECOND), LEADER)},
            "FORCED to sched-1, which is silent",
            "leader force NODE",
        ),
    ],
)
def test_what_needs_a_look_while_ticks_are_decided_is_an_alarm_too(
    changed: dict[str, Any], text: str, todo: str
) -> None:
    (alarm,) = alarms(replace(THREE, **changed))
    assert alarm.text.startswith(text)
    assert todo in alarm.todo
    assert not alarm.is_urgent
    (band,) = alarm_lines(replace(THREE, **changed))
    assert band.text.startswith("! ")
    assert [span.style for span in band.spans] == [WARNING]


@pytest.mark.parametrize(
    ("changed", "todo"),
    [
        ({"is_halted": True}, "Next: h lifts it"),
        ({"forced_to": "sched-1"}, "`sexton leader force --lift` ends it, F moves it"),
        ({"heartbeat_age": 60 * SECOND, "leader": "sched-9"}, "F forces sched-"),
    ],
)
def test_the_consoles_band_tells_its_keys_in_the_place_of_commands(changed: dict[str, Any], todo: str) -> None:
    (band,) = alarm_lines(replace(THREE, **changed), with_keys=True)
    assert todo in band.text


def test_an_alarms_name_is_its_first_words_whatever_nodes_are_called() -> None:
    loud = replace(THREE, leader="NODE-A", confirmation="degraded", is_halted=True, halt=Halt(NOW, "ANA", "X: Y"))
    assert [alarm.name for alarm in alarms(loud)] == ["HALTED", "DEGRADED"]
    assert [alarm.name for alarm in alarms(replace(loud, heartbeat_age=60 * SECOND))] == ["HALTED", "NO LEADER"]


def test_several_alarms_are_all_told_the_urgent_ones_first() -> None:
    found = alarms(replace(THREE, confirmation="degraded", is_halted=True, forced_to="sched-1"))
    assert [alarm.text.split()[0].rstrip(":") for alarm in found] == ["HALTED", "DEGRADED", "FORCED"]


def test_the_clock_that_a_silent_node_doubted_is_no_alarm() -> None:
    assert alarms(replace(THREE, nodes=(LEADER, replace(NODE, clock_jump=61 * SECOND, age=31 * SECOND)))) == ()


def test_what_a_silent_node_saw_of_zookeeper_is_not_shown_as_so() -> None:
    frozen = replace(THREE.nodes[0], age=5.1 * SECOND, coordinator_servers=servers_seen("leader", "leader", "leader"))
    overview = replace(THREE, nodes=(frozen, *THREE.nodes[1:]))
    assert texts(overview) == [*texts(THREE)[:8], "○ sched-1  silent for 5.1 s", texts(THREE)[9]]
    assert "○ sched-1  200 ms" in texts(replace(THREE, nodes=(replace(frozen, age=5 * SECOND),)))[-1]
    alone = replace(THREE, nodes=(frozen,))
    assert texts(alone)[3] == "ZooKeeper: no fresh word of its servers"


# --- servers ----------------------------------------------------------------------------------------


def test_a_server_that_all_nodes_see_alike_has_one_state() -> None:
    found = servers(THREE.nodes)
    assert [(server.address, server.state, server.otherwise) for server in found] == [
        ("zk1:2181", "follower", ()),
        ("zk2:2181", "leader", ()),
        ("zk3:2181", "follower", ()),
    ]
    assert has_quorum(found)


def test_a_server_that_nodes_see_differently_is_as_most_see_it_and_the_others_are_named() -> None:
    views = ("silent", "follower", "follower")
    nodes = [
        replace(node, coordinator_servers=servers_seen(view)) for node, view in zip(THREE.nodes, views, strict=True)
    ]
    (server,) = servers(nodes)
    assert (server.state, server.serves, server.otherwise) == ("follower", True, (("silent", ("sched-1",)),))
    (even,) = servers(nodes[:2])
    assert (even.state, even.serves) == ("follower", True)  # it serves one of them: it serves


def test_fewer_servers_than_more_than_half_are_no_quorum() -> None:
    assert not has_quorum(servers(DOWN))
    assert not has_quorum(())


# --- the block --------------------------------------------------------------------------------------


def test_the_block_says_who_the_word_how_far_claims_are_written_and_how_servers_and_nodes_stand() -> None:
    assert texts(THREE) == [
        "● sched-2  term 3  since 02:30:00",
        "  confirmed, beat 1.0 s, ZooKeeper",
        "  claims to 02:31:00, 1m00s ahead",
        "ZooKeeper 3 of 3 serve",
        "  connected to zk1:2181, 6s, session 0x1a",
        "  follower    zk1:2181",
        "  leader      zk2:2181",
        "  follower    zk3:2181",
        "○ sched-1  200 ms behind, +1 ms",
        "○ sched-3  cold, 200 ms behind, +1 ms",
    ]


def test_in_little_room_what_is_well_is_told_shortly() -> None:
    head = texts(THREE)[:3]
    assert texts(THREE, 6) == [
        *head,
        "ZooKeeper 3 of 3 serve, session 6s",
        "○ sched-1  200 ms behind, +1 ms",
        "○ sched-3  cold, 200 ms behind, +1 ms",
    ]
    assert texts(THREE, 5) == [*head, "ZooKeeper 3 of 3 serve, session 6s", "○ sched-1, sched-3"]
    lost = replace(THREE, nodes=(replace(NODE, age=40 * SECOND), *THREE.nodes[1:]))
    assert texts(lost, 5)[-1] == "○ sched-3; silent: sched-1"


def test_in_little_room_what_is_not_well_keeps_its_lines() -> None:
    assert texts(replace(THREE, nodes=DOWN), 9)[3:] == [
        "ZooKeeper 0 of 3 serve",
        "  not connected, session 0x1a: no server answers",
        "  not serving zk1:2181",
        "  refused     zk2:2181",
        "  refused     zk3:2181",
        "○ sched-1, sched-3",
    ]
    short = texts(replace(THREE, nodes=DOWN), 5)[3]
    assert short == "ZooKeeper 0 of 3 serve"


def test_a_server_in_dispute_says_who_sees_it_otherwise() -> None:
    nodes = (
        replace(THREE.nodes[0], coordinator_servers=servers_seen("follower", "silent", "follower")),
        *THREE.nodes[1:],
    )
    assert texts(replace(THREE, nodes=nodes))[6:8] == ["  leader      zk2:2181", "    silent as sched-1 sees it"]
    assert texts(replace(THREE, nodes=nodes), 5)[3] == "ZooKeeper 3 of 3 serve; 1 in dispute"


def test_without_zookeeper_no_servers_are_told_of() -> None:
    assert texts(replace(THREE, coordinator="database:", elected_by=ElectedBy.DATABASE))[1:4] == [
        "  confirmed, beat 1.0 s, by lease",
        "  claims to 02:31:00, 1m00s ahead",
        "○ sched-1  200 ms behind, +1 ms",
    ]


def test_the_word_is_in_capitals_unless_all_is_well() -> None:
    assert texts(replace(THREE, confirmation="degraded"))[1] == "  DEGRADED, beat 1.0 s, by lease"
    assert texts(replace(THREE, confirmation="unconfirmed"))[1] == "  UNCONFIRMED, beat 1.0 s"
    assert texts(replace(THREE, leader=None))[0] == "NO LEADER  last term 3"
    silent = texts(replace(THREE, heartbeat_age=12 * SECOND))
    assert silent[:2] == ["○ sched-2  term 3  since 02:30:00", "  NO LEADER, beat 12 s ago"]


def test_a_term_taken_by_lease_or_force_is_zookeepers_once_it_has_confirmed_it() -> None:
    for elected_by in (ElectedBy.DATABASE, ElectedBy.FORCED):
        assert texts(replace(THREE, elected_by=elected_by))[1] == "  confirmed, beat 1.0 s, ZooKeeper"
    forced = replace(THREE, elected_by=ElectedBy.FORCED, confirmation="unconfirmed")
    assert texts(forced)[1] == "  UNCONFIRMED, beat 1.0 s, forced"


def test_claims_that_have_run_out_are_said_to_be_behind() -> None:
    assert texts(replace(THREE, claims_upto=NOW - 3 * SECOND))[2] == "  claims to 02:29:57, 3.0 s behind"
    assert texts(replace(THREE, claims_upto=None))[2] == "  claims: the leader has not said yet"


def test_a_killed_leader_whose_node_was_started_again_may_be_followed_by_that_node_too() -> None:
    again = replace(LEADER, role="follower")
    overview = replace(THREE, claims_upto=None, heartbeat_age=12 * SECOND, nodes=(again,))
    assert "another node should take over" in alarms(overview)[0].todo
    assert texts(overview)[2] == "  5 claims ahead, run in time"
    assert "start `sexton scheduler`" in alarms(replace(overview, nodes=(LEADER,)))[0].todo


def test_a_program_gets_the_word_the_alarms_and_each_nodes_view_of_each_server() -> None:
    nodes = (replace(THREE.nodes[0], coordinator_servers=servers_seen("silent")), *THREE.nodes[1:])
    record = leadership_record(replace(THREE, nodes=nodes, confirmation="degraded"))
    assert (record["word"], record["session"]) == ("degraded", "session 0x1a, 6s, connected to zk1:2181")
    assert record["servers"][0] == {
        "address": "zk1:2181",
        "state": "follower",
        "serves": True,
        "seen": {"sched-1": "silent", "sched-2": "follower", "sched-3": "follower"},
    }
    assert [alarm.text.split(":")[0] for alarm in record["alarms"]] == ["DEGRADED"]


def test_a_race_has_no_alarm_and_says_what_it_costs() -> None:
    racers = tuple(replace(NODE, name=name, role="racer") for name in ("one", "two"))
    counters = {"race_attempts": 1234, "race_conflicts": 822, "race_ticks": 617}
    racing = replace(THREE, **RACE, nodes=racers, counters=counters, leader_since=NOW - 60 * SECOND)
    assert alarms(racing) == ()
    assert needs(racing) == ()
    head, beat, _, cost, *nodes = texts(racing)
    assert head == f"racing  2 nodes  term {racing.term}  since 02:29:00"
    assert beat.startswith("  no coordinator, beat ")
    assert cost == "  2.0 attempts a tick: 1,234 attempts, 822 conflicts, 617 ticks"
    assert [line[:5] for line in nodes] == ["\u25cf one", "\u25cf two"]  # and nothing of ZooKeeper's servers
