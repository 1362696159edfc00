"""``sexton runs JOB --calendar``: half a year of a job's runs and failures, a shade a day, or a row a day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sexton.errors import SextonError
from sexton.zones import load_zone
from sexton_tui.cli.listings.printing import is_ascii_output, print_lines
from sexton_tui.cli.output import Output, print_rows
from sexton_tui.console.core.heat_map import bounds_of, days_shown
from sexton_tui.console.core.job_page import calendar_lines
from sexton_tui.console.core.lines import DIM, STRONG, line

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from sexton.store.protocol import Store


def zone_of(text: str | None) -> ZoneInfo:
    """The zone whose days are counted; UTC unless one is named. Raises a usage error."""
    try:
        return load_zone(text or "UTC")
    except SextonError as error:
        raise typer.BadParameter(f"--tz: {error}") from None


def print_run_calendar(store: Store, job: str, zone: ZoneInfo, output: Output) -> None:
    """Print it, up to today on the zone's clock. Raises ``NotFound`` with near names."""
    days = days_shown(store.now().astimezone(zone).date())
    found = store.reads.days_of_runs(job, bounds_of(days, zone))
    if output is not Output.TABLE:
        rows = [
            {
                "day": day.isoformat(),
                "start": one.start,
                "runs": one.runs,
                "failed": one.failed,
                "is_whole": one.is_whole,
            }
            for day, one in zip(days, found, strict=True)
        ]
        print_rows(rows, output, ())
        return
    by_day = dict(zip(days, found, strict=True))
    head = line((job, STRONG), (f"  days of {zone.key}, by their ticks", DIM))
    print_lines([head, line(), *calendar_lines(by_day, days[-1], ascii_only=is_ascii_output())], coloured=True)
