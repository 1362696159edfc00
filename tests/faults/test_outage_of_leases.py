"""The database is away for longer than every lease, while runs of every kind are in flight.

Runs that may outlive their leases go on, and their results count when the database is back: nobody takes claims away
who has not reached the database for one lease without a break. Runs that may not are ended while it is away, by the
worker's own clock. `make soak` has it away for five minutes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from sexton.claims import State
from sexton.store.tables import claims, jobs, runs
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.runs import is_alive
from tests.support.source_tree import ROOT
from tests.support.trial import Trial, wait_until
from tests.support.waiting import stays

LEASE = "8s"  # long enough for a heartbeat on a machine however busy
BEYOND = 3.0  # seconds that the outage goes on after the last lease
FIVE_MINUTES = 300.0

# Each kind of job, what it says of leases, and its gate: whether its runs end during the outage, or after it.
KINDS = {
    "during": ("", "during"),
    "after": ("", "after"),
    "killed": ("on_lease_lost: kill", "after"),
    "once": ("on_worker_lost: fail", "after"),
}
MAY_GO_ON, MAY_NOT = ("during", "after"), ("killed", "once")
TARGETS = ("shell", "python")
JOBS = [f"{kind}-{target}" for kind in KINDS for target in TARGETS]

STROKE = """
  every-stroke:
    schedule: "* * * * * *"
    command: ["true"]
    overlap: queue
    missed: {policy: all, grace: 60s, max: 1000}
"""


def definition(kind: str, target: str) -> str:
    rule, gate = KINDS[kind]
    note = f"FOLDER/{kind}-{target}"
    what = {
        "shell": f'shell: "echo $$ >> {note}; while [ ! -e FOLDER/gate-{gate} ]; do sleep 0.1; done"',
        "python": f"python: tests.support.work_module:wait_for_file\n    args: [{note}, FOLDER/gate-{gate}]",
    }[target]
    return f"""
  {kind}-{target}:
    schedule: {{at: ["2036-12-24T18:00:00Z"]}}
    {what}
    {rule}
"""


@pytest.fixture
def trial(processes: ProcessGroup, own_postgres_server: PostgresServer) -> Iterator[Trial]:
    """A node and two workers on a PostgreSQL of their own."""
    text = "".join(definition(kind, target) for kind in KINDS for target in TARGETS)
    with contextlib.closing(Trial(processes, own_postgres_server.create_database())) as made:
        made.environment |= {"PYTHONPATH": str(ROOT), "SEXTON_SLOTS": str(len(JOBS))}
        made.apply(f"version: 1\njobs:{STROKE}{text}", {"lease": LEASE, "heartbeat": "1s"})
        made.start(nodes=1)
        yield made


def pids(trial: Trial, *kinds: str) -> list[int]:
    """The processes that the runs of these kinds noted, one line a run."""
    notes = [trial.folder / f"{kind}-{target}" for kind in kinds for target in TARGETS]
    return [int(pid) for note in notes if note.exists() for pid in note.read_text().split()]


def present(trial: Trial) -> dict[str, tuple[State, int | None]]:
    """State and token of the claim of each job that was triggered."""
    statement = select(jobs.c.name, claims.c.state, claims.c.token).join(claims, claims.c.job_id == jobs.c.job_id)
    with trial.store.reads.snapshot() as connection:
        rows = connection.execute(statement.where(jobs.c.name.in_(JOBS))).all()
    return {row.name: (State(row.state), row.token) for row in rows}


def outcomes(trial: Trial, job: str) -> list[State]:
    statement = select(runs.c.outcome).join(jobs, jobs.c.job_id == runs.c.job_id).where(jobs.c.name == job)
    with trial.store.reads.snapshot() as connection:
        return [State(one) for one in connection.execute(statement.order_by(runs.c.token)).scalars()]


def begin(trial: Trial) -> None:
    """Trigger every job; all runs are in flight after it."""
    wanted = select(jobs.c.name, jobs.c.job_id).where(jobs.c.name.in_(JOBS))
    with trial.store.reads.snapshot() as connection:
        found = connection.execute(wanted).all()
    for row in found:
        trial.store.edits.trigger(row.job_id, "trial", None)
    wait_until(lambda: len(pids(trial, *KINDS)) == len(JOBS), "all runs are in flight")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Where it is short, one kind of outage: the one in which connections stay open and nothing answers."""
    if "how" in metafunc.fixturenames:
        metafunc.parametrize("how", ["freeze", "kill"] if metafunc.config.getoption("soak") else ["freeze"])


def test_an_outage_longer_than_every_lease(
    trial: Trial, own_postgres_server: PostgresServer, how: str, soak: float, tmp_path: Path
) -> None:
    begin(trial)
    before = present(trial)
    assert {state for state, _ in before.values()} == {State.RUNNING}
    if how == "freeze":
        own_postgres_server.freeze()
    else:
        own_postgres_server.kill()
    wait_until(lambda: not any(map(is_alive, pids(trial, *MAY_NOT))), "what must not outlive its lease is ended")
    stays(
        lambda: all(map(is_alive, pids(trial, *MAY_GO_ON))),
        during=FIVE_MINUTES if soak else BEYOND,
        what="the others go on",
    )
    (tmp_path / "gate-during").touch()
    wait_until(lambda: not any(is_alive_run(pid) for pid in pids(trial, "during")), "runs end while it is away")
    assert len(pids(trial, *KINDS)) == len(JOBS)  # and none began
    if how == "freeze":
        own_postgres_server.thaw()
    else:
        own_postgres_server.start()
    trial.wait_for_database()
    wait_until(lambda: present(trial)["during-shell"][0] is State.SUCCEEDED, "results that were kept are written")
    trial.wait_for_runs(3)
    (tmp_path / "gate-after").touch()
    wait_until(lambda: {state for state, _ in present(trial).values()} == {State.SUCCEEDED, State.LOST}, "all ended")
    after = present(trial)
    for target in TARGETS:
        for kind in MAY_GO_ON:
            job = f"{kind}-{target}"
            assert after[job] == (State.SUCCEEDED, before[job][1]), job
            assert outcomes(trial, job) == [State.SUCCEEDED]
        assert outcomes(trial, f"killed-{target}") == [State.READY, State.SUCCEEDED]
        assert outcomes(trial, f"once-{target}") == [State.LOST]
    noted = {kind: len(pids(trial, kind)) for kind in KINDS}
    assert noted == {"during": 2, "after": 2, "killed": 4, "once": 2}
    trial.audit()


def is_alive_run(pid: int) -> bool:
    """Whether this process is alive and is not a Python process at rest, which outlives its runs."""
    try:
        return is_alive(pid) and b"python_child" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
