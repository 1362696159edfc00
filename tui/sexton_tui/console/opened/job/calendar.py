"""Half a year of an opened job's runs and failures, a shade a day."""

from __future__ import annotations

from sexton.job_page_views import DayOfRuns
from sexton.store.protocol import Store
from sexton_tui.console.core.heat_map import bounds_of, days_shown
from sexton_tui.console.core.job_page import calendar_lines
from sexton_tui.console.opened.job.section import LinesSection
from sexton_tui.console.view import Request, Shown

_READ_EVERY = 60  # polls: it looks at many runs, of which most stay what they are


class CalendarSection(LinesSection):
    """Days are those of the zone that the screen shows."""

    title = "Calendar"

    def __init__(self, job: str, *, ascii_only: bool) -> None:
        super().__init__(job, ascii_only=ascii_only)
        self._polls = 0

    def request(self) -> Request:
        if self.shown is None or self._polls % _READ_EVERY:
            self._polls += self.shown is not None
            return lambda _store: None
        self._polls += 1
        job, now = self.job, self.shown.now
        days = days_shown(now.date())

        def read(store: Store) -> tuple[DayOfRuns, ...]:
            return store.reads.days_of_runs(job, bounds_of(days, now.tzinfo))

        return read

    def show(self, shown: Shown, data: tuple[DayOfRuns, ...] | None) -> None:
        if data is None:
            return
        days = {one.start.date(): one for one in data}
        self.show_lines(calendar_lines(days, max(days), ascii_only=self.ascii_only))
