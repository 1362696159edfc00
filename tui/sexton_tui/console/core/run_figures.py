"""How a job's newest runs went, in figures: how many succeeded, how late they started, how long they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from sexton.claims import State
from sexton.views import RunView
from sexton_tui.console.core.lines import DIM, Line, line
from sexton_tui.console.core.words import count, duration, late_words, plural, strip

STRIP_RUNS = 30


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles (nearest rank) of ``number`` durations; None where there were none."""

    number: int = 0
    p50: timedelta | None = None
    p99: timedelta | None = None
    max: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Of the newest ``runs`` runs. ``lateness`` is that of first tries: a retry is late by its delay, on purpose."""

    runs: int
    succeeded: int
    lateness: Spread
    took: Spread

    @property
    def success_rate(self) -> float | None:
        return self.succeeded / self.runs if self.runs else None


def spread(values: Sequence[timedelta]) -> Spread:
    """How the durations are spread."""
    if not values:
        return Spread()
    ordered = sorted(values)
    p50, p99 = (ordered[max(ceil(share * len(ordered)), 1) - 1] for share in (0.50, 0.99))
    return Spread(len(ordered), p50, p99, ordered[-1])


def figures_of(runs: Sequence[RunView]) -> RunFigures:
    """The figures of these runs."""
    return RunFigures(
        runs=len(runs),
        succeeded=sum(run.outcome is State.SUCCEEDED for run in runs),
        lateness=spread([run.lateness for run in runs if run.attempt == 1 and run.lateness is not None]),
        took=spread([run.duration for run in runs if run.duration is not None]),
    )


def figure_lines(runs: Sequence[RunView], *, ascii_only: bool = False) -> list[Line]:
    """The newest runs (newest first) as signs, and their figures."""
    if not runs:
        return [line(("runs      ", DIM), "none has ended")]
    newest = [run.outcome for run in runs[:STRIP_RUNS]]
    signs = strip(newest[::-1], len(newest), ascii_only=ascii_only)
    figures = figures_of(runs)
    told = f"  {newest.count(State.SUCCEEDED)} of the newest {len(newest)} succeeded"
    if figures.runs > len(newest):
        told += f", {count(figures.succeeded)} of {count(figures.runs)}"
    lines = [line(("runs      ", DIM), signs, told)]
    late, took = figures.lateness, figures.took
    if late.number:
        lines.append(_spread_line("late", late, late_words(late.p50), late_words(late.p99), late_words(late.max)))
    if took.number:
        lines.append(_spread_line("took", took, duration(took.p50), duration(took.p99), duration(took.max)))
    return lines


def _spread_line(title: str, of: Spread, p50: str, p99: str, most: str) -> Line:
    said = (("p50 ", DIM), p50, ("  p99 ", DIM), p99, ("  max ", DIM), most)
    return line((f"{title:<10}", DIM), *said, (f"  of {plural(of.number, 'run')}", DIM))
