"""A candidate that is made when a campaign begins, and closed when its node rests: a race contacts no coordinator."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sexton.terms import ElectedBy
from sexton_scheduler.election.candidate import Candidate, Standing


class CandidateOnDemand:
    """Stands for the candidate that ``make`` makes of a session length; ``closed`` is called after that was closed."""

    def __init__(
        self,
        make: Callable[[timedelta], Candidate],
        elected_by: ElectedBy,
        session: timedelta,
        closed: Callable[[], None],
    ) -> None:
        self.elected_by = elected_by
        self._make = make
        self._session = session
        self._closed = closed
        self._made: Candidate | None = None

    def campaign(self) -> None:
        if self._made is None:
            self._made = self._make(self._session)
        self._made.campaign()

    def standing(self) -> Standing:
        return Standing.OUT if self._made is None else self._made.standing()

    def confirm(self) -> bool:
        return self._made is not None and self._made.confirm()

    def resign(self) -> None:
        if self._made is not None:
            self._made.resign()

    def seated(self) -> None:
        if self._made is not None:
            self._made.seated()

    def rest(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            made.close()
            self._closed()

    def adopt(self, session: timedelta) -> None:
        self._session = session
        if self._made is not None:
            self._made.adopt(session)

    def describe(self) -> str:
        return "not asked" if self._made is None else self._made.describe()

    def close(self) -> None:
        self.rest()
