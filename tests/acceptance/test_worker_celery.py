"""The celery target with a real Redis broker and a real Celery worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sexton.targets import CeleryTarget
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from tests.support.processes import ProcessGroup
from tests.support.redis_server import PASSWORD, RedisServer, celery_worker
from tests.support.runs import Runs, is_alive
from tests.support.waiting import eventually

TICK = "2026-03-29T01:00:00Z"


@pytest.fixture
def redis(processes: ProcessGroup) -> RedisServer:
    server = RedisServer(processes)
    server.start()
    return server


@pytest.fixture
def runs() -> Iterator[Runs]:
    with Runs(environment={"SEXTON_SECRET_REDIS": PASSWORD}) as runs:
        yield runs


def address(redis: RedisServer) -> str:
    """As Celery's own side has it."""
    return f"redis://:{quote(PASSWORD, safe='')}@{redis.place}/0"


def task(redis: RedisServer, name: str, **keys: Any) -> CeleryTarget:
    return CeleryTarget(f"redis://:${{secret:redis}}@{redis.place}/0", f"billing.{name}", **keys)


def assert_failed(ended: EndedRun, says: str, *names: str) -> None:
    assert says in ended.error
    assert "\n" not in ended.error
    assert PASSWORD not in ended.error
    assert (ended.ending, ended.exit_code) == (Ending.RAISED, None)
    assert set(names) <= set(ended.exceptions)


def test_a_deployment_gets_its_ticks_and_runs_may_wait_for_its_tasks(
    runs: Runs, redis: RedisServer, processes: ProcessGroup, tmp_path: Path
) -> None:
    sent = runs.run(task(redis, "nightly", args=(1, [None]), kwargs={"who": "Ä"}))  # before anybody is there to take it
    assert (sent.ending, sent.exit_code, sent.error) == (Ending.EXITED, 0, "")
    with celery_worker(processes, address(redis), address(redis), tmp_path):
        eventually((tmp_path / "nightly").exists, 60, "the task ran")
        assert json.loads((tmp_path / "nightly").read_text()) == {
            "id": f"nightly@{TICK}-3",
            "args": [1, [None]],
            "kwargs": {"who": "Ä"},
            "token": sent.token,
            "sexton_job": "nightly",
            "sexton_tick": TICK,
            "sexton_attempt": 3,
            "sexton_claim": f"nightly@{TICK}",
        }
        # Every run of these is the same attempt at the same claim: what the first one left would be its result.
        redis_flush(redis)
        ended = runs.run(task(redis, "nightly", args=(1, 2), wait=True))
        assert (ended.ending, ended.error, ended.stdout) == (Ending.EXITED, "", b'returned {"sent": 2}\n')
        redis_flush(redis)
        ended = runs.run(task(redis, "fail", wait=True))
        assert_failed(ended, "the task billing.fail failed: NoFundsError: no funds", "NoFundsError")
        assert b"Traceback" in ended.stderr
        redis_flush(redis)
        token = runs.start(task(redis, "hang", wait=True))
        eventually((tmp_path / "hang").exists, 60, "the task hangs")
        runs.execution.stop(token, StopReason.CANCELLED)
        assert runs.end_of(token).ending is Ending.CANCELLED
        pid = json.loads((tmp_path / "hang").read_text())
        eventually(lambda: not is_alive(pid), 60, "the task was terminated")


def test_a_deployment_without_results_is_not_waited_for(
    runs: Runs, redis: RedisServer, processes: ProcessGroup, tmp_path: Path
) -> None:
    with celery_worker(processes, address(redis), None, tmp_path):
        ended = runs.run(task(redis, "nightly", wait=True))
    assert ended.ending is Ending.NOT_STARTED
    assert "wait: true needs a result backend, and the workers of redis://127.0.0.1" in ended.error
    assert not (tmp_path / "nightly").exists()
    ended = runs.run(CeleryTarget("amqp://nobody:x@127.0.0.1:1//", "billing.nightly", wait=True))
    assert ended.ending is Ending.NOT_STARTED
    assert "the broker amqp://127.0.0.1:1// keeps no results; name one as celery: {backend: ...}" in ended.error


def test_a_broker_that_is_away_or_does_not_let_us_in_fails_the_run_in_a_sentence(
    runs: Runs, redis: RedisServer
) -> None:
    away = runs.run(CeleryTarget("redis://:hidden@127.0.0.1:1/0", "billing.nightly"))
    assert_failed(away, "the broker redis://127.0.0.1:1/0 did not take the task billing.nightly: ", "BrokerUnreachable")
    assert "hidden" not in away.error
    refused = runs.run(CeleryTarget(f"redis://:wrong@{redis.place}/0", "billing.nightly"))
    assert_failed(refused, f"the broker redis://{redis.place}/0 did not take the task", "BrokerUnreachable")
    redis.freeze()
    try:
        assert_failed(runs.run(task(redis, "nightly")), "did not take the task billing.nightly within 10 s")
    finally:
        redis.thaw()


def test_a_worker_without_celery_says_what_to_install(redis: RedisServer, tmp_path: Path) -> None:
    (tmp_path / "celery.py").write_text("raise ModuleNotFoundError(\"No module named 'celery'\", name='celery')\n")
    with Runs(environment={"PYTHONPATH": str(tmp_path), "SEXTON_SECRET_REDIS": PASSWORD}) as runs:
        ended = runs.run(task(redis, "nightly"))
    assert ended.ending is Ending.NOT_STARTED
    assert "needs the library celery (No module named 'celery'); install sexton[celery] where" in ended.error


def test_a_worker_that_allows_brokers_uses_no_others(redis: RedisServer) -> None:
    with Runs(environment={"SEXTON_SECRET_REDIS": PASSWORD}, allow=(f"redis://{redis.place}/0",)) as runs:
        assert runs.run(task(redis, "nightly")).error == ""
        kept_elsewhere = task(redis, "nightly", wait=True, backend="redis://:pw@elsewhere/0")
        assert "redis://elsewhere/0 is not among the brokers and backends" in runs.run(kept_elsewhere).error
        ended = runs.run(CeleryTarget(f"redis://{redis.place}/1", "billing.nightly"))
    assert ended.ending is Ending.NOT_STARTED
    assert f"redis://{redis.place}/1 is not among the brokers and backends that this worker may use" in ended.error


def redis_flush(redis: RedisServer) -> None:
    """Forget all results."""
    import redis as library

    with library.Redis(port=redis.port, password=PASSWORD) as client:
        client.flushdb()
