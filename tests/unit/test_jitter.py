"""Jitter: a fixed delay per job and tick, by a real hash (invariant 8)."""

from datetime import UTC, datetime, timedelta

from sexton.job_rules import FiringRules, firing_rules
from sexton.jobs import JobDefinition
from sexton.targets import CommandTarget

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(seconds=60)
TICKS = [NOON + timedelta(minutes=number) for number in range(500)]


def delays(seed: str, upto: timedelta = timedelta(seconds=60)) -> list[timedelta]:
    rules = FiringRules(jitter=upto, jitter_seed=seed)
    return [rules.jitter_of(tick) for tick in TICKS]


def test_it_is_the_same_for_ever() -> None:
    assert [delay // timedelta(milliseconds=1) for delay in delays("billing")[:4]] == [59153, 28542, 32197, 31421]


def test_names_that_are_anagrams_differ_and_so_do_ticks() -> None:
    assert delays("job-ab") != delays("job-ba")
    assert len(set(delays("job-ab"))) > 400


def test_it_spreads_over_all_that_it_may_use_on_whole_milliseconds() -> None:
    spread = delays("billing")
    assert all(timedelta(0) <= delay <= timedelta(seconds=60) and not delay.microseconds % 1000 for delay in spread)
    tenths = {delay // timedelta(seconds=6) for delay in spread}
    assert tenths >= set(range(10))
    assert set(delays("billing", timedelta(milliseconds=1))) == {timedelta(0), timedelta(milliseconds=1)}


def test_a_job_keeps_its_delays_under_another_name_and_a_seed_of_its_own_decides() -> None:
    job = JobDefinition("a", ({"cron": "* * * * *"},), CommandTarget(("x",)), jitter=timedelta(seconds=60))
    assert [firing_rules(job.firing_text("billing")).jitter_of(tick) for tick in TICKS] == delays("billing")


def test_without_jitter_the_seed_is_not_stored_and_equal_jobs_share_their_rules() -> None:
    job = JobDefinition("a", ({"cron": "* * * * *"},), CommandTarget(("x",)))
    assert job.firing_text("a") == job.firing_text("b")
    assert firing_rules(job.firing_text("a")).jitter_of(NOON) == timedelta(0)


def test_it_is_spread_evenly_over_ticks_and_over_jobs() -> None:
    """Chi-square of 20 classes, 19 degrees of freedom: above 43.8 in one case of a thousand. The data are fixed."""
    ticks = [NOON + timedelta(minutes=number) for number in range(4_000)]
    over_ticks = [FiringRules(jitter=MINUTE, jitter_seed="billing").jitter_of(tick) for tick in ticks]
    over_jobs = [FiringRules(jitter=MINUTE, jitter_seed=f"job-{number}").jitter_of(NOON) for number in range(4_000)]
    for delays_in in (over_ticks, over_jobs):
        classes = [0] * 20
        for delay in delays_in:
            classes[min(delay // timedelta(seconds=3), 19)] += 1
        expected = len(delays_in) / len(classes)
        assert sum((count - expected) ** 2 / expected for count in classes) < 43.8


def test_neighbours_in_time_and_in_name_have_nothing_to_do_with_each_other() -> None:
    for one, other in (("job-1", "job-2"), ("ab", "ba"), ("listen", "silent")):
        together = sum((a < MINUTE / 2) == (b < MINUTE / 2) for a, b in zip(delays(one), delays(other), strict=True))
        assert 190 < together < 310, "of 500 that are early or late alike"


def test_it_moves_no_tick_and_a_change_of_it_is_no_change_of_the_schedule() -> None:
    """The identity of a tick is its instant; jitter is a firing rule."""
    plain = JobDefinition("a", ({"cron": "* * * * *"},), CommandTarget(("x",)))
    spread = JobDefinition("a", ({"cron": "* * * * *"},), CommandTarget(("x",)), jitter=MINUTE)
    assert plain.schedule_text("a") == spread.schedule_text("a")
    assert plain.firing_text("a") != spread.firing_text("a")
