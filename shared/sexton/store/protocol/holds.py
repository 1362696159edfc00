"""Answers to proposals: ``open → approved | rejected | lapsed``, each a compare-and-set on the proposal.

The answer and what it means for the ticks are one transaction: claims written or opened again, the rest closed, the
skip record resolved as far as its ticks run after all, the event. Of two operators one wins, and the other's answer
comes back undone, with the winner's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from sexton.hold_views import HoldAnswer
from sexton.holds import in_start_order

if TYPE_CHECKING:
    from sexton.hold_views import HoldDetail
    from sexton.holds import GapPart, HeldTick
    from sexton.job_rules import FiringRules


@dataclass(frozen=True, slots=True)
class Approval:
    """Approve these ticks of a proposal, in the order in which they should start, and reject its others.

    ``mark``: count and end of the proposal as it was read (``HoldDetail.mark``); one that has grown since is left as
    it is. ``firing``: the rules of the proposal's revision. ``parts``: the skip record of a gap, cut as it is answered;
    empty where the proposal holds claims.
    """

    proposal_id: int
    mark: tuple[int, datetime]
    ticks: tuple[HeldTick, ...]
    firing: FiringRules
    parts: tuple[GapPart, ...] = ()
    note: str = ""


def approval_of(found: HoldDetail, ticks: Sequence[HeldTick], note: str = "") -> Approval:
    """The approval of these ticks of an open proposal, as it was read."""
    if found.ticks is None:
        raise ValueError(f"proposal {found.hold.proposal_id} is answered")
    firing = found.ticks.firing
    ordered = in_start_order(ticks, firing)
    return Approval(found.hold.proposal_id, found.mark, ordered, firing, found.ticks.gap_parts(ticks), note)


class HoldStore(Protocol):
    """The answers; ``reads.holds`` lists what there is to answer. Each raises ``NotFound`` for an unknown id."""

    def approve(self, approval: Approval, actor: str) -> HoldAnswer:
        """The ticks are claims of origin `held`, ready at the pace of the catch-up budget (blocked where the job is
        paused), the proposal's others are decided not to run, and its skip record is resolved where they are."""
        ...

    def reject(
        self, proposal_id: int, actor: str, note: str = "", mark: tuple[int, datetime] | None = None
    ) -> HoldAnswer:
        """None of its ticks runs. ``mark``: as it was read; one that has grown since is left as it is."""
        ...

    def lapse(self, limit: int = 100) -> tuple[HoldAnswer, ...]:
        """Close the proposals that nobody answered within their job's ``hold_for``; none in a halted cluster."""
        ...
