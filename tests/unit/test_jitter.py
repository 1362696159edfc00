"""Jitter: a fixed delay per job and tick, by a real hash (invariant 8)."""

from datetime import UTC, datetime, timedelta

from sexton.job_rules import FiringRules, firing_rules
from sexton.jobs import JobDefinition
from sexton.targets import CommandTarget

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
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
