"""What a node does about leadership, from what it sees: a pure table of decisions.

    following ──elected, confirmed, term taken──▶ leading ──superseded──▶ following
                                                    │
                                                    └──asked to resign, stopping──▶ hand over ──▶ following | gone

* A leader whose election is suspended or lost goes on, **unconfirmed**, and campaigns again; it can do no harm
  (invariant 3). Elected anew, it is confirmed in the term it has.
* A leader that is superseded steps down at once, gives up its place and campaigns again from the back of the line.
* While the coordinator is away, a node whose leader lease has lapsed (the heartbeat stood still for
  ``failover.database_after``) may take the term: an ordinary takeover, marked **degraded**.
* A node whose inputs differ from the cluster's never campaigns (invariant 8), and hands over if it leads.

Nothing here is a safety property: the term in every statement is (invariant 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sexton.terms import Confirmation
from sexton_scheduler.election.candidate import Standing


class Course(StrEnum):
    """What to do now about leadership."""

    STAND_ASIDE = "stand aside"  # no campaign; follow
    FOLLOW = "follow"  # campaign, and wait
    TAKE = "take"  # elected: confirm with the coordinator, then take the term
    TAKE_BY_LEASE = "take by lease"  # the coordinator is away and the leader lease has lapsed
    LEAD = "lead"
    HAND_OVER = "hand over"  # leave the term cleanly, then resign
    STEP_DOWN = "step down"  # superseded: resign, follow


@dataclass(frozen=True, slots=True)
class Sighting:
    """All that a node knows when it decides its course."""

    standing: Standing  # of its candidate at the coordinator
    lease: Standing | None = None  # of its leader-lease candidacy beside it; None where that is the coordinator
    is_leading: bool = False
    is_superseded: bool = False  # a statement of its own said that its term is over
    may_lead: bool = True  # its inputs are the cluster's
    is_asked_to_resign: bool = False
    is_stopping: bool = False


def course(sighting: Sighting) -> Course:
    """The one thing to do now."""
    if sighting.is_leading:
        if sighting.is_superseded:
            return Course.STEP_DOWN
        if sighting.is_stopping or sighting.is_asked_to_resign or not sighting.may_lead:
            return Course.HAND_OVER
        return Course.LEAD
    if sighting.is_stopping or not sighting.may_lead:
        return Course.STAND_ASIDE
    if sighting.standing is Standing.ELECTED:
        return Course.TAKE
    if sighting.standing is Standing.AWAY and sighting.lease is Standing.ELECTED:
        return Course.TAKE_BY_LEASE
    return Course.FOLLOW


def confirmation(standing: Standing, before: Confirmation) -> Confirmation:
    """How a leader's term stands with its coordinator now, given how it stood ``before``."""
    if standing is Standing.ELECTED:
        return Confirmation.CONFIRMED
    if before is Confirmation.DEGRADED:
        return before  # until the coordinator is back and has elected somebody
    return Confirmation.UNCONFIRMED


def must_campaign(standing: Standing) -> bool:
    """Whether a node that wants to lead, or leads, must begin a campaign."""
    return standing in (Standing.OUT, Standing.LOST)
