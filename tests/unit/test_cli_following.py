"""What `sexton logs --follow` makes of what it reads: gaps, tries, waits, leases that ran out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from sexton.claims import Origin, State
from sexton.errors import NotFound
from sexton.output_views import KEPT_BYTES, LiveOutput, Piece
from sexton.store.protocol import Store
from sexton.views import ClaimDetail, ClaimView, RunOutput, RunView
from sexton_tui.cli.listings import following
from sexton_tui.cli.listings.following import Follower
from sexton_tui.cli.listings.output_writing import JsonLinesWriter, Stream, TextWriter
from sexton_worker.core.output_tail import OutputTail

NOW = datetime(2026, 3, 29, 1, 0, 10, tzinfo=UTC)
TICK = datetime(2026, 3, 29, 1, tzinfo=UTC)
READY = ClaimView(
    job_id=1, job="nightly", scheduled_at=TICK, revision=1, origin=Origin.SCHEDULE, state=State.READY, queue="default",
    priority=5, available_at=TICK, start_by=None, is_blocked=False, jitter=timedelta(0), attempt=0, retries=0,
    token=None, worker="", granted_at=None, lease_expires_at=None, started_at=None, finished_at=None, reason="",
    term=1, written_at=TICK,
)  # fmt: skip
RUNNING = replace(
    READY, state=State.RUNNING, token=7, attempt=1, worker="w1", lease_expires_at=NOW + timedelta(seconds=30)
)


def a_run(token: int, attempt: int, outcome: State, stdout_bytes: int = 0, **keys: Any) -> RunView:
    given: dict[str, Any] = {
        "job_id": 1, "job": "nightly", "scheduled_at": TICK, "revision": 1, "worker": "w1", "exit_code": 0, "error": "",
        "started_at": NOW, "finished_at": NOW, "lateness": None, "stderr_bytes": 0, **keys,
    }  # fmt: skip
    return RunView(token=token, attempt=attempt, outcome=outcome, stdout_bytes=stdout_bytes, **given)


class Script:
    """A store that has come further at each look at the claim."""

    def __init__(self, *moments: tuple[ClaimView, list[RunView], bytes | None, int]) -> None:
        self._moments = iter(moments)
        self.kept: dict[int, bytes] = {}
        self.watches: list[bool] = []
        self._live: LiveOutput | None = None

    @property
    def reads(self) -> Script:
        return self

    @property
    def outputs(self) -> Script:
        return self

    def now(self) -> datetime:
        return NOW

    def claim(self, job: str, tick: datetime) -> ClaimDetail:
        claim, runs, live, total = next(self._moments)
        self.runs = {run.token: run for run in runs}
        self._live = None if live is None else LiveOutput(claim.token or 0, live, b"", total, 0)
        return ClaimDetail(claim, tuple(runs))

    def live_output(self, token: int) -> LiveOutput | None:
        return self._live

    def run_output(self, token: int) -> RunOutput:
        return RunOutput(self.runs[token], self.kept.get(token), None)

    def watch(self, token: int, lasting: timedelta, *, remind: bool) -> None:
        self.watches.append(remind)


Follow = Callable[[Script], list[dict[str, Any]]]


@pytest.fixture
def follow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Follow:
    monkeypatch.setattr(following, "POLL_SECONDS", 0)

    def follow(script: Script) -> list[dict[str, Any]]:
        Follower(cast(Store, script), JsonLinesWriter(), Stream.BOTH).follow("nightly", TICK)
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return follow


def told(events: list[dict[str, Any]]) -> list[Any]:
    """Each event in a word or two."""
    words = {"output": "text", "gap": "bytes", "note": "text", "ended": "text"}
    return [(one["event"], one[words[one["event"]]]) for one in events]


def test_what_was_written_too_fast_is_counted_and_the_end_comes_from_what_was_kept(follow: Follow) -> None:
    whole = b"".join(b"%07d\n" % number for number in range(30_000))
    tail = OutputTail()
    tail.feed(whole)
    ended = replace(RUNNING, state=State.SUCCEEDED)
    script = Script(
        (RUNNING, [], b"0000000\n", 8),
        (RUNNING, [], whole[100_000:100_008], 100_008),
        (ended, [a_run(7, 1, State.SUCCEEDED, len(whole))], None, 0),
    )
    script.kept[7] = tail.kept()
    events = follow(script)
    assert [one["event"] for one in events] == ["output", "gap", "output", "gap", "output", "ended"]
    gaps = [one["bytes"] for one in events if one["event"] == "gap"]
    shown = [(one["at"], one["text"]) for one in events if one["event"] == "output"]
    assert sum(gaps) + sum(len(text) for _, text in shown) == len(whole) > KEPT_BYTES
    assert all(whole[at : at + len(text)].decode() == text for at, text in shown)


def test_a_try_that_failed_is_said_and_the_next_one_is_followed(follow: Follow) -> None:
    failed = a_run(7, 1, State.READY, 4, exit_code=3, error="exited with code 3")
    again = replace(READY, attempt=1, available_at=NOW + timedelta(seconds=20))
    second = replace(RUNNING, token=9, attempt=2)
    script = Script(
        (RUNNING, [], b"one\n", 4),
        (again, [failed], None, 0),
        (second, [failed], b"two\n", 4),
        (replace(second, state=State.FAILED), [failed, a_run(9, 2, State.FAILED, 4)], None, 0),
    )
    script.kept = {7: b"one\n", 9: b"two\n"}
    assert told(follow(script)) == [
        ("output", "one\n"),
        ("ended", "try 1 ended, to be tried again, exit code 3 after 0 ms on w1: exited with code 3"),
        ("note", "tick 2026-03-29T01:00:00Z of job 'nightly' begins again from 2026-03-29T01:00:30Z on"),
        ("output", "two\n"),
        ("ended", "try 2 failed, exit code 0 after 0 ms on w1"),
    ]


def test_waiting_is_said_once_and_a_lease_that_ran_out_too(follow: Follow) -> None:
    late = replace(RUNNING, lease_expires_at=NOW - timedelta(seconds=1))
    script = Script(
        (READY, [], None, 0),
        (READY, [], None, 0),
        (replace(READY, state=State.PARKED), [], None, 0),
        (late, [], b"", 0),
        (late, [], b"", 0),
        (replace(late, state=State.LOST), [a_run(7, 1, State.LOST, exit_code=None, error="lease lost")], None, 0),
    )
    notes = [text for event, text in told(follow(script)) if event == "note"]
    assert [note.split(" ", 5)[-1] for note in notes[:2]] == [
        "has not begun; it may",
        "waits for its slot: another run has it",
    ]
    assert "worker w1 has not renewed its lease" in notes[2]
    assert len(notes) == 3
    assert script.watches == [True]


def test_a_tick_that_ended_without_a_run_is_no_output(follow: Follow) -> None:
    skipped = replace(READY, state=State.SKIPPED, reason="run 3 was on")
    with pytest.raises(NotFound, match=r"ended without a run: it is skipped \(run 3 was on\)"):
        follow(Script((skipped, [], None, 0)))


def test_of_a_tick_that_has_ended_the_last_try_is_shown(follow: Follow) -> None:
    runs = [a_run(7, 1, State.READY, 1), a_run(9, 2, State.SUCCEEDED, 1)]
    script = Script((replace(RUNNING, state=State.SUCCEEDED, token=9), runs, None, 0))
    script.kept = {7: b"1", 9: b"2"}
    assert [event for event in told(follow(script)) if event[0] == "output"] == [("output", "2")]


# --- writing ----------------------------------------------------------------------------------------------------------


def test_text_is_escaped_whatever_the_pieces(capsys: pytest.CaptureFixture[str]) -> None:
    data = "é\t\x1b[31m\r\n".encode() + b"\xff\xc3"
    for cut in range(len(data)):
        writer = TextWriter(raw=False, labels=False)
        for piece in (Piece(0, data[:cut]), Piece(cut, data[cut:])):
            writer.piece("stdout", piece)
        writer.ended(a_run(7, 1, State.SUCCEEDED), "over")
        out, err = capsys.readouterr()
        assert out in ("é\t\\x1b[31m\n\\xff\\xc3\n", "\\xe9\t\\x1b[31m\n\\xff\\xc3\n")
        assert err == "sexton: over\n"


def test_labels_stand_before_whole_lines_of_both_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    writer = TextWriter(raw=False, labels=True)
    for name, text in (("stdout", b"a"), ("stderr", b"x\ny"), ("stdout", b"b\n"), ("stdout", b"rest")):
        writer.piece(name, Piece(0, text))
    writer.gap("stdout", 2048)
    out, err = capsys.readouterr()
    assert out == "stderr | x\nstdout | ab\nstdout | rest\nstderr | y\n"
    assert err == "sexton: ... 2 KiB of stdout not shown ...\n"


def test_an_output_begins_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    writer = TextWriter(raw=False, labels=False)
    for name, text in (("stdout", b"50 %"), ("stderr", b"oops\n"), ("stdout", b"100 %")):
        writer.piece(name, Piece(0, text))
    writer.finish()
    assert capsys.readouterr().out == "50 %\noops\n100 %\n"
