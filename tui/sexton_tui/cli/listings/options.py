"""Options that listings share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from sexton.claims import State
from sexton_tui.cli.completing import complete_job, complete_owner, complete_queue, complete_tag

JobOption = Annotated[str, typer.Option("--job", metavar="NAME", help="Only of this job.", autocompletion=complete_job)]
QueueOption = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="Only of this queue.", autocompletion=complete_queue)
]
OwnerOption = Annotated[
    str, typer.Option("--owner", metavar="NAME", help="Only of jobs of this owner.", autocompletion=complete_owner)
]
TagOption = Annotated[
    str, typer.Option("--tag", metavar="TAG", help="Only of jobs with this tag.", autocompletion=complete_tag)
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most so many.")]
PAGE = 500
LARGEST_TERM = 2**63 - 1  # what a database's integers hold
LARGEST_ID = LARGEST_TERM - 1

TO_RETRY = "to_retry"
"""How a run reads whose claim is ready again: it ended, and another try follows."""


def states_of(words: list[str] | None, known: Mapping[str, State] | None = None) -> frozenset[State]:
    """The states that ``--state`` names; raises a usage error with the known words."""
    known = known or {state.word: state for state in State}
    for word in words or []:
        if word not in known:
            raise typer.BadParameter(f"--state: {word!r} is no state; the states are {', '.join(known)}")
    return frozenset(known[word] for word in words or [])
