"""A node's candidacies: at its coordinator, and, where that can be away, by the leader lease beside it."""

from __future__ import annotations

from dataclasses import dataclass

from sexton.clock import Clock
from sexton.settings import ClusterSettings
from sexton_scheduler.core.leadership import must_campaign, yields
from sexton_scheduler.election.candidate import Candidate, Standing
from sexton_scheduler.election.database import DatabaseCandidate

LOOKS_PER_SESSION = 6


@dataclass(frozen=True, slots=True)
class Standings:
    """Where a node stands. ``lease``: None where it has none, or leads; ``yields``: as in ``core.leadership``."""

    standing: Standing
    lease: Standing | None
    yields: bool


class Candidacies:
    """Both of one node. ``lease``: None where the database is the coordinator."""

    def __init__(self, candidate: Candidate, lease: DatabaseCandidate | None, clock: Clock) -> None:
        self.candidate = candidate
        self.lease = lease
        self._clock = clock
        self._session = ClusterSettings().session.total_seconds()
        self._away_at: float | None = None  # when the coordinator was last away

    def adopt(self, settings: ClusterSettings) -> None:
        """Go by these settings from now on."""
        self._session = settings.session.total_seconds()
        self.candidate.adopt(settings.session)
        if self.lease is not None:
            self.lease.adopt(settings.failover_database_after)
            self.lease.looked_at_every(self._session / LOOKS_PER_SESSION)

    def standings(self, *, campaigns: bool, is_leading: bool) -> Standings:
        """Where this node stands, in a campaign if it campaigns at all."""
        standing = self.candidate.standing()
        if standing is Standing.AWAY:
            self._away_at = self._clock.elapsed()
        # After the candidate: whoever was elected by a hand-over then sees the empty seat.
        lease = None
        if self.lease is not None and not is_leading:
            lease = _in_campaign(self.lease, self.lease.standing(), campaigns)
        lets_pass = not is_leading and self._yields()
        # As it was seen above: each look at a leader lease is a statement.
        standing = _in_campaign(self.candidate, standing, campaigns and not lets_pass)
        return Standings(standing, lease, lets_pass)

    def _yields(self) -> bool:
        """Whether this follower lets the leader come first at a coordinator that is back."""
        if self.lease is None or self._away_at is None:
            return False
        return yields(self._clock.elapsed() - self._away_at, self.lease.leader_still_for(), self._session)

    def resign(self) -> None:
        """Give up what was won or sought."""
        for one in self._all():
            one.resign()

    def stand_aside(self) -> None:
        """Seek nothing."""
        for one in self._all():
            if one.standing() is not Standing.OUT:
                one.resign()

    def rest(self) -> None:
        """Seek nothing, and ask no coordinator anything until the next campaign."""
        for one in self._all():
            one.rest()

    def makes_way(self, unreached: float) -> bool:
        """Whether an elected node that has not reached the database for so many seconds lets others try."""
        return (
            self.lease is not None  # the leader lease makes way by itself
            and unreached >= self._session
            and self.candidate.standing() is Standing.ELECTED
        )

    def _all(self) -> tuple[Candidate, ...]:
        return (self.candidate,) if self.lease is None else (self.candidate, self.lease)


def _in_campaign(candidate: Candidate, standing: Standing, campaigns: bool) -> Standing:
    """Where the candidate stands, who stood so, once it campaigns if it is to."""
    if campaigns and must_campaign(standing):
        candidate.campaign()
        return candidate.standing()
    return standing
