"""What `sexton logs` says of a run of whose output there is nothing to print."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sexton.claims import State
from sexton.views import RunOutput, RunView
from sexton_tui.cli.listings.logs import _write
from sexton_tui.cli.listings.output_writing import Stream, TextWriter

AT = datetime(2026, 3, 29, 1, tzinfo=UTC)
SILENT = RunView(
    token=7, job_id=1, job="nightly", scheduled_at=AT, attempt=1, revision=1, worker="w1", outcome=State.SUCCEEDED,
    exit_code=0, error="", started_at=AT, finished_at=AT, lateness=None, stdout_bytes=0, stderr_bytes=0,
)  # fmt: skip
LOST = replace(SILENT, outcome=State.READY, exit_code=None, error="its worker w1 was lost")


@pytest.mark.parametrize(
    ("run", "stream", "says"),
    [
        (SILENT, Stream.BOTH, "this run wrote nothing"),
        (replace(SILENT, stderr_bytes=3), Stream.STDOUT, "this run wrote nothing to stdout"),
        (LOST, Stream.BOTH, "nothing is known of this run's output: its worker w1 was lost"),
        (replace(SILENT, stdout_bytes=3), Stream.BOTH, "nothing of this run's output was kept"),
    ],
)
def test_a_run_that_wrote_nothing_is_told_from_one_whose_output_is_lost(
    run: RunView, stream: Stream, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for stdout in (None, b""):
        _write(RunOutput(run, stdout, None), stream, TextWriter(raw=False, labels=False))
        told = capsys.readouterr()
        assert (told.out, told.err.splitlines()) == ("", [f"sexton: {says}"])
