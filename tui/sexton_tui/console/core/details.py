"""What a run and a takeover open into, as lines, and what of a job is told on one."""

from __future__ import annotations

from datetime import datetime

from sexton.claims import Overlap, State
from sexton.job_rules import QUEUE_LIMIT, Limits
from sexton.jobs import JobDefinition
from sexton.output_views import LiveOutput
from sexton.secret_texts import shown_text
from sexton.settings import format_duration
from sexton.sizes import size_text
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, PythonTarget, ShellTarget, Target
from sexton.terms import EndedBy
from sexton.views import ClaimView, RunOutput, TakeoverDetail
from sexton_tui.console.core.lines import BAD, DIM, STRONG, WARN, Line, line, text_lines
from sexton_tui.console.core.overview import decided_words, gap_words
from sexton_tui.console.core.words import duration, instant, late_words, plural, since_words, size, state_style

_HOW_ENDED = {
    "none": "the first leader of this cluster",
    "resigned": "handed over",
    "vanished": "vanished: its heartbeat stopped",
    "forced": "was replaced by force",
}


def claim_line(claim: ClaimView, now: datetime) -> Line:
    """A tick's claim on one line."""
    late = None if claim.started_at is None else claim.started_at - claim.scheduled_at - claim.jitter
    parts = [] if late is None else [(f"  {late_words(late)} late", DIM)]
    if claim.is_blocked and claim.state is State.READY:
        parts.append(("  blocked by the pause", WARN))
    return line(
        f"  {instant(claim.scheduled_at, now):>12}  ",
        (f"{claim.state.word:<10}", state_style(claim.state)),
        (f" {claim.origin.word}", DIM),
        *parts,
        f"  {claim.reason}" if claim.reason else "",
    )


def overlap_words(definition: JobDefinition) -> str:
    """What a tick does that finds the slot busy, and whose slot that is where it is not the job's own."""
    words = definition.overlap.name.lower()
    if definition.overlap is Overlap.QUEUE and definition.queue_limit != QUEUE_LIMIT:
        words += f", at most {definition.queue_limit} wait"
    if (key := definition.concurrency_key) is not None:
        words += f", of {key.limit} at once with the key {key.key}"
    return words


def limits_words(limits: Limits) -> str:
    """What each process of a run may use."""
    words = (
        f"memory {size_text(limits.memory)}" if limits.memory is not None else "",
        f"processor time {format_duration(limits.cpu_time)}" if limits.cpu_time is not None else "",
        f"{limits.open_files} open files" if limits.open_files is not None else "",
    )
    return ", ".join(filter(None, words))


def target_words(target: Target) -> str:
    """What the job runs, on one line; what looks like a secret is hidden."""
    return shown_text("", _target_words(target))


def _target_words(target: Target) -> str:
    match target:
        case CommandTarget(argv):
            return " ".join(argv)
        case ShellTarget(script):
            first, _, rest = script.strip().partition("\n")
            return f"sh: {first}{' …' if rest else ''}"
        case PythonTarget(reference):
            return f"python: {reference}"
        case HttpTarget(url, method):
            return f"{method} {url}"
        case CeleryTarget(_, task):
            return f"celery: {task}"


def run_lines(output: RunOutput, now: datetime) -> list[Line]:
    """A run opened: how it went, and the tails of what it wrote."""
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
    for name, kept, written in (
        ("stdout", output.stdout, run.stdout_bytes),
        ("stderr", output.stderr, run.stderr_bytes),
    ):
        lines += [line(), line((name, STRONG), (f"  {size(written)} written{_kept(kept, written)}", DIM))]
        if kept:
            lines += text_lines(kept)
    return lines


def live_lines(claim: ClaimView, live: LiveOutput | None, now: datetime) -> list[Line]:
    """A run that goes on, opened: since when it runs, and the newest part of what it has written."""
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
    if live is None:
        return [*lines, line(), line(("asking its worker for the output so far", DIM))]
    for name, data, written in (
        ("stdout", live.stdout, live.stdout_bytes),
        ("stderr", live.stderr, live.stderr_bytes),
    ):
        shown = f", the last {size(len(data))} shown" if len(data) < written else ""
        lines += [line(), line((name, STRONG), (f"  {size(written)} so far{shown}", DIM))]
        if data:
            lines += text_lines(data)
    return lines


def _kept(kept: bytes | None, written: int) -> str:
    if kept is None:
        return ", nothing kept" if written else ""
    return f", the last {size(len(kept))} kept" if len(kept) < written else ""


def takeover_lines(detail: TakeoverDetail, now: datetime) -> list[Line]:
    """The head of an opened takeover: who followed whom, the gap, and what was decided in all."""
    takeover = detail.takeover
    totals = takeover.totals
    before = takeover.predecessor or "nobody"
    lines = [
        line(
            (f"term {takeover.term}: {takeover.node}", STRONG),
            " leads again, after its own term ended under a force"
            if takeover.predecessor == takeover.node and takeover.predecessor_ended is EndedBy.FORCED
            else f" took over from {before}, which {_HOW_ENDED[takeover.predecessor_ended.value]}"
            if takeover.predecessor
            else f" leads, {_HOW_ENDED[takeover.predecessor_ended.value]}",
        ),
        line(
            ("gap ", DIM),
            gap_words(takeover),
            ("  planned in ", DIM),
            duration(takeover.planning),
            ("  elected by ", DIM),
            takeover.elected_by.value,
            *(
                [(f"  {takeover.blockers_terminated} blockers terminated", WARN)]
                if takeover.blockers_terminated
                else []
            ),
        ),
    ]
    if totals.missed:
        lines.append(line(f"{plural(totals.jobs, 'job')}, {decided_words(totals)}"))
    else:
        lines.append(line("no tick was missed: claims had been written ahead"))
    if (late := takeover.not_started).missed:
        lines.append(line(f"later, claimed but not started: {plural(late.jobs, 'job')}, {decided_words(late)}"))
    if not detail.is_whole:
        lines.append(line((f"only the first {len(detail.decisions)} decisions are shown", WARN)))
    return lines
