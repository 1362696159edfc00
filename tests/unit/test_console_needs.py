from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sexton.catch_up import CatchUp
from sexton.cluster_views import (
    FailingJob,
    Lateness,
    LostRun,
    NodeView,
    Overview,
    ProposalView,
    QuarantinedJob,
    QueueView,
    Undecided,
    WorkerView,
)
from sexton.queue_rules import QueueRule
from sexton.terms import CoordinatorServer, ElectedBy
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.needs import needs
from sexton_tui.console.core.offers import offered
from sexton_tui.console.core.overview import need_line, pace_line, work_lines
from sexton_tui.console.core.standing import alarms
from sexton_tui.console.core.subjects import OfProposal
from tests.unit.test_console_plot import minute

NOW = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)

NODE = NodeView(
    *("sched-1", "a:1", "0.1.0", 7, "follower", None, "connected", 9),
    *(timedelta(milliseconds=200), timedelta(milliseconds=1), None, "2026b/1", NOW, NOW, SECOND),
)
WORKER = WorkerView(1, "worker-1", "a", "0.1.0", 8, ("default",), 4, 1, False, NOW, NOW, None, SECOND)
QUEUE = QueueView("default", 0, 5, 0, None, 1, 4, 1)
HEALTHY = Overview(
    now=NOW,
    cluster_id="c",
    term=3,
    leader="sched-2",
    leader_since=NOW,
    elected_by=ElectedBy.ZOOKEEPER,
    predecessor=None,
    strategy="leader",
    coordinator="zookeeper://a/b",
    is_halted=False,
    inputs_id="2026b/1",
    resign_requested=False,
    confirmation="confirmed",
    heartbeat_age=SECOND,
    claims_upto=NOW + 60 * SECOND,
    nodes=(NODE,),
    workers=(WORKER,),
    queues=(QUEUE,),
    lateness=Lateness(),
    minutes=(),
    takeover_marks=(),
    running=1,
    parked=0,
    failed_last_hour=0,
    jobs=9,
    paused=0,
    quarantined=(),
    proposals=(),
    counters={},
    settings={},
)
OLD = NOW - 31 * SECOND


def servers_seen(*states: str) -> tuple[CoordinatorServer, ...]:
    """zk1, zk2, ... in these states."""
    return tuple(CoordinatorServer(f"zk{number}:2181", state) for number, state in enumerate(states, start=1))


def test_a_healthy_cluster_needs_nobody() -> None:
    assert needs(HEALTHY) == ()
    assert alarms(HEALTHY) == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"leader": None}, "NO LEADER"),
        ({"is_halted": True}, "HALTED"),
        ({"heartbeat_age": 11 * SECOND}, "NO LEADER: sched-2 gives no sign of life for 11 s"),
        ({"nodes": (replace(NODE, clock_jump=61 * SECOND),)}, "CLOCK IN DOUBT"),
        ({"counters": {"swallowed": 2}}, "2 ticks swallowed"),
        ({"queues": (replace(QUEUE, workers=0),)}, "queue default has no worker"),
        (
            {"queues": (replace(QUEUE, due=7, oldest=OLD),)},
            "queue default is behind: 7 claims due, the oldest for 31 s",
        ),
        (
            {"queues": (replace(QUEUE, due=7, oldest=OLD, rule=QueueRule(2, 10.0)),)},
            "queue default is behind: 7 claims due, the oldest for 31 s; its limit is slots 2, rate 10/s",
        ),
        ({"quarantined": (QuarantinedJob("feed", NOW, "too slow"),)}, "feed is quarantined: too slow"),
        (
            {"proposals": (ProposalView(1, "gl", NOW, NOW, 3, OLD, NOW, 3),)},
            "1 proposal held, the oldest for 31 s (gl)",
        ),
    ],
)
def test_what_stops_ticks_is_urgent(changed: dict[str, Any], said: str) -> None:
    (need,) = needs(replace(HEALTHY, **changed))
    assert said in need.text
    assert need.is_urgent


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"heartbeat_age": 4.1 * SECOND}, "leader sched-2 is silent for 4.1 s: a follower takes over after 6.0 s"),
        ({"confirmation": "unconfirmed"}, "UNCONFIRMED: the election of sched-2 is in doubt; it goes on"),
        ({"confirmation": "degraded"}, "DEGRADED: sched-2 took over by leader lease"),
        ({"forced_to": "sched-1"}, "FORCED to sched-1"),
        (
            {"nodes": (replace(NODE, coordinator_servers=servers_seen("follower", "leader", "refused")),)},
            "ZooKeeper: 2 of 3 serve (refused: zk3:2181)",
        ),
        (
            {"nodes": (replace(NODE, coordinator_servers=servers_seen("not serving", "refused", "refused")),)},
            "ZooKeeper: 0 of 3 serve (not serving: zk1:2181, refused: zk2:2181 zk3:2181); no election can be held",
        ),
        ({"nodes": (replace(NODE, age=5.1 * SECOND),)}, "node sched-1 was last heard of 5.1 s ago"),
        (
            {"nodes": (replace(NODE, clock_offset=-2 * SECOND),)},
            "clock of sched-1 differs from the database's by -2.0 s",
        ),
        ({"nodes": (replace(NODE, inputs_id="2026a/1"),)}, "sched-1 may not lead"),
        ({"workers": (replace(WORKER, age=31 * SECOND),)}, "worker-1 was last heard of 31 s ago"),
    ],
)
def test_what_may_go_wrong_is_a_warning(changed: dict[str, Any], said: str) -> None:
    (need,) = needs(replace(HEALTHY, **changed))
    assert said in need.text
    assert not need.is_urgent


def test_a_late_beat_follows_the_session() -> None:
    slow = replace(HEALTHY, heartbeat_age=7 * SECOND, settings={"session": "20s"})
    assert needs(slow) == ()
    assert len(needs(replace(slow, heartbeat_age=9.9 * SECOND, settings={"session": "12s"}))) == 1


def test_a_queue_that_keeps_up_or_is_empty_needs_nobody() -> None:
    assert needs(replace(HEALTHY, queues=(replace(QUEUE, due=7, oldest=NOW - 29 * SECOND),))) == ()
    assert needs(replace(HEALTHY, queues=(replace(QUEUE, due=0, ahead=0, workers=0),))) == ()


def test_undecided_ticks_are_urgent_once_they_are_late() -> None:
    undecided = Undecided(jobs=2, oldest=NOW - 11 * SECOND, oldest_job="billing", looked_at=9)
    (need,) = needs(HEALTHY, (), undecided)
    assert (need.text, need.is_urgent) == ("2 jobs with undecided ticks, the oldest due 11 s ago (billing)", True)
    assert needs(HEALTHY, (), replace(undecided, oldest=NOW - 9 * SECOND)) == ()


def test_a_server_that_one_node_alone_cannot_reach_is_told_with_the_node() -> None:
    cut_off = replace(NODE, name="sched-3", coordinator_servers=servers_seen("silent"))
    nodes = (*(replace(NODE, name=name, coordinator_servers=servers_seen("leader")) for name in "ab"), cut_off)
    (need,) = needs(replace(HEALTHY, nodes=nodes))
    assert (need.text, need.is_urgent) == ("ZooKeeper zk1:2181: leader, but silent for sched-3", False)


def test_a_worker_that_was_started_again_needs_nobody_and_its_old_row_counts_no_slots() -> None:
    again = replace(HEALTHY, workers=(replace(WORKER, age=31 * SECOND), replace(WORKER, worker_id=2, busy=3)))
    assert needs(again) == ()
    assert "1 worker, 3 of 4 slots busy" in [line.text for line in work_lines(again)]


def test_urgent_needs_come_first() -> None:
    failing = FailingJob("sync-eu", 7, NOW, "exit code 7")
    found = needs(replace(HEALTHY, leader=None, confirmation="degraded"), [failing])
    assert [need.is_urgent for need in found] == [True, False]
    assert found[1].text == "job sync-eu failed 7 in a row: exit code 7"


def test_jobs_that_failed_at_their_last_run_are_named_each_or_where_they_are_many_together() -> None:
    failing = [FailingJob(f"job-{number}", 1, NOW, "exit code 7") for number in range(10)]
    few = needs(HEALTHY, [replace(failing[0], failed=2), failing[1]])
    assert [need.text for need in few] == [
        "job job-0 failed at its last 2 runs: exit code 7",
        "job job-1 failed at its last run: exit code 7",
    ]
    (many,) = needs(HEALTHY, failing)
    names = "job-0, job-1, job-2, job-3, job-4, job-5, job-6, job-7"
    assert (many.text, many.is_urgent) == (f"10 jobs failed at their last run: {names} and 2 more", False)
    (lost,) = needs(replace(HEALTHY, lost=(LostRun("job-1", NOW, "worker-2", NOW),)), failing[1:2])
    assert "was lost" in lost.text


def test_what_the_banner_tells_in_full_is_only_named_below_it() -> None:
    halted = replace(HEALTHY, is_halted=True, confirmation="unconfirmed")
    shown = [need_line(need, under_banner=True, with_keys=True).text for need in needs(halted)]
    assert shown == ["! HALTED (above) · h lifts it", "· UNCONFIRMED (above)"]
    (halt, _) = needs(halted)
    assert need_line(halt).text.startswith("! HALTED: no tick is decided, no claim granted. Next: ")
    assert [need.alarm for need in needs(replace(HEALTHY, leader=None))] == ["NO LEADER"]
    assert [need.alarm for need in needs(replace(HEALTHY, nodes=(replace(NODE, clock_jump=SECOND),)))] == [
        "CLOCK IN DOUBT"
    ]


def test_work_says_what_waits_runs_and_failed() -> None:
    lines = [line.text for line in work_lines(replace(HEALTHY, paused=1, failed_last_hour=3))]
    assert lines[:5] == [
        "ready 0 due, 5 ahead",
        "1 run, 0 parked, 3 failed in 1 h",
        "no catch-up; 50/s, 10 at once",
        "1 worker, 1 of 4 slots busy",
        "9 jobs, 1 paused",
    ]


def test_in_little_room_work_tells_the_catch_up_and_the_queues_that_need_somebody_first() -> None:
    gpu = QueueView("gpu", 3, 0, 0, OLD, 0, 0, 0)
    crowded = replace(HEALTHY, queues=(QUEUE, replace(QUEUE, name="mail"), gpu))
    catching_up = CatchUp(NOW, 50, 10, running=4, waiting={"catch_up": 1200}, done_in=timedelta(minutes=5))
    assert [line.text for line in work_lines(crowded, catching_up, width=36, height=7)] == [
        "ready 3 due, 10 ahead, oldest 31 s",
        "1 run, 0 parked, 0 failed in 1 h",
        "catch-up 1,200, done in about 5m",
        "  budget 50/s, 4 of 10 at once",
        "1 worker 1/4 busy; 9 jobs",
        "gpu  3 due for 31 s  no worker",
        "2 more queues: key 7",
    ]


def test_ticks_a_second_are_those_that_started_in_the_stretch_looked_at() -> None:
    seen = replace(HEALTHY, lateness=Lateness(5_000, SECOND, SECOND, SECOND, within=42 * SECOND))
    assert pace_line(seen, 36).text == "119 ticks/s  0 lost races  0 stale"
    assert pace_line(HEALTHY).text == "0 ticks/s  0 lost races  0 stale writes refused"


def test_in_the_console_needs_name_the_keys_that_act_on_them() -> None:
    held = replace(HEALTHY, proposals=(ProposalView(7, "gl", NOW, NOW, 2, OLD, NOW, 3),))
    (need,) = needs(held)
    assert need.about == OfProposal("gl", 7)
    told = "! 1 proposal held, the oldest for 31 s (gl)"
    assert need_line(need).text == told
    assert need_line(need, with_keys=True).text == f"{told} · a approves, x rejects, 3 lists"


def test_no_key_is_named_that_could_do_nothing_now() -> None:
    (need,) = needs(replace(HEALTHY, leader=None))
    assert (need.alarm, need.keys) == ("NO LEADER", "F forces a node")
    (need,) = needs(replace(HEALTHY, leader=None, nodes=()))
    assert (need.alarm, need.keys) == ("NO LEADER", "")
    forced = [need for need in needs(replace(HEALTHY, forced_to="sched-1")) if need.alarm == "FORCED"]
    assert [need.keys for need in forced] == [""]
    assert not offered("force_leader", None, read_only=False, can_kill=True, can_undo=True, can_force=False)
    assert offered("force_leader", None, read_only=False, can_kill=True, can_undo=True, can_force=True)


def test_a_row_of_failures_as_long_as_was_looked_at_may_be_longer() -> None:
    texts = [need.text for need in needs(HEALTHY, [FailingJob("bell", number, NOW, "") for number in (9, 10)])]
    assert texts == [f"job bell failed {number} in a row: no reason given" for number in ("9", "10 or more")]


def test_lost_runs_are_urgent_and_named_with_job_and_worker() -> None:
    lost = (
        LostRun("payroll", NOW - 60 * SECOND, "worker-2", NOW),
        LostRun("payroll", NOW - 120 * SECOND, "worker-2", OLD),
        LostRun("bell", NOW - 120 * SECOND, "worker-1", OLD),
    )
    found = needs(replace(HEALTHY, lost=lost))
    assert [(need.text, need.is_urgent) for need in found] == [
        ("job payroll: a run was lost with worker-2 (tick 02:29:00, 2 in 1 h)", True),
        ("job bell: a run was lost with worker-1 (tick 02:28:00)", True),
    ]
    assert found[0].todo == "see on worker-2 what it did; again: `sexton trigger payroll`"


def test_under_a_force_a_silent_leader_is_not_followed_before_the_force_has_lapsed() -> None:
    found = needs(replace(HEALTHY, forced_to="sched-2", heartbeat_age=4.1 * SECOND))
    assert [need.text for need in found] == [
        "FORCED to sched-2, which is silent: the force lapses 15 s after its last word",
        "leader sched-2 is silent for 4.1 s: a follower takes over after 6.0 s, once its force has lapsed",
    ]


def test_history_keeps_peaks_and_reads_only_the_newest_minutes() -> None:
    first = replace(HEALTHY, minutes=(minute(5, 900), minute(1, 5)), takeover_marks=(NOW - 5 * SECOND,))
    history = LatenessHistory().merged(first)
    assert history.since == NOW - 60 * SECOND
    again = replace(HEALTHY, now=NOW + 60 * SECOND, minutes=(minute(1, 4), minute(0, 7)))
    history = history.merged(again)
    lateness = {one.at: one.lateness.max for one in history.minutes}
    assert lateness[NOW - 300 * SECOND] == timedelta(milliseconds=900)
    assert lateness[NOW - 60 * SECOND] == timedelta(milliseconds=5)  # seen once: the newest sample has it no more
    assert lateness[NOW] == timedelta(milliseconds=7)
    assert history.takeovers == {NOW - 5 * SECOND}
    late = history.merged(replace(HEALTHY, now=NOW + timedelta(minutes=40)))
    assert (late.minutes, late.takeovers) == ((), frozenset())
