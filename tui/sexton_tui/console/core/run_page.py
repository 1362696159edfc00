"""A run, opened: how it went or goes on, and what of its output is known."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sexton.claims import State
from sexton.output_views import LiveOutput
from sexton.views import ClaimView, RunOutput
from sexton_tui.console.core.lines import BAD, DIM, STRONG, WARN, Line, line, text_lines
from sexton_tui.console.core.words import duration, instant, late_words, since_words, size, state_style


class Outputs(StrEnum):
    """Which outputs of a run are shown."""

    BOTH = "both outputs"
    STDOUT = "stdout only"
    STDERR = "stderr only"

    @property
    def next(self) -> Outputs:
        """The one that comes after it, round and round."""
        ways = list(Outputs)
        return ways[(ways.index(self) + 1) % len(ways)]

    def has(self, name: str) -> bool:
        """Whether the output ``stdout`` or ``stderr`` is among them."""
        return self is Outputs.BOTH or self.value.startswith(name)


def run_lines(output: RunOutput, now: datetime) -> list[Line]:
    """A run that ended: how it went, and the tails of what it wrote."""
    return [*run_head(output, now), *run_output_lines(output)]


def run_head(output: RunOutput, now: datetime) -> list[Line]:
    """How a run that ended went: outcome, exit code, worker, times, error, and where its whole output is."""
    run = output.run
    word = "ended, to be tried again" if run.outcome is State.READY else run.outcome.word
    code = "" if run.exit_code is None else f", exit code {run.exit_code}"
    lines = [
        line((run.job, STRONG), f"  tick {instant(run.scheduled_at, now)}  try {run.attempt}  token {run.token}"),
        line((word, state_style(run.outcome)), code, f"  on {run.worker}"),
        line(
            ("started ", DIM),
            f"{instant(run.started_at, now)}, {late_words(run.lateness)} late",
            ("  ended ", DIM),
            f"{instant(run.finished_at, now)}, after {duration(run.duration)}",
        ),
    ]
    if run.error:
        lines.append(line((run.error, BAD)))
    if run.output_at:
        lines.append(line(("whole   ", DIM), f"{run.output_at}.stdout and .stderr"))
    return lines


def run_output_lines(output: RunOutput, which: Outputs = Outputs.BOTH) -> list[Line]:
    """The tails of what a run wrote, each under its name."""
    run, lines = output.run, list[Line]()
    for name, kept, written in (
        ("stdout", output.stdout, run.stdout_bytes),
        ("stderr", output.stderr, run.stderr_bytes),
    ):
        if which.has(name):
            lines += [line(), line((name, STRONG), (f"  {size(written)} written{_kept(kept, written)}", DIM))]
            lines += text_lines(kept) if kept else ()
    return lines


def _kept(kept: bytes | None, written: int) -> str:
    if kept is None:
        return ", nothing kept" if written else ""
    return f", the last {size(len(kept))} kept" if len(kept) < written else ""


def live_head(claim: ClaimView, now: datetime) -> list[Line]:
    """A run that goes on: since when, and whether its worker is still heard of."""
    since = claim.started_at or claim.granted_at
    took = "" if since is None else f"  for {since_words(since, now)}"
    lines = [
        line(
            (claim.job, STRONG),
            f"  tick {instant(claim.scheduled_at, now)}  try {claim.attempt}  token {claim.token}",
        ),
        line(("running", STRONG), took, f"  on {claim.worker}"),
    ]
    if claim.lease_expires_at is not None and claim.lease_expires_at < now:
        lines.append(line(("its worker has not renewed the lease: it may be lost", WARN)))
    return lines


def live_output_lines(live: LiveOutput | None, which: Outputs = Outputs.BOTH) -> list[Line]:
    """The newest part of what a run has written, each under its name."""
    if live is None:
        return [line(), line(("asking its worker for the output so far", DIM))]
    lines: list[Line] = []
    for name, data, written in (
        ("stdout", live.stdout, live.stdout_bytes),
        ("stderr", live.stderr, live.stderr_bytes),
    ):
        if which.has(name):
            shown = f", the last {size(len(data))} shown" if len(data) < written else ""
            lines += [line(), line((name, STRONG), (f"  {size(written)} so far{shown}", DIM))]
            lines += text_lines(data) if data else ()
    return lines
