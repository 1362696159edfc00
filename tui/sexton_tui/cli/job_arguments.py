"""The job or jobs that a command is about. A shell completes their names (``sexton --install-completion``)."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from sexton.errors import SextonError
from sexton_tui.cli.invocation import invocation_of

WITHIN_SECONDS = 1.0
_OFFERED = 200


def complete_job(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the cluster's jobs; none where its database does not answer within a second. Never says a word."""
    found: list[str] = []
    try:
        url = invocation_of(ctx).settings().database
    except SextonError:
        return found
    looking = threading.Thread(target=_look, args=(url, incomplete, found), daemon=True)
    looking.start()
    looking.join(WITHIN_SECONDS)
    return list(found)


def _look(url: str, incomplete: str, found: list[str]) -> None:
    from sexton.store.job_names import job_names

    try:
        names = job_names(url, incomplete, _OFFERED, WITHIN_SECONDS)
    except Exception:
        return
    # A shell takes the answer line by line, and puts it on its command line as it is.
    found += [name for name in names if name.isprintable() and not set(name) & set(" \t'\"\\$`;&|<>(){}*?!#~")]


JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.", autocompletion=complete_job)]
JobsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB]...", help="The jobs' names; one or more.", autocompletion=complete_job),
]
