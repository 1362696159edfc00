"""A takeover as an operator sees it: the console in a terminal, real nodes, and their leader killed.

Invariants 2 (one decision a tick) and 7 (killing a process loses nothing but time).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.processes import SEXTON, ProcessGroup
from tests.support.tmux import TmuxPane
from tests.support.trial import Trial

JOBS = """version: 1
jobs:
  ticker:
    schedule: "* * * * * *"
    command: ["true"]
    missed: {policy: all, grace: 1s, max: 2}
    overlap: skip
"""


@pytest.fixture
def trial(processes: ProcessGroup) -> Iterator[Trial]:
    """A cluster on SQLite and the leader lease: none of it runs yet."""
    made = Trial(processes, f"sqlite:///{processes.folder}/ledger.db")
    yield made
    made.close()


def test_a_takeover_is_watched_on_the_console(trial: Trial) -> None:
    trial.apply(JOBS, settings={"horizon": "0s", "session": "6s"})  # no claims ahead: ticks of the gap are missed
    leader = trial.start(nodes=3, workers=1)
    trial.wait_for_runs(1)
    console = TmuxPane(trial.processes, [str(SEXTON), "console"], trial.environment)
    term = trial.term()
    console.sees(f"● {leader}  term {term}", "confirmed")

    trial.nodes[leader].kill()
    taken = trial.finished(trial.takeover_after(term).term)
    assert taken.node != leader
    console.sees(f"● {taken.node}  term {taken.term}", "confirmed")

    console.press("2")
    screen = console.sees(f"term {taken.term}: {taken.node} took over from {leader}", "which vanished", "ticker")
    newest, before = (_row(screen, term) for term in (taken.term, term))
    assert (newest[1], newest[3], newest[4]) == (taken.node, "now", "-")
    assert (before[1], before[4]) == (leader, "vanished")
    assert re.fullmatch(r"\d+\.\d s", newest[5]), newest
    missed, fired, merged, skipped, expired, held = map(int, newest[6:])
    assert missed == fired + merged + skipped + expired + held >= 1

    console.press("Enter")
    opened = console.sees(f"Takeovers ▸ term {taken.term}", f"1 job, {missed} missed", "ticker", "esc back")
    assert newest[5] in opened
    console.press("Enter")
    console.sees(f"Takeovers ▸ term {taken.term} ▸ ticker", f"under term {taken.term}")
    console.press("Escape")
    console.sees(f"Takeovers ▸ term {taken.term} ", f"{missed} missed")
    console.press("Escape")
    console.sees("1 Overview", "q leave")
    console.press("q")
    assert console.exit_code() == 0
    assert {"missing": 0, "double": 0}.items() <= trial.audit()["counts"].items()


def _row(screen: str, term: int) -> list[str]:
    """The cells of the term's row in the table of takeovers, which is below those of gaps within it."""
    table = screen.partition("──")[0]
    *_, row = (line for line in table.splitlines() if line.startswith(f" {term} "))
    return re.split(r"\s{2,}", row.strip())
