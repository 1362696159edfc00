"""What both stores say of answers to proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sexton.errors import NotFound
from sexton.holds import HeldTick, ProposalState

LAPSED_BY = "sexton"
IS_GAP = "EXISTS (SELECT 1 FROM skips s WHERE s.job_id = {0}.job_id AND s.after = {0}.after AND s.reason = 'held')"
"""Whether the proposal ``{0}`` holds the ticks of a gap; else it holds all claims of its job that are held."""
# A claim that was held, approved, and is to be held again before it ran.
OPENED_ANEW = """revision = excluded.revision, upto = excluded.upto, count = excluded.count,
    within_from = excluded.within_from, lapses_at = excluded.lapses_at, made_at = excluded.made_at,
    term = excluded.term, reason = excluded.reason, state = 'open', answered_at = NULL, answered_by = NULL,
    note = NULL, approved = 0, approved_from = NULL, approved_upto = NULL"""
_ACTIONS = {
    ProposalState.APPROVED: "proposal.approved",
    ProposalState.REJECTED: "proposal.rejected",
    ProposalState.LAPSED: "proposal.lapsed",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the compare-and-set takes it. ``condition``: what else must hold, with its ``values``."""

    proposal_id: int
    state: ProposalState
    actor: str
    note: str
    condition: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


def action_of(state: ProposalState) -> str:
    """The name of the answer's event."""
    return _ACTIONS[state]


def no_proposal(proposal_id: int) -> NotFound:
    return NotFound(f"there is no proposal {proposal_id}", hint="`sexton holds list --all` lists what there is")


def said(state: ProposalState, actor: str, note: str) -> str:
    """The answer in the ledger: behind the skip record's detail, and as the reason of a claim that stays unrun."""
    if state is ProposalState.LAPSED:
        return "lapsed: nobody answered its proposal within hold_for"
    return f"{state.value} by {actor}" + (f": {note}" if note else "")


def said_of_rest(actor: str, note: str, approved: int, count: int) -> str:
    """The same for the ticks that an approval of a part leaves."""
    return said(ProposalState.REJECTED, f"{actor}, who approved {approved:,} of {count:,}", note)


def answer_detail(
    proposal_id: int, job: str, count: int, note: str, ticks: Sequence[HeldTick] = ()
) -> dict[str, object]:
    """What the answer's event says. ``ticks``: the approved ones."""
    detail: dict[str, object] = {"proposal": proposal_id, "job": job, "held": count, "note": note}
    if ticks:
        first, last = ends(ticks)
        detail |= {"approved": len(ticks), "first": _instant(first), "last": _instant(last)}
    return detail


def ends(ticks: Sequence[HeldTick]) -> tuple[datetime, datetime]:
    """The oldest and the newest of them, in whatever order they start."""
    edges = (ticks[0].scheduled_at, ticks[-1].scheduled_at)
    return min(edges), max(edges)


def _instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
