"""A candidate is made by the first campaign and closed by a rest: a race keeps no contact to a coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from sexton.terms import ElectedBy
from sexton_scheduler.election.candidate import Standing
from sexton_scheduler.election.on_demand import CandidateOnDemand
from tests.acceptance.test_node_loop import ScriptedCandidate

SESSION = timedelta(seconds=6)


@dataclass
class Closable(ScriptedCandidate):
    session: timedelta = SESSION
    is_closed: bool = False

    def adopt(self, session: timedelta) -> None:
        self.session = session

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Scene:
    made: list[Closable] = field(default_factory=list)
    forgotten: int = 0

    def candidate(self) -> CandidateOnDemand:
        def make(session: timedelta) -> Closable:
            self.made.append(Closable(session=session))
            return self.made[-1]

        def forget() -> None:
            self.forgotten += 1

        return CandidateOnDemand(make, ElectedBy.ZOOKEEPER, SESSION, forget)


def test_nothing_is_made_before_the_first_campaign() -> None:
    scene = Scene()
    candidate = scene.candidate()
    candidate.adopt(2 * SESSION)
    candidate.resign()
    candidate.rest()
    assert (candidate.standing(), candidate.confirm(), candidate.describe()) == (Standing.OUT, False, "not asked")
    assert (scene.made, scene.forgotten) == ([], 0)
    candidate.campaign()
    assert [one.session for one in scene.made] == [2 * SESSION]
    assert candidate.standing() is Standing.WAITING


def test_a_rest_closes_it_and_the_next_campaign_makes_another() -> None:
    scene = Scene()
    candidate = scene.candidate()
    candidate.campaign()
    candidate.rest()
    assert candidate.standing() is Standing.OUT
    assert (scene.made[0].is_closed, scene.forgotten) == (True, 1)
    candidate.campaign()
    _, second = scene.made
    second.now = Standing.ELECTED
    assert candidate.confirm()
    candidate.close()
    assert second.is_closed
