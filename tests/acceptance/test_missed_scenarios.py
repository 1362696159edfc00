"""What becomes of missed ticks: each row a scene on virtual time over a real ledger, and the ledger it leaves.

Invariant 2 holds at the end of each: the audit finds every tick that fell due decided exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sexton.holds import Part
from tests.support.missed_scene import (
    Jobs,
    MissedScene,
    Step,
    apply,
    approve,
    asleep,
    dying_in_its_pass,
    instant,
    paced_at,
    pause,
    reject,
    resume,
    runs_take,
    settings,
    two_approve,
    until,
    without_leader,
    without_worker,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What the job files say, what happens when, and the ledger by job."""

    name: str
    jobs: Jobs
    steps: tuple[Step, ...]
    ledger: dict[str, list[str]]


MINUTELY, HOURLY, NIGHTLY = "* * * * *", "0 * * * *", "1 2 * * *"
SECONDS = {"schedule": "* * * * * *", "overlap": "allow"}
HELD = {"schedule": HOURLY, "missed": {"policy": "hold"}}
GAP = without_leader("02:00:40", "05:30:30")  # in which an hourly job misses three ticks
WAITS = ["(02:00:30, 02:01]: record of 1 held", "proposal of 1: open"]
SOME = [f"job-{number}" for number in range(600)]

OUTAGES = (
    Row(
        "a minutely job and 3.5 minutes without a leader",
        {"minutely": {"schedule": MINUTELY}},
        (without_leader("02:02:40", "02:06:10"), until("02:08:30")),
        {
            "minutely": [
                "02:01 .. 02:02: 2 schedule succeeded",
                "(02:02, 02:05]: record of 3 merged",
                "02:06 .. 02:08: 3 schedule succeeded",
            ]
        },
    ),
    Row(
        "an every-second skip job and 45 s without a leader",
        {
            "loose": {**SECONDS, "missed": {"policy": "skip"}},
            "strict": {**SECONDS, "missed": {"policy": "skip", "grace": "10s"}},
            "latest": SECONDS,
        },
        (without_leader("02:01:00", "02:01:45"), until("02:01:50")),
        {
            "loose": ["02:00:31 .. 02:01:50: 80 schedule succeeded"],
            "strict": [
                "02:00:31 .. 02:01: 30 schedule succeeded",
                "(02:01, 02:01:33]: record of 33 skipped",
                "02:01:34 .. 02:01:50: 17 schedule succeeded",
            ],
            "latest": [
                "02:00:31 .. 02:01: 30 schedule succeeded",
                "(02:01, 02:01:43]: record of 43 merged",
                "02:01:44 .. 02:01:50: 7 schedule succeeded",
            ],
        },
    ),
    Row(
        "a nightly job 26 h late",
        {
            "newest": {"schedule": NIGHTLY},
            "both": {"schedule": NIGHTLY, "missed": {"policy": "all", "within": "2d"}},
            "fresh": {"schedule": NIGHTLY, "missed": {"within": "1h"}},
        },
        (without_leader("02:00:40", "03-03 04:01:00"), until("03-03 04:02")),
        {
            "newest": ["(02:00:30, 02:01]: record of 1 expired", "03-03 02:01: 1 catch_up succeeded"],
            "both": ["02:01 .. 03-03 02:01: 2 catch_up succeeded"],
            "fresh": ["(02:00:30, 03-03 02:01]: record of 2 expired"],
        },
    ),
    Row(
        "an all job with 300 missed",
        {
            "every": {"schedule": MINUTELY, "missed": {"policy": "all", "max": 300}},
            "usual": {"schedule": MINUTELY, "missed": {"policy": "all"}},
        },
        (without_leader("02:00:40", "07:00:30"), paced_at(50), until("07:03:30")),
        {
            "every": ["02:01 .. 06:59: 299 catch_up succeeded", "07:00 .. 07:03: 4 schedule succeeded"],
            "usual": [
                "(02:00:30, 05:20]: record of 200 expired",
                "05:21 .. 06:59: 99 catch_up succeeded",
                "07:00 .. 07:03: 4 schedule succeeded",
            ],
        },
    ),
    Row(
        "a minutely job asleep for a year",
        {"minutely": {"schedule": MINUTELY}, "every": {"schedule": MINUTELY, "missed": {"policy": "all"}}},
        (asleep("02:02:30", "2027-03-02 02:02:30"), until("2027-03-02 02:03:30")),
        {
            "minutely": [
                "02:01 .. 02:02: 2 schedule succeeded",
                "(02:02, 2027-03-01 02:02]: record of 524160 expired",
                "(2027-03-01 02:02, 2027-03-02 02:01]: record of 1439 merged",
                "2027-03-02 02:02 .. 2027-03-02 02:03: 2 schedule succeeded",
            ],
            "every": [
                "02:01 .. 02:02: 2 schedule succeeded",
                "(02:02, 2027-03-01 02:02]: record of 524160 expired",
                "(2027-03-01 02:02, 2027-03-02 00:22]: record of 1340 expired",
                "2027-03-02 00:23 .. 2027-03-02 02:01: 99 catch_up succeeded",
                "2027-03-02 02:02 .. 2027-03-02 02:03: 2 schedule succeeded",
            ],
        },
    ),
    Row(
        "600 jobs that missed one tick each",
        {name: {"schedule": NIGHTLY, "missed": {"grace": "10s"}} for name in SOME},
        (without_leader("02:00:40", "02:01:30"), paced_at(50), until("02:02")),
        {name: ["02:01: 1 catch_up succeeded"] for name in SOME},
    ),
    Row(
        "600 jobs that missed one tick each, above catch_up.hold_above",
        {name: {"schedule": NIGHTLY} for name in SOME},
        (settings(catch_up__hold_above="599"), without_leader("02:00:40", "02:01:30"), until("02:02")),
        dict.fromkeys(SOME, WAITS),
    ),
    *(
        Row(
            "five jobs that missed one tick each, above catch_up.hold_above, and who holds them dies halfway",
            {name: {"schedule": NIGHTLY} for name in SOME[:5]},
            (settings(catch_up__hold_above="4"), dying_in_its_pass(gap, 3), until("02:03")),
            dict.fromkeys(SOME[:5], WAITS),
        )
        for gap in (without_leader("02:00:40", "02:01:30"), asleep("02:00:40", "02:01:30"))
    ),
    Row(
        "a late leader dies in its pass, and its successor would fire more than catch_up.hold_above leaves",
        {name: {"schedule": NIGHTLY} for name in SOME[:5]} | {"more": {"schedule": "32 1 2 * * *"}},
        (settings(catch_up__hold_above="5"), dying_in_its_pass(asleep("02:00:40", "02:01:30"), 3), until("02:03")),
        {name: ["02:01: 1 schedule succeeded"] for name in SOME[:3]}
        | {**dict.fromkeys(SOME[3:5], WAITS), "more": ["(02:00:30, 02:01:32]: record of 1 held", WAITS[1]]},
    ),
    Row(
        "a queue without workers for three days",
        {
            "minutely": {"schedule": MINUTELY},
            "skip": {"schedule": HOURLY, "missed": {"policy": "skip"}},
            "all": {"schedule": HOURLY, "missed": {"policy": "all", "within": "2d"}},
            "hold": HELD,
            "patient": {"schedule": HOURLY, "missed": {"start_within": "7d"}, "overlap": "queue"},
        },
        (
            settings(horizon="1h"),  # claimed ahead
            without_worker("02:01:30", "03-05 02:01:30", 600),
            until("03-05 02:03:30"),
        ),
        {
            "minutely": [
                "02:01: 1 schedule succeeded",
                "02:02 .. 03-05 01:59: 4318 claimed, merged",
                "03-05 02:00: 1 catch_up succeeded",
                "03-05 02:01 .. 03-05 02:03: 3 schedule succeeded",
            ],
            "skip": ["03:00 .. 03-05 02:00: 72 claimed, skipped"],
            "all": ["03:00 .. 03-03 02:00: 24 claimed, expired", "03-03 03:00 .. 03-05 02:00: 48 catch_up succeeded"],
            "hold": ["03:00 .. 03-05 02:00: 72 claimed, held", "proposal of 72: open"],
            "patient": ["03:00 .. 03-05 02:00: 72 schedule succeeded"],
        },
    ),
    Row(
        "overlap queue behind a long run",
        {"queue": {"schedule": MINUTELY, "overlap": "queue"}, "skip": {"schedule": MINUTELY, "overlap": "skip"}},
        (
            runs_take("4m30s", "queue", "skip"),
            until("02:01:10"),
            runs_take("1s", "queue", "skip"),
            without_leader("02:02:40", "02:04:10"),
            until("02:06:30"),
        ),
        {
            "queue": [
                "02:01 .. 02:02: 2 schedule succeeded",
                "(02:02, 02:03]: record of 1 merged",
                "02:04 .. 02:06: 3 schedule succeeded",
            ],
            "skip": [
                "02:01: 1 schedule succeeded",
                "02:02: 1 claimed, skipped",
                "(02:02, 02:03]: record of 1 merged",
                "02:04 .. 02:05: 2 claimed, skipped",
                "02:06: 1 schedule succeeded",
            ],
        },
    ),
)
PROPOSALS = (
    Row(
        "a hold that nobody answers",
        {"held": {"schedule": HOURLY, "missed": {"policy": "hold", "hold_for": "2h"}}},
        (GAP, until("07:30", 60), until("07:32")),
        {
            "held": [
                "(02:00:30, 05:00]: record of 3 held",
                "06:00 .. 07:00: 2 schedule succeeded",
                "proposal of 3: lapsed by sexton",
            ]
        },
    ),
    Row(
        "a hold approved after 30 h",
        {"held": HELD},
        (GAP, until("03-03 11:30", 300), approve(), until("03-03 11:31")),
        {
            "held": [
                "(02:00:30, 05:00]: record of 3 held, run after all",
                "03:00 .. 05:00: 3 held succeeded",
                "06:00 .. 03-03 11:00: 30 schedule succeeded",
                "proposal of 3: approved by ana, 3 run",
            ]
        },
    ),
    Row(
        "a hold approved in part",
        {"held": HELD},
        (GAP, approve(part=Part(newest=2)), until("05:31")),
        {
            "held": [
                "(02:00:30, 03:00]: record of 1 held",
                "(03:00, 05:00]: record of 2 held, run after all",
                "04:00 .. 05:00: 2 held succeeded",
                "proposal of 3: approved by ana, 2 run",
            ]
        },
    ),
    Row(
        "a hold approved in its midst",
        {"held": HELD},
        (GAP, approve(part=Part(begin=instant("04:00"), end=instant("05:00"))), until("05:31")),
        {
            "held": [
                "(02:00:30, 03:00]: record of 1 held",
                "(03:00, 04:00]: record of 1 held, run after all",
                "04:00: 1 held succeeded",
                "(04:00, 05:00]: record of 1 held",
                "proposal of 3: approved by ana, 1 run",
            ]
        },
    ),
    Row(
        "a hold approved by two at once",
        {"held": HELD},
        (GAP, two_approve(("ana", Part(newest=1)), ("bo", Part())), until("05:31")),
        {
            "held": [
                "(02:00:30, 04:00]: record of 2 held",
                "(04:00, 05:00]: record of 1 held, run after all",
                "05:00: 1 held succeeded",
                "proposal of 3: approved by ana, 1 run",
            ]
        },
    ),
    Row(
        "a second gap before the first is answered",
        {"held": HELD},
        (
            GAP,
            until("06:30", 60),
            without_leader("06:30:30", "08:30:30"),
            approve(2),
            reject(1, by="bo"),
            until("08:31"),
        ),
        {
            "held": [
                "(02:00:30, 05:00]: record of 3 held",
                "06:00: 1 schedule succeeded",
                "(06:00, 08:00]: record of 2 held, run after all",
                "07:00 .. 08:00: 2 held succeeded",
                "proposal of 3: rejected by bo",
                "proposal of 2: approved by ana, 2 run",
            ]
        },
    ),
    Row(
        "an edit with a proposal open",
        {"held": HELD},
        (GAP, apply({"held": {**HELD, "schedule": "30 * * * *"}}), until("06:31", 60), approve(), until("06:32")),
        {
            "held": [
                "(02:00:30, 05:00]: record of 3 held, run after all under revision 1",
                "03:00 .. 05:00: 3 held succeeded under revision 1",
                "06:30: 1 schedule succeeded under revision 2",
                "proposal of 3: approved by ana, 3 run",
            ]
        },
    ),
    Row(
        "an edit while nobody leads",
        {"held": HELD},
        (
            without_leader("02:00:40", "05:45:30", ("03:45", apply({"held": {"schedule": "30 * * * *"}}))),
            until("05:46"),
        ),
        {
            "held": [
                "(02:00:30, 03:00]: record of 1 held under revision 1",
                "(03:00, 04:30]: record of 1 merged under revision 2",
                "05:30: 1 catch_up succeeded under revision 2",
                "proposal of 1: open",
            ]
        },
    ),
    Row(
        "a rename with a proposal open",
        {"held": HELD},
        (GAP, apply({"other": {**HELD, "renamed_from": "held"}}), until("06:01", 60), approve(), until("06:02")),
        {
            "other": [
                "(02:00:30, 05:00]: record of 3 held, run after all under revision 1",
                "03:00 .. 05:00: 3 held succeeded under revision 1",
                "06:00: 1 schedule succeeded under revision 2",
                "proposal of 3: approved by ana, 3 run",
            ]
        },
    ),
    Row(
        "a retirement with a proposal open",
        {"held": HELD, "kept": {"schedule": HOURLY}},
        (GAP, apply({"kept": {"schedule": HOURLY}}), until("06:01", 60)),
        {
            "held": ["(02:00:30, 05:00]: record of 3 held", "proposal of 3: rejected by team"],
            "kept": [
                "(02:00:30, 04:00]: record of 2 merged",
                "05:00: 1 catch_up succeeded",
                "06:00: 1 schedule succeeded",
            ],
        },
    ),
    Row(
        "a pause with a proposal open",
        {"held": HELD},
        (GAP, pause("held"), until("06:01", 60), approve(), until("07:01", 60)),
        {
            "held": [
                "(02:00:30, 05:00]: record of 3 held, run after all",
                "03:00 .. 05:00: 3 held ready",
                "(05:00, 07:00]: record of 2 paused",
                "proposal of 3: approved by ana, 3 run",
            ]
        },
    ),
    Row(
        "a pause with a proposal open, and its end",
        {"held": HELD},
        (GAP, pause("held"), until("06:01", 60), approve(), until("07:01", 60), resume("held"), until("08:01", 60)),
        {
            "held": [
                "(02:00:30, 05:00]: record of 3 held, run after all",
                "03:00 .. 05:00: 3 held succeeded",
                "(05:00, 07:00]: record of 2 paused",
                "08:00: 1 schedule succeeded",
                "proposal of 3: approved by ana, 3 run",
            ]
        },
    ),
)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in (*OUTAGES, *PROPOSALS)])
def test_missed_ticks(row: Row) -> None:
    scene = MissedScene(row.jobs)
    try:
        for step in row.steps:
            step(scene)
        assert scene.ledger() == row.ledger
        scene.assert_clean()
    finally:
        scene.close()
