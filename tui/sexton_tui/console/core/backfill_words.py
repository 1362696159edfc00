"""A backfill before it is done: the stretch that was typed, and what it would run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sexton.backfill_plan import BackfillPlan, Does
from sexton.settings import settings_from_rows
from sexton_tui.console.core.typed_instants import parse_range
from sexton_tui.console.core.words import duration, instant, plural

_SECOND = timedelta(seconds=1)


def parse_stretch(text: str, now: datetime) -> tuple[datetime, datetime, bool]:
    """``FROM to BEFORE``, and whether ``again`` stands behind it: ticks that ran are to run again. A reading without a
    date is of the day of `now`, in its zone. Raises ``InvalidInput``."""
    text = " ".join(text.split())
    stretch = text.removesuffix(" again")
    hint = "write 02:00 to 03:30, with dates where they are not of today"
    return (*parse_range(stretch, now, now, hint=hint), stretch != text)


def plan_words(plan: BackfillPlan, now: datetime, settings: Mapping[str, str]) -> str:
    """What would run, and at what pace."""
    runs, total = plan.runs, plural(len(plan.ticks), "tick")
    if not plan.ticks:
        return f"no tick of {plan.job} fell due in there"
    if not runs:
        return f"nothing of {plan.job} is left to run in there: {total} ran or will; `again` behind the range reruns"
    again = sum(tick.does is Does.RUNS_AGAIN for tick in plan.ticks)
    more = f", {again:,} of them again" if again else ""
    span = instant(runs[0], now) if len(runs) == 1 else f"{instant(runs[0], now)} to {instant(runs[-1], now)}"
    pace = max(_SECOND, timedelta(seconds=round(len(runs) / settings_from_rows(settings).catch_up_rate)))
    return f"{len(runs):,} of {total} of {plan.job} would run{more} ({span}), started within {duration(pace)}"
