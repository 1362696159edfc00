from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.claims import ARROWS, OnWorkerLost, State
from sexton.job_rules import RetryRules
from sexton.jobs import RunRules
from sexton.targets import CommandTarget
from sexton_worker.core.completion import Verdict, conclude, retry_delay
from sexton_worker.core.runs import EndedRun, Ending

NOW = datetime(2026, 3, 29, 1, tzinfo=UTC)
RULES = RunRules(
    target=CommandTarget(("true",)),
    env={},
    cwd=None,
    stdin=None,
    success_codes=(0, 3),
    max_runtime=timedelta(hours=1),
    kill_after=timedelta(seconds=10),
    retries=RetryRules(max=2, delay=timedelta(seconds=10), factor=3, max_delay=timedelta(minutes=1), jitter=False),
    on_worker_lost=OnWorkerLost.RETRY,
)
ONCE = replace(RULES, retries=RetryRules())


def ended(ending: Ending, code: int | None = None, *names: str, started: float | None = 1.0) -> EndedRun:
    return EndedRun(7, ending, started, 2.0, code, "why", names)


def verdict(
    end: EndedRun, rules: RunRules = RULES, *, used: int = 0, losses: int = 0, at_most_once: bool = False
) -> Verdict:
    return conclude(end, rules, retries_used=used, losses=losses, at_most_once=at_most_once, finished_at=NOW, draw=0.5)


@pytest.mark.parametrize("code", [0, 3])
def test_a_success_code_succeeds(code: int) -> None:
    assert verdict(ended(Ending.EXITED, code)) == Verdict(State.SUCCEEDED)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (ended(Ending.EXITED, 1), State.FAILED),
        (ended(Ending.RAISED, 1, "ValueError"), State.FAILED),
        (ended(Ending.NOT_STARTED, 127, started=None), State.FAILED),
        (ended(Ending.TIMED_OUT, 143), State.TIMED_OUT),
    ],
)
def test_a_failure_is_retried_while_retries_are_left(end: EndedRun, outcome: State) -> None:
    assert verdict(end, ONCE) == Verdict(outcome, "why")
    again = verdict(end, used=1)
    assert again == Verdict(State.READY, "why", retry_at=NOW + timedelta(seconds=30), uses_retry=True)
    assert verdict(end, used=2) == Verdict(outcome, "why")


def test_a_run_that_the_machine_could_not_start_goes_back_a_little_later_and_uses_no_retry() -> None:
    fault = ended(Ending.MACHINE_FAULT, started=None)
    later = Verdict(State.READY, "why", retry_at=NOW + timedelta(seconds=1.5))
    assert verdict(fault) == verdict(fault, ONCE) == verdict(fault, used=2) == later
    # Its started write was answered, but it certainly never ran.
    assert verdict(fault, ONCE, at_most_once=True) == later
    begun = ended(Ending.MACHINE_FAULT, started=1.0)  # killed at once, so nobody knows what it did
    assert verdict(begun, ONCE, at_most_once=True) == Verdict(State.LOST, "why")


def test_a_run_that_vanished_with_what_started_it_is_a_loss_and_the_third_is_one_too_many() -> None:
    gone = ended(Ending.VANISHED)
    again = Verdict(State.READY, "why", retry_at=NOW + timedelta(seconds=1.5), is_loss=True)
    assert verdict(gone) == verdict(gone, losses=1, used=2) == again
    poison = Verdict(State.LOST, "why; 3 losses of its claim, it may be what ends that process", is_loss=True)
    assert verdict(gone, losses=2) == poison
    assert verdict(gone, at_most_once=True) == Verdict(State.LOST, "why", is_loss=True)


def test_an_exception_never_succeeds_whatever_the_success_codes() -> None:
    rules = replace(ONCE, success_codes=(0, 1))
    assert verdict(ended(Ending.RAISED, 1, "ValueError"), rules).outcome is State.FAILED


@pytest.mark.parametrize(
    ("end", "on", "is_retried"),
    [
        (ended(Ending.EXITED, 75), (75,), True),
        (ended(Ending.EXITED, 1), (75,), False),
        (ended(Ending.EXITED, 1), (), False),
        (ended(Ending.RAISED, 1, "DiskFull", "jobs.DiskFull", "OSError"), ("OSError",), True),
        (ended(Ending.RAISED, 1, "DiskFull", "jobs.DiskFull", "OSError"), ("jobs.DiskFull",), True),
        (ended(Ending.RAISED, 1, "ValueError"), ("OSError", 75), False),
        (ended(Ending.NOT_STARTED, None, "ModuleNotFoundError", "ImportError"), ("ImportError",), True),
        (ended(Ending.TIMED_OUT, 143), ("TimeoutError",), True),
        (ended(Ending.TIMED_OUT, 143), ("OSError",), False),
    ],
)
def test_retries_on_names_the_failures_that_are_tried_again(
    end: EndedRun, on: tuple[int | str, ...], is_retried: bool
) -> None:
    rules = replace(RULES, retries=replace(RULES.retries, on=on))
    assert verdict(end, rules).uses_retry is is_retried


def test_cancelled_is_never_retried() -> None:
    assert verdict(ended(Ending.CANCELLED, 143)) == Verdict(State.CANCELLED, "why")


@pytest.mark.parametrize("ending", [Ending.GIVEN_BACK, Ending.LEASE_LOST])
def test_what_a_worker_gives_back_uses_no_retry_but_is_lost_if_it_may_run_only_once(ending: Ending) -> None:
    assert verdict(ended(ending, 143), used=2) == Verdict(State.READY, "why")
    assert verdict(ended(ending, 143), at_most_once=True) == Verdict(State.LOST, "why")
    unstarted = ended(ending, started=None)
    assert verdict(unstarted, at_most_once=True) == Verdict(State.READY, "why")


@given(
    ending=st.sampled_from(Ending),
    code=st.none() | st.integers(0, 255),
    used=st.integers(0, 5),
    losses=st.integers(0, 3),
    once=st.booleans(),
    started=st.none() | st.just(1.0),
)
def test_every_outcome_is_an_allowed_arrow_from_running(
    ending: Ending, code: int | None, used: int, losses: int, once: bool, started: float | None
) -> None:
    outcome = verdict(ended(ending, code, started=started), used=used, losses=losses, at_most_once=once).outcome
    assert (State.RUNNING, outcome) in ARROWS


@given(used=st.integers(0, 10_000), draw=st.floats(0, 1, exclude_max=True), factor=st.floats(1, 1e6))
def test_the_delay_stays_between_half_and_all_of_what_the_rules_say(used: int, draw: float, factor: float) -> None:
    rules = RetryRules(max=1, delay=timedelta(seconds=1), factor=factor, max_delay=timedelta(minutes=10))
    plain = retry_delay(replace(rules, jitter=False), used, draw)
    assert timedelta(seconds=1) <= plain <= timedelta(minutes=10)
    assert plain * 0.5 - timedelta(microseconds=1) <= retry_delay(rules, used, draw) <= plain
    assert retry_delay(rules, used, draw) == retry_delay(rules, used, draw)


def test_delays_grow_by_the_factor_up_to_the_most() -> None:
    delays = [retry_delay(RULES.retries, used, 0.0).total_seconds() for used in range(4)]
    assert delays == [10, 30, 60, 60]
