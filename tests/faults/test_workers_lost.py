"""Workers are killed, and frozen past their leases, in the middle of their runs.

Invariant 4: a run that is granted again has a higher token, the old one's write is refused and counted; what may run at
most once is lost instead, and never runs twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from sexton.claims import State
from sexton.views import ClaimView
from tests.support.judge import Judge
from tests.support.trial import Trial, wait_until


@dataclass(frozen=True, slots=True)
class Busy:
    """A worker in the middle of two runs: one that may be granted again, and one that may not."""

    worker: str
    retried: ClaimView
    once: ClaimView


def test_workers_killed_and_frozen_in_the_middle_of_their_runs(trial: Trial, judge: Judge, tries: int) -> None:
    trial.apply()
    trial.start()
    for _ in range(tries):
        victim = strike(trial, "kill")
        check_what_it_ran(trial, victim)
        trial.start_worker(victim.worker)
        trial.wait_for_workers()

        refused = trial.counter("stale_results")
        victim = strike(trial, "freeze")
        check_what_it_ran(trial, victim)
        trial.workers[victim.worker].thaw_tree()
        wait_for_refusals(trial, refused)
        trial.wait_for_runs(5)
        judge.check()


def wait_for_refusals(trial: Trial, before: int) -> None:
    wait_until(lambda: trial.counter("stale_results") > before, "a late result is refused")


def strike(trial: Trial, blow: str) -> Busy:
    """Kill or freeze a worker with all its children; it had not ended its runs before."""
    while True:
        victim = wait_until(lambda: busy_workers(trial), "a worker is in the middle of its runs")[0]
        process = trial.workers[victim.worker]
        if blow == "kill":
            process.kill_tree()
        else:
            process.freeze_tree()
        if all(present(trial, claim) == claim.token for claim in (victim.retried, victim.once)):
            return victim
        if blow == "kill":
            trial.start_worker(victim.worker)
            trial.wait_for_workers()
        else:
            process.thaw_tree()


def busy_workers(trial: Trial) -> list[Busy]:
    """The workers that have begun a run of each long job; both runs have said so in their log."""
    logged = {token for _, _, token in trial.log()}
    found: dict[str, dict[str, ClaimView]] = {}
    for claim in trial.store.reads.running():
        if claim.token in logged and claim.worker in trial.workers and trial.workers[claim.worker].is_running():
            found.setdefault(claim.worker, {})[claim.job] = claim
    return [
        Busy(worker, claims["long-hymn"], claims["long-hymn-once"])
        for worker, claims in found.items()
        if {"long-hymn", "long-hymn-once"} <= claims.keys()
    ]


def present(trial: Trial, claim: ClaimView) -> int | None:
    """The token under which the claim is running now, if it is."""
    now = trial.store.reads.claim(claim.job, claim.scheduled_at).claim
    return now.token if now.state is State.RUNNING else None


def check_what_it_ran(trial: Trial, victim: Busy) -> None:
    """The one claim succeeds elsewhere, under a higher token; the other is lost."""

    def states() -> tuple[ClaimView, ClaimView]:
        retried, once = (
            trial.store.reads.claim(claim.job, claim.scheduled_at).claim for claim in (victim.retried, victim.once)
        )
        return retried, once

    wait_until(
        lambda: [one.state for one in states()] == [State.SUCCEEDED, State.LOST],
        f"what {victim.worker} ran is run elsewhere, or lost",
    )
    retried, once = states()
    assert retried.token is not None
    assert victim.retried.token is not None
    assert retried.token > victim.retried.token
    assert retried.worker != victim.worker
    assert once.token == victim.once.token
