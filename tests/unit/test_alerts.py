"""What is wrong enough to tell somebody, as values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sexton.alerts import (
    CLUSTER,
    CROWD,
    REST,
    AlertChanges,
    AlertKind,
    DueAlert,
    Failures,
    HeldTicks,
    MissedTicks,
    OpenAlert,
    Signs,
    WaitingTicks,
    alert_changes,
    in_crowds,
    retry_delay,
    trial_message,
)
from sexton.job_rules import NO_ALERT_RULES, AlertRules

NOW = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
PATIENCE = 30 * SECOND


def signs(**keys: Any) -> Signs:
    known: dict[str, Any] = {"now": NOW, "heartbeat_at": NOW - SECOND, "who": "n1"}
    return Signs(**(known | keys))


def changes(watched_for: timedelta = MINUTE, **keys: Any) -> AlertChanges:
    return alert_changes(signs(**keys), watched_for, PATIENCE)


def sentences(watched_for: timedelta = MINUTE, **keys: Any) -> list[str]:
    return [one.sentence for one in changes(watched_for, **keys).raised]


def waiting(late: timedelta, job_id: int = 1, **keys: Any) -> WaitingTicks:
    known: dict[str, Any] = {"count": 1, "start_by": NOW + SECOND, "is_caught_up": False, "rules": NO_ALERT_RULES}
    tick = NOW - late
    return WaitingTicks(job_id, f"job-{job_id}", tick, tick, **(known | keys))


def test_nobody_leads_for_longer_than_the_node_is_patient() -> None:
    (raised,) = changes(heartbeat_at=NOW - 31 * SECOND).raised
    assert (raised.kind, raised.job_id, raised.since) == (AlertKind.NO_LEADER, CLUSTER, NOW - 31 * SECOND)
    assert raised.sentence.startswith("no node leads since 2026-03-29T00:59:29Z")
    assert raised.sentence.endswith("the last was n1")
    assert sentences(heartbeat_at=NOW - 30 * SECOND) == []
    assert sentences(heartbeat_at=NOW - MINUTE, is_race=True)[0].startswith("no node races")


def test_a_cluster_that_was_down_is_given_the_time_to_elect() -> None:
    week = timedelta(days=7)
    assert changes(watched_for=PATIENCE, heartbeat_at=NOW - week).raised == ()
    assert len(changes(watched_for=PATIENCE + SECOND, heartbeat_at=NOW - week).raised) == 1


def test_who_leads_and_decides_nothing_is_told() -> None:
    (told,) = sentences(claims_upto=NOW - 31 * SECOND)
    assert told == "ticks from 2026-03-29T00:59:29Z on are undecided although n1 leads; its log says why"
    assert sentences(claims_upto=NOW - 30 * SECOND) == []
    assert sentences(claims_upto=NOW - MINUTE, is_halted=True) == []
    assert sentences(watched_for=PATIENCE, claims_upto=NOW - MINUTE) == []


@pytest.mark.parametrize(
    ("keys", "is_told"),
    [
        ({"start_by": NOW + SECOND}, False),
        ({"start_by": NOW - SECOND}, True),
        ({"start_by": None}, False),  # parked: it waits for its slot
        ({"start_by": None, "is_caught_up": True}, True),
        ({"rules": AlertRules(late=2 * MINUTE)}, True),
        ({"rules": AlertRules(late=3 * MINUTE)}, False),
        ({"rules": AlertRules(late=4 * MINUTE), "start_by": NOW - SECOND, "is_caught_up": True}, False),
    ],
)
def test_a_tick_is_late_beyond_its_start_or_what_the_job_says(keys: dict[str, Any], is_told: bool) -> None:
    told = sentences(waiting=(waiting(3 * MINUTE, **keys),))
    assert told == (["job job-1: tick 2026-03-29T00:57:00Z has not started 3m after it fell due"] if is_told else [])


def test_nothing_is_late_while_the_cluster_is_halted() -> None:
    assert sentences(is_halted=True, waiting=(waiting(MINUTE, start_by=NOW - SECOND),)) == []


def test_a_late_job_recovers_with_its_next_run_and_not_before() -> None:
    for is_open, recovered in (
        (OpenAlert(AlertKind.LATE, 1), ()),
        (OpenAlert(AlertKind.LATE, 1, has_run_since=True), ((AlertKind.LATE, 1),)),
        (OpenAlert(AlertKind.LATE, 1, is_moot=True), ((AlertKind.LATE, 1),)),
    ):
        assert changes(open_alerts=(is_open,)).recovered == recovered
    still = waiting(MINUTE, start_by=NOW - SECOND)
    ran = OpenAlert(AlertKind.LATE, 1, has_run_since=True)
    found = changes(open_alerts=(ran,), waiting=(still,))
    assert (found.raised, found.recovered) == ((), ())


def test_other_alerts_recover_when_their_cause_is_gone() -> None:
    keys = [(AlertKind.NO_LEADER, CLUSTER), (AlertKind.FAILING, 1), (AlertKind.HELD, 2), (AlertKind.QUARANTINED, 3)]
    assert list(changes(open_alerts=tuple(OpenAlert(*key) for key in keys)).recovered) == keys


@pytest.mark.parametrize(("rules", "is_told"), [(NO_ALERT_RULES, False), (AlertRules(failures=3), True)])
def test_failures_are_told_where_the_job_asks_for_it(rules: AlertRules, is_told: bool) -> None:
    assert bool(sentences(failures=(Failures(1, "a", 3, NOW, NOW, rules),))) is is_told
    assert sentences(failures=(Failures(1, "a", 2, NOW, NOW, rules),)) == []


def test_no_living_node_may_lead() -> None:
    (told,) = sentences(inputs_id="2026b/1/0.109", node_inputs={"n1": "2026a/1/0.109", "n2": "2026a/1/0.109"})
    assert "they have 2026a/1/0.109" in told
    assert sentences(inputs_id="b", node_inputs={"n1": "a", "n2": "b"}) == []
    assert sentences(inputs_id="", node_inputs={"n1": "a"}) == []


def missed(job_id: int = 1, due: timedelta = SECOND, rules: AlertRules = NO_ALERT_RULES) -> MissedTicks:
    return MissedTicks(job_id, f"job-{job_id:03}", NOW, NOW - due, 1, "skipped", NOW, rules)


def test_a_tick_that_will_not_run_is_told_at_once_or_when_the_job_says() -> None:
    told = ["job job-001: a tick up to 2026-03-29T01:00:00Z did not run: skipped"]
    assert sentences(missed=(missed(),)) == told
    rules = AlertRules(late=10 * MINUTE)
    assert sentences(missed=(missed(due=10 * MINUTE, rules=rules),)) == []
    assert sentences(missed=(missed(due=10 * MINUTE + SECOND, rules=rules),)) == told
    long = AlertRules(late=timedelta(days=1))
    assert sentences(missed=(missed(due=51 * MINUTE, rules=long),)) == told, "decisions are looked at for an hour"


def test_many_jobs_in_the_same_trouble_are_one_alert() -> None:
    """An outage is not a storm; what was told before it is not told again, nor taken for recovered."""
    many = tuple(missed(number) for number in range(1, CROWD + 2))
    one_open = OpenAlert(AlertKind.LATE, 1, sentence=changes(missed=many[:1]).raised[0].sentence)
    found = changes(missed=many, open_alerts=(one_open,))
    (crowd,) = found.raised
    assert (crowd.job_id, found.recovered) == (CLUSTER, ())
    assert crowd.sentence.startswith(f"{CROWD + 1} jobs are late: job-001, job-002, ")
    open_alerts = (one_open, OpenAlert(AlertKind.LATE, CLUSTER, sentence=crowd.sentence))
    assert changes(missed=many, open_alerts=open_alerts) == AlertChanges((), ())


def test_the_end_of_a_crowd_is_no_storm_either() -> None:
    """It lasts until few are left, and these are told."""
    many = tuple(missed(number) for number in range(1, CROWD + 1))
    crowd = OpenAlert(AlertKind.LATE, CLUSTER)
    drained = changes(missed=many[:-1], open_alerts=(crowd,))
    assert (drained.raised, drained.recovered) == ((), ())
    assert [one.sentence.split(":")[0] for one in drained.reworded] == [f"{CROWD - 1} jobs are late"]
    assert [one.job_id for one in in_crowds(signs(missed=many, open_alerts=(crowd,)), 3)] == [1, 2, 3]
    assert in_crowds(signs(missed=many), 3) == ()
    rest = changes(missed=many[:REST], open_alerts=(crowd,))
    assert [one.job_id for one in rest.raised] == [1, 2, 3, 4, 5]
    assert rest.recovered == ((AlertKind.LATE, CLUSTER),)


def test_an_open_alert_says_how_it_stands_now() -> None:
    """In whole minutes, so that it does not change with each look."""
    before = changes(waiting=(waiting(5 * MINUTE, start_by=NOW - SECOND),)).raised[0].sentence
    is_open = OpenAlert(AlertKind.LATE, 1, sentence=before)
    (now,) = changes(open_alerts=(is_open,), waiting=(waiting(6 * MINUTE, count=3, start_by=NOW - SECOND),)).reworded
    assert now.sentence.endswith("has not started 6m after it fell due, the oldest of 3")
    soon = changes(waiting=(waiting(5 * MINUTE + 59 * SECOND, start_by=NOW - SECOND),)).raised[0].sentence
    assert soon.endswith("5m after it fell due")


def test_the_message_of_an_end_reads_as_one() -> None:
    due = DueAlert(AlertKind.HELD, 1, 1, 2, NOW, None, "job a: a tick waits", NOW + 90 * SECOND, "a", "ops", "c")
    assert due.message("n1")["sentence"] == "over, after 1m30s: job a: a tick waits"
    trial = trial_message("c", "n1", NOW)
    assert trial.keys() == due.message("n1").keys()
    assert (trial["kind"], trial["state"]) == ("test", "open")


def test_held_ticks_wait_for_an_answer() -> None:
    assert sentences(held=(HeldTicks(1, "a", 1, NOW),)) == [
        "job a: a missed tick waits for an answer; `sexton holds list` shows them"
    ]


def test_who_cannot_be_told_is_tried_less_and_less_often() -> None:
    waits = [retry_delay(attempt) for attempt in (1, 2, 3, 8, 1_000)]
    assert waits == [5 * SECOND, 10 * SECOND, 20 * SECOND, 10 * MINUTE, 10 * MINUTE]
