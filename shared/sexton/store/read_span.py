"""What happened in a span of time: ticks decided, runs by outcome, lateness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from sexton.claims import PACED_ORIGINS, Origin, State
from sexton.store.known_members import member_of
from sexton.store.tables import claims, runs, skips

_LATENESS_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class SpanSummary:
    """A cluster's work in ``(after, upto]``. Lateness is None where nothing ran."""

    ticks_fired: int
    ticks_skipped: int
    caught_up: int
    manual: int
    runs: Mapping[str, int]  # by outcome
    lateness_p50: timedelta | None
    lateness_p99: timedelta | None
    lateness_max: timedelta | None

    @property
    def ticks_decided(self) -> int:
        return self.ticks_fired + self.ticks_skipped


def read_span(connection: Connection, after: datetime, upto: datetime, ran_upto: datetime | None = None) -> SpanSummary:
    """Sum up the span; ticks by their instant, skip records by when they were decided, runs by their end.

    Runs that ended up to ``ran_upto`` (by default ``upto``) are counted: the last ones end after their ticks.
    """
    by_origin = {
        member_of(Origin, row.origin): row.number
        for row in connection.execute(
            select(claims.c.origin, func.count().label("number"))
            .where(claims.c.scheduled_at > after, claims.c.scheduled_at <= upto)
            .group_by(claims.c.origin)
        )
    }
    skipped = connection.execute(
        select(func.coalesce(func.sum(skips.c.count), 0)).where(
            skips.c.decided_at > after, skips.c.decided_at <= upto, skips.c.upto <= upto
        )
    ).scalar_one()
    in_span = (runs.c.finished_at > after, runs.c.finished_at <= (ran_upto or upto))
    outcomes = {
        _outcome_word(member_of(State, row.outcome)): row.number
        for row in connection.execute(
            select(runs.c.outcome, func.count().label("number")).where(*in_span).group_by(runs.c.outcome)
        )
    }
    lateness = sorted(
        connection.execute(
            select(runs.c.lateness_ms)
            .where(*in_span, runs.c.attempt == 1, runs.c.lateness_ms.is_not(None))
            .order_by(runs.c.finished_at.desc())
            .limit(_LATENESS_ROWS)
        ).scalars()
    )
    return SpanSummary(
        ticks_fired=sum(number for origin, number in by_origin.items() if origin is not Origin.MANUAL),
        ticks_skipped=int(skipped),
        caught_up=sum(by_origin.get(origin, 0) for origin in PACED_ORIGINS),
        manual=by_origin.get(Origin.MANUAL, 0),
        runs=outcomes,
        lateness_p50=_percentile(lateness, 50),
        lateness_p99=_percentile(lateness, 99),
        lateness_max=_percentile(lateness, 100),
    )


def _outcome_word(outcome: State) -> str:
    return "to be run again" if outcome is State.READY else outcome.word.replace("_", " ")


def _percentile(ordered: Sequence[int], percent: int) -> timedelta | None:
    """The nearest-rank percentile of milliseconds in ascending order."""
    if not ordered:
        return None
    return timedelta(milliseconds=ordered[max(0, -(-len(ordered) * percent // 100) - 1)])
