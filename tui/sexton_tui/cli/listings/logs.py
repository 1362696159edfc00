"""``sexton logs JOB [TICK]``: the kept tails of a run's output.

On a terminal untrusted text is cleaned; into a pipe or a file go the bytes as the job wrote them.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from sexton.errors import NotFound
from sexton.store.protocol import Store
from sexton.views import RunFilter, RunOutput, RunView
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import Output, OutputOption, instant_text, print_record
from sexton_tui.console.core.details import run_lines
from sexton_tui.console.core.lines import text_lines


class Stream(StrEnum):
    BOTH = "both"
    STDOUT = "stdout"
    STDERR = "stderr"


def logs(
    ctx: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")],
    tick: Annotated[str | None, typer.Argument(metavar="[TICK]", help="Its tick; without it, the newest run.")] = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, help="Which try; without it, the last that ended.")
    ] = None,
    stream: Annotated[Stream, typer.Option("--stream", help="both, stdout, or stderr.")] = Stream.BOTH,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what a run wrote: the tails that were kept."""
    with open_cluster(ctx, read_only=True) as store:
        run = _find(store, job, tick, attempt)
        found = store.reads.run_output(run.token)
        if output is not Output.TABLE:
            print_record(found, output)
        elif stream is Stream.BOTH and sys.stdout.isatty():
            print_lines(run_lines(found, store.now()))
        else:
            _write(found, stream)


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
        raise NotFound(f"no run of {where} has ended", hint="output is kept when a run ends; `sexton runs` lists them")
    return of_newest[0]


def _write(found: RunOutput, stream: Stream) -> None:
    kept = [data for name, data in (("stdout", found.stdout), ("stderr", found.stderr)) if stream in ("both", name)]
    if all(data is None for data in kept):
        print("sexton: nothing of this run's output was kept", file=sys.stderr)
        return
    for data in kept:
        if not data:
            continue
        if sys.stdout.isatty():
            print_lines(text_lines(data))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
