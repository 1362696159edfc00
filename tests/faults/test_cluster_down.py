"""The cluster is down, and its cursors are set back: what the nodes decide once they are there again, row by row.

Invariants 2 and 7, `docs/missed-ticks.md`: a job for each policy missed the same eighteen ticks, ten minutes apart, the
newest of them five minutes ago.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from sexton.claims import Origin, State
from tests.support.leader_scene import rows, set_columns
from tests.support.trial import LONG, Trial, wait_until

EVERY = timedelta(minutes=10)
TICKS = 18
POLICIES = {  # of the jobs, by name
    "skips": "{policy: skip}",
    "skips-but-forgives": "{policy: skip, grace: 10m}",
    "latest": "{policy: latest}",
    "all": "{policy: all}",
    "all-of-an-hour": "{policy: all, within: 1h}",
    "newest-four": "{policy: all, max: 4}",
    "holds": "{policy: hold}",
}
# What became of them, oldest first: so many without a claim for this reason, so many that ran, and their origin.
EXPECTED: dict[str, list[tuple[int, str]]] = {
    "skips": [(18, "skipped")],
    "skips-but-forgives": [(17, "skipped"), (1, "schedule succeeded")],
    "latest": [(17, "merged"), (1, "catch_up succeeded")],
    "all": [(18, "catch_up succeeded")],
    "all-of-an-hour": [(12, "expired"), (6, "catch_up succeeded")],
    "newest-four": [(14, "expired"), (4, "catch_up succeeded")],
    "holds": [(18, "held")],
}


def test_cursors_set_back_under_a_cluster_that_is_down(
    trial: Trial, record_property: Callable[[str, object], None]
) -> None:
    newest = trial.store.now().replace(microsecond=0) - timedelta(minutes=5)
    begin = newest - TICKS * EVERY
    trial.apply(job_file(anchor=newest))
    set_columns(trial.url, "revisions", {}, in_force_since=begin)
    trial.start(nodes=2, workers=1)
    stop_all(trial)
    term = trial.term()

    done = trial.sexton(
        "cursors", "set", "--all", "--to", f"{begin:%Y-%m-%dT%H:%M:%SZ}", "--reason", "a trial", "--yes"
    )
    assert f"{TICKS * len(POLICIES)} ticks to be decided anew" in done
    assert rows(trial.url, "claims") == []
    for name in trial.nodes:
        trial.start_node(name)
    taken = trial.finished(trial.takeover_after(term).term)
    for name in trial.workers:
        trial.start_worker(name)
    wait_until(lambda: not unended(trial), "what was claimed has run")

    found = {name: became(trial, name) for name in POLICIES}
    assert found == EXPECTED
    assert [(row.count, row.state, row.after, row.upto) for row in rows(trial.url, "proposals")] == [
        (TICKS, "open", begin, newest)
    ]
    report = trial.audit()
    assert (report["due"], report["decided"]) == (TICKS * len(POLICIES),) * 2
    told = "; ".join(f"{name}: {', '.join(f'{count} {what}' for count, what in found[name])}" for name in found)
    record_property("told", f"{told}; decided by {taken.node}; audit: {report['decided']} of {report['due']} decided")


def job_file(anchor: datetime) -> str:
    """A tick every ten minutes before and after this one."""
    schedule = f'{{every: 10m, anchor: "{anchor:%Y-%m-%dT%H:%M:%SZ}"}}'
    jobs = [
        f"\n  {name}:\n    schedule: {schedule}\n    command: ['true']\n    missed: {missed}"
        for name, missed in POLICIES.items()
    ]
    return f"version: 1\njobs:{''.join(jobs)}\n"


def stop_all(trial: Trial) -> None:
    """Everybody leaves in order."""
    everybody = (*trial.workers.values(), *trial.nodes.values())
    for process in everybody:
        process.signal(signal.SIGTERM)
    for process in everybody:
        assert process.wait(within=LONG) == 0, process.report()


def became(trial: Trial, job: str) -> list[tuple[int, str]]:
    """What became of the job's ticks, oldest first; neighbours with one fate together."""
    job_id = trial.store.edits.find_job(job).job_id
    fates = [(row.upto, row.count, row.reason) for row in rows(trial.url, "skips", job_id=job_id)]
    fates += [
        (row.scheduled_at, 1, f"{Origin(row.origin).word} {State(row.state).word}")
        for row in rows(trial.url, "claims", job_id=job_id)
    ]
    groups = groupby(sorted(fates), key=itemgetter(2))
    return [(sum(count for _, count, _ in group), fate) for fate, group in groups]


def unended(trial: Trial) -> list[object]:
    return [row for row in rows(trial.url, "claims") if row.state in (State.READY, State.PARKED, State.RUNNING)]
