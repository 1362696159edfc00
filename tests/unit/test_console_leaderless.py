"""Nobody leads: what the band says of the likely cause, and what to do next; plain values in and out."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import pytest

from sexton_tui.console.core.leadership import alarm_lines
from sexton_tui.console.core.standing import alarms
from tests.unit.test_console_needs import NODE, SECOND
from tests.unit.test_console_standing import DOWN, LEADER, THREE

GONE: dict[str, Any] = {"leader": None, "heartbeat_age": 40 * SECOND}
AWAY = tuple(replace(node, age=40 * SECOND) for node in THREE.nodes)
CUT_OFF = tuple(
    replace(node, coordinator_status=status)
    for node, status in zip(
        THREE.nodes[::2], ("connecting to zk1:2181: it refuses the login", "session 0x1b, not connected"), strict=True
    )
)


@pytest.mark.parametrize(
    ("changed", "why", "todo"),
    [
        ({"heartbeat_age": 12 * SECOND}, "", "another node should take over now: `sexton cluster`"),
        (
            {"heartbeat_age": 19 * SECOND},
            ", no node took over",
            "`sexton leader force sched-1`; the nodes' logs tell why",
        ),
        (
            {"heartbeat_age": 12 * SECOND, "nodes": (*THREE.nodes[:2], AWAY[2])},
            ", sched-3 silent too",
            "another node should take over now: `sexton cluster`",
        ),
        (
            {"heartbeat_age": 40 * SECOND, "nodes": AWAY},
            ", sched-1 and sched-3 silent for 40 s",
            "no node lives or reaches the database: start `sexton scheduler`",
        ),
        (
            {"heartbeat_age": 40 * SECOND, "nodes": tuple(replace(AWAY[0], name=f"n{n}") for n in range(4))},
            ", 4 nodes silent for 40 s",
            "no node lives or reaches the database: start `sexton scheduler`",
        ),
        (
            {"heartbeat_age": 12 * SECOND, "forced_to": "sched-9"},
            ", the others stand aside for sched-9, which is silent",
            "`sexton leader force --lift`",
        ),
        (
            {"heartbeat_age": 12 * SECOND, "nodes": (replace(NODE, inputs_id="x"), LEADER)},
            ", the others stand aside, for their inputs differ",
            "no node has the cluster's inputs: `sexton inputs`",
        ),
        (
            {"heartbeat_age": 12 * SECOND, "nodes": DOWN},
            ", ZooKeeper is away (0 of 3 serve)",
            "mend ZooKeeper; a node takes over after 30 s",
        ),
        (
            {"heartbeat_age": 49 * SECOND, "nodes": DOWN},
            ", ZooKeeper is away (0 of 3 serve), and no node took over",
            "mend ZooKeeper, or `sexton leader force sched-1`",
        ),
        (
            {"heartbeat_age": 12 * SECOND, "nodes": CUT_OFF},
            ", no node has a session with ZooKeeper (it refuses the login)",
            "`sexton cluster`, or `sexton leader force sched-1`",
        ),
        (
            {"heartbeat_age": 12 * SECOND, "nodes": CUT_OFF, "coordinator": "database:"},
            "",
            "another node should take over now: `sexton cluster`",
        ),
    ],
)
def test_no_leader_tells_the_likely_cause_and_what_to_do_about_it(changed: dict[str, Any], why: str, todo: str) -> None:
    overview = replace(THREE, **changed)
    alarm = alarms(overview)[0]
    silent = f"sched-2 gives no sign of life for {overview.heartbeat_age.seconds} s"
    assert (alarm.text, alarm.todo) == (f"NO LEADER: {silent}{why}; no tick is decided", todo)
    assert len(textwrap.wrap(alarm_lines(overview)[0].text, 78)) <= 3  # the band, on a terminal of 80 columns


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"term": 0, "nodes": ()}, "NO LEADER: no node has led yet; no tick is decided"),
        ({"nodes": ()}, "NO LEADER: no tick is decided"),
        ({"nodes": AWAY[:1], "predecessor": "sched-2"}, "NO LEADER since sched-2 handed over: sched-1 silent for 40 s"),
    ],
)
def test_where_nobody_lives_the_next_thing_is_to_start_a_scheduler(changed: dict[str, Any], text: str) -> None:
    alarm = alarms(replace(THREE, **(GONE | changed)))[0]
    assert alarm.text.startswith(text)
    assert alarm.todo.endswith(": start `sexton scheduler`")


def test_a_halted_cluster_without_a_leader_tells_the_halt_first() -> None:
    found = alarms(replace(THREE, **GONE, is_halted=True))
    assert [alarm.name for alarm in found] == ["HALTED", "NO LEADER"]
