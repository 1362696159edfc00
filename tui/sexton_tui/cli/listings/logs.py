"""``sexton logs JOB [TICK]``: what a run wrote, or has written so far.

Escaped, so that no output acts on a terminal; ``--raw`` gives the bytes as the job wrote them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Annotated

import typer

from sexton.claims import State
from sexton.errors import InvalidOption, NotFound, Refused
from sexton.output_places import read_whole
from sexton.output_views import LiveOutput, Piece, live_pieces
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunFilter, RunOutput, RunView
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.listings.following import WATCH_FOR, Follower, where_it_is_whole
from sexton_tui.cli.listings.output_writing import NAMES, JsonLinesWriter, Stream, TextWriter
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import Output, OutputOption, instant_text, print_record
from sexton_tui.console.core.run_page import run_lines

ANSWER_SECONDS = 5.0  # in which a worker tells what a run has written so far
SETTLED_SECONDS = 1.5  # in which it would have written anew what it had written down for somebody before
LOOK_SECONDS = 0.1


def logs(
    ctx: typer.Context,
    job: JobArgument,
    tick: Annotated[str | None, typer.Argument(metavar="[TICK]", help="Its tick; without it, the newest run.")] = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, help="Which try; without it, the present or the last one.")
    ] = None,
    stream: Annotated[Stream, typer.Option("--stream", help="both, stdout, or stderr.")] = Stream.BOTH,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as it writes, from its start to the end of its last try.")
    ] = False,
    label: Annotated[bool, typer.Option("--label", help="Say before each line which output it is of.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The bytes as they were written, not escaped.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="All of it, from where the workers' setting output keeps it.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what a run wrote: the tails that were kept, or what it has written so far."""
    _check(attempt, follow=follow, label=label, raw=raw, whole=whole, output=output)
    writer = TextWriter(raw=raw, labels=label)
    if follow:
        with open_cluster(ctx) as store:
            claim = _to_follow(store, job, tick)
            Follower(store, JsonLinesWriter() if output is Output.JSONL else writer, stream).follow(
                claim.job, claim.scheduled_at
            )
        return
    with open_cluster(ctx, read_only=True) as store:
        running = _running(store, job, tick) if attempt is None and not whole else None
    if running is not None:
        with open_cluster(ctx) as store:  # to ask is to write
            live = _ask(store, running)
        if live is not None:
            _show_live(running, live, stream, output, writer)
            return
    with open_cluster(ctx, read_only=True) as store:
        found = store.reads.run_output(_find(store, job, tick, attempt).token)
        if whole:
            _write_whole(found.run, stream, writer)
        elif output is not Output.TABLE:
            print_record(found, output)
        elif stream is Stream.BOTH and not raw and not label and sys.stdout.isatty():
            print_lines(run_lines(found, store.now()))
        else:
            _write(found, stream, writer)


def _check(attempt: int | None, *, follow: bool, label: bool, raw: bool, whole: bool, output: Output) -> None:
    """Raises ``InvalidOption`` for options that contradict each other."""
    if follow and attempt is not None:
        raise InvalidOption("--follow goes on to the last try", hint="leave --attempt out")
    if follow and whole:
        raise InvalidOption("--whole is of runs that have ended", hint="leave --follow out")
    if follow and output is Output.JSON:
        raise InvalidOption("--follow has no end to close a JSON document at", hint="write --output jsonl")
    if output is not Output.TABLE and (raw or label or whole):
        raise InvalidOption(f"--raw, --label and --whole are of text, not of {output.value}", hint="leave --output out")


# --- which run --------------------------------------------------------------------------------------------------------


def _find(store: Store, job: str, tick: str | None, attempt: int | None) -> RunView:
    if tick is None:
        name = store.reads.job(job, 0).job.name
        runs = store.reads.runs_page(RunFilter(job=job), limit=20).runs
        of_newest = [run for run in runs if run.scheduled_at == runs[0].scheduled_at]
        where = f"job {name!r}"
    else:
        detail = store.reads.claim(job, parse_instant(tick, "TICK"))
        of_newest = list(reversed(detail.runs))
        where = f"tick {instant_text(detail.claim.scheduled_at)} of job {detail.claim.job!r}"
        if not of_newest:
            where += f", which is {detail.claim.state.word},"
    if attempt is not None:
        of_newest = [run for run in of_newest if run.attempt == attempt]
        where += f" in try {attempt}"
    if not of_newest:
        raise NotFound(f"no run of {where} has ended", hint="--follow waits for one; `sexton runs` lists them")
    return of_newest[0]


def _running(store: Store, job: str, tick: str | None) -> ClaimView | None:
    """The claim that is meant, if it runs now and has not been overtaken by a newer tick's run."""
    if tick is not None:
        claim: ClaimView | None = store.reads.claim(job, parse_instant(tick, "TICK")).claim
    else:
        claim = store.reads.current_claim(job)
    if claim is None or claim.state is not State.RUNNING:
        return None
    newest = store.reads.runs_page(RunFilter(job=job), limit=1).runs if tick is None else ()
    return None if newest and newest[0].scheduled_at > claim.scheduled_at else claim


def _to_follow(store: Store, job: str, tick: str | None) -> ClaimView:
    """The claim that is meant: one that runs, or is due, or ran last, or is still to come."""
    if tick is not None:
        return store.reads.claim(job, parse_instant(tick, "TICK")).claim
    claim = store.reads.current_claim(job)
    if claim is not None and (claim.state is State.RUNNING or claim.available_at <= store.now()):
        return claim
    if newest := store.reads.runs_page(RunFilter(job=job), limit=1).runs:
        return store.reads.claim(job, newest[0].scheduled_at).claim
    if claim is None:
        name = store.reads.job(job, 0).job.name
        raise NotFound(
            f"job {name!r} has never run, and no run of it is due", hint=f"`sexton next --job {name}` tells when one is"
        )
    return claim


# --- a run that goes on -----------------------------------------------------------------------------------------------


def _ask(store: Store, claim: ClaimView) -> LiveOutput | None:
    """What the run has written so far; None: it has ended meanwhile. Raises ``Refused`` if nobody tells."""
    assert claim.token is not None  # noqa: S101 - it runs
    before = store.reads.live_output(claim.token)
    began = time.monotonic()
    store.outputs.watch(claim.token, WATCH_FOR, remind=before is None)
    while (waited := time.monotonic() - began) < ANSWER_SECONDS:
        live = store.reads.live_output(claim.token)
        if live is not None and (live != before or waited >= SETTLED_SECONDS):
            return live
        now = store.reads.claim(claim.job, claim.scheduled_at).claim
        if now.state is not State.RUNNING or now.token != claim.token:
            return None
        time.sleep(LOOK_SECONDS)
    raise Refused(
        f"worker {claim.worker} did not tell within {ANSWER_SECONDS:g} s what this run has written so far",
        hint="`sexton workers` shows whether it is there; --follow goes on asking, --attempt N shows an earlier try",
    )


def _show_live(claim: ClaimView, live: LiveOutput, stream: Stream, output: Output, writer: TextWriter) -> None:
    if output is not Output.TABLE:
        print_record({"run": None, "claim": claim, **_fields(live)}, output)
        return
    for name, data, total in (
        ("stdout", live.stdout, live.stdout_bytes),
        ("stderr", live.stderr, live.stderr_bytes),
    ):
        if stream in (Stream.BOTH, name):
            if total > len(data):
                writer.gap(name, total - len(data))
            for piece in live_pieces(data, total):
                writer.piece(name, piece)
    writer.finish()
    tick = instant_text(claim.scheduled_at)
    writer.note(f"try {claim.attempt} of tick {tick} runs on {claim.worker}; this is its output so far")


def _fields(live: LiveOutput) -> dict[str, object]:
    names = ("stdout", "stderr", "stdout_bytes", "stderr_bytes", "written_at")
    return {name: getattr(live, name) for name in names}


# --- a run that has ended ---------------------------------------------------------------------------------------------


def _write(found: RunOutput, stream: Stream, writer: TextWriter) -> None:
    kept = [
        (name, data) for name, data in zip(NAMES, (found.stdout, found.stderr), strict=True) if stream in ("both", name)
    ]
    if not any(data for _, data in kept):
        writer.note(_why_nothing(found.run, stream))
    for name, data in kept:
        writer.piece(name, Piece(0, data or b""))
    writer.finish()
    if where := where_it_is_whole(found.run):
        writer.note(where.removeprefix("; "))


def _why_nothing(run: RunView, stream: Stream) -> str:
    totals = {"stdout": run.stdout_bytes, "stderr": run.stderr_bytes}
    if any(total for name, total in totals.items() if stream in (Stream.BOTH, name)):
        return "nothing of this run's output was kept"
    if run.exit_code is not None:
        return "this run wrote nothing" + ("" if stream is Stream.BOTH else f" to {stream.value}")
    return f"nothing is known of this run's output: {run.error}" if run.error else "nothing is known of its output"


def _write_whole(run: RunView, stream: Stream, writer: TextWriter) -> None:
    if not run.output_at:
        raise NotFound(
            f"the output of try {run.attempt} of tick {instant_text(run.scheduled_at)} is not kept whole",
            hint="the workers' setting `output` keeps that of later runs; without --whole you get the tails",
        )
    for name, total in (("stdout", run.stdout_bytes), ("stderr", run.stderr_bytes)):
        if total and stream in (Stream.BOTH, name):
            _write_pieces(name, read_whole(f"{run.output_at}.{name}"), writer)
    writer.finish()


def _write_pieces(name: str, pieces: Iterable[bytes], writer: TextWriter) -> None:
    for data in pieces:
        writer.piece(name, Piece(0, data))
