"""``sexton validate``: job files checked without a database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sexton_tui.cli.output import Output, OutputOption, counted, print_rows

PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH", help="A job file, or a folder of them.")]


def validate(paths: PathsArgument, output: OutputOption = Output.TABLE) -> None:
    """Check job files without a database: every problem of every file, with its line and column."""
    from sexton.jobfiles.differences import schedule_summary
    from sexton.jobfiles.load import load_job_files

    loaded = load_job_files(paths)
    rows = [
        {
            "job": job.name,
            "schedule": schedule_summary(job.definition.schedule_parts),
            "timezone": job.definition.timezone,
            "file": f"{job.file}:{job.line}",
        }
        for job in loaded.jobs
    ]
    print_rows(rows, output, ("job", "schedule", "timezone", "file"))
    if output is Output.TABLE:
        print(f"{counted(len(rows), 'job')} in {counted(len(loaded.files), 'file')}: no problems", file=sys.stderr)
