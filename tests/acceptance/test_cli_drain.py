"""`sexton workers drain` where a worker is of a release that has never heard of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine, insert

from sexton.store.tables import workers
from sexton_tui.cli.main import run
from tests.support.claim_rows import now
from tests.support.ledgers import make_ledger


def test_a_drain_that_a_worker_does_not_heed_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    make_ledger(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        for name, job_format in (("old", 1), ("young", 2)):
            row = {"name": name, "address": "vm", "version": "0.0.9", "pid": 1, "queues": '["default"]', "slots": 1}
            seen = {"started_at": now(), "seen_at": now(), "job_format": job_format}
            connection.execute(insert(workers).values(**row, **seen))
    engine.dispose()

    def drain(*arguments: str) -> tuple[int, str]:
        code = run(["--database", url, "workers", "drain", *arguments])
        return code, capsys.readouterr().err

    assert drain("--queue", "default") == (
        1,
        "of an older Sexton, which does not heed this: old; send SIGTERM instead\n",
    )
    assert drain("young") == (0, "")
    assert drain("old", "--undo") == (0, "")
