"""The job or jobs that a command is about."""

from __future__ import annotations

from typing import Annotated

import typer

from sexton_tui.cli.completing import complete_job

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.", autocompletion=complete_job)]
JobsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB]...", help="The jobs' names; one or more.", autocompletion=complete_job),
]
