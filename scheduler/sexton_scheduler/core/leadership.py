"""What a node does about leadership, from what it sees: a pure table of decisions.

    following ──elected or forced, term taken───▶ leading ──superseded──▶ following
                                                    │
                                                    └──asked to resign, stopping──▶ hand over ──▶ following | gone

* A leader whose election is suspended or lost goes on, **unconfirmed**, and campaigns again; it can do no harm
  (invariant 3). Elected anew, it is confirmed in the term it has.
* A leader that is superseded steps down at once, gives up its place and campaigns again from the back of the line.
* While the coordinator is away, a node whose leader lease has lapsed (the heartbeat stood still for
  ``failover.database_after``) may take the term: an ordinary takeover, marked **degraded**.
* While an operator's force stands, the node it names takes the term whatever the coordinator says, and every other
  node stands aside, so that it wins the election too. The old leader goes on until it is superseded: no gap.
* When the coordinator comes back from an outage through which somebody led, the others let that leader come first for
  two sessions: it is confirmed in its term rather than replaced. A leader that shows no sign of life is not waited for.
* A node whose inputs differ from the cluster's never campaigns and never races (invariant 8), and hands over if it
  leads.
* Under ``strategy: race`` nobody campaigns: every node races, and a leader has been superseded by the switch itself.

Nothing here is a safety property: the term in every statement is (invariant 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sexton.terms import Confirmation, Strategy
from sexton_scheduler.election.candidate import Standing

YIELD_SESSIONS = 2.0  # the session of a dead predecessor, first in line, may outlive the outage by 1.45 of its length
ALIVE_SESSIONS = 0.5  # a living leader beats three times a session


class Course(StrEnum):
    """What to do now about leadership."""

    STAND_ASIDE = "stand aside"  # no campaign; follow
    FOLLOW = "follow"  # campaign, and wait
    YIELD = "yield"  # elected, but the leader should be: give up the place
    TAKE = "take"  # elected: confirm with the coordinator, then take the term
    TAKE_BY_LEASE = "take by lease"  # the coordinator is away and the leader lease has lapsed
    TAKE_BY_FORCE = "take by force"  # an operator names this node
    LEAD = "lead"
    HAND_OVER = "hand over"  # leave the term cleanly, then resign
    STEP_DOWN = "step down"  # superseded: resign, follow
    ENTER_RACE = "enter race"  # no coordinator is asked any more
    RACE = "race"
    LEAVE_RACE = "leave race"


class Force(StrEnum):
    """Where an operator's force points, while it stands."""

    NOWHERE = "nowhere"
    HERE = "here"
    ELSEWHERE = "elsewhere"


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
    force: Force = Force.NOWHERE
    yields: bool = False  # as the function below says
    strategy: Strategy = Strategy.LEADER  # the cluster's
    is_racing: bool = False


def course(sighting: Sighting) -> Course:
    """The one thing to do now."""
    if sighting.is_leading:
        if sighting.is_superseded:
            return Course.STEP_DOWN
        if sighting.is_stopping or sighting.is_asked_to_resign or not sighting.may_lead:
            return Course.HAND_OVER
        return Course.LEAD
    if sighting.is_racing:
        goes_on = sighting.strategy is Strategy.RACE and sighting.may_lead
        return Course.LEAVE_RACE if sighting.is_superseded or sighting.is_stopping or not goes_on else Course.RACE
    if sighting.is_stopping or not sighting.may_lead:
        return Course.STAND_ASIDE
    if sighting.strategy is Strategy.RACE:
        return Course.ENTER_RACE
    if sighting.force is Force.ELSEWHERE:
        return Course.STAND_ASIDE
    if sighting.force is Force.HERE:
        return Course.TAKE_BY_FORCE
    if sighting.standing is Standing.ELECTED:
        return Course.YIELD if sighting.yields else Course.TAKE
    if sighting.standing is Standing.AWAY and sighting.lease is Standing.ELECTED:
        return Course.TAKE_BY_LEASE
    return Course.FOLLOW


def campaigns(strategy: Strategy, force: Force, *, is_racing: bool, may_lead: bool, is_stopping: bool) -> bool:
    """Whether a node seeks election at all. In a race no coordinator is asked; who races leaves it first, or would win
    what it then gives up."""
    may = may_lead and not is_stopping and not is_racing
    return may and strategy is Strategy.LEADER and force is not Force.ELSEWHERE


def confirmation(standing: Standing, before: Confirmation) -> Confirmation:
    """How a leader's term stands with its coordinator now, given how it stood ``before``."""
    if standing is Standing.ELECTED:
        return Confirmation.CONFIRMED
    if before is Confirmation.DEGRADED:
        return before  # until the coordinator is back and has elected somebody
    return Confirmation.UNCONFIRMED


def force_seen(forced_to: str | None, node: str) -> Force:
    """Where a force points, for this node."""
    if forced_to is None:
        return Force.NOWHERE
    return Force.HERE if forced_to == node else Force.ELSEWHERE


def ends_force(force: Force, confirmed: Confirmation, *, has_lapsed: bool) -> bool:
    """Whether the leader, which sees this, ends a force: it has done its work, or its node is gone."""
    return has_lapsed or (force is Force.HERE and confirmed is Confirmation.CONFIRMED)


def yields(since_away: float | None, still_for: float | None, session: float) -> bool:
    """Whether a follower lets the leader come first: its coordinator was away a moment ago, and the leader lives.

    Seconds: since its candidate last was AWAY (None: never), and for how long the leader's heartbeat has not moved
    (None: nobody leads, or nothing was seen yet).
    """
    if since_away is None or still_for is None:
        return False
    return since_away <= YIELD_SESSIONS * session and still_for <= ALIVE_SESSIONS * session


def must_campaign(standing: Standing) -> bool:
    """Whether a node that wants to lead, or leads, must begin a campaign."""
    return standing in (Standing.OUT, Standing.LOST)
