"""Answers to proposals."""

from __future__ import annotations

from collections.abc import Sequence

from sexton.errors import Refused
from sexton.hold_views import HoldDetail
from sexton.holds import HeldTick
from sexton.store.protocol import HoldAnswer, Store
from sexton.store.protocol.holds import approval_of
from sexton_tui.console.acts import Act, Done
from sexton_tui.console.core.hold_words import answer_text, lost_text


def approve(found: HoldDetail, ticks: Sequence[HeldTick], note: str, actor: str) -> Act:
    """Run these ticks of a proposal as it was read, and reject its others."""

    def act(store: Store) -> Done:
        return _answered(store.holds.approve(approval_of(found, ticks, note), actor))

    return act


def reject(found: HoldDetail, note: str, actor: str) -> Act:
    """Let none of a proposal's ticks run, if it is as it was read."""

    def act(store: Store) -> Done:
        return _answered(store.holds.reject(found.hold.proposal_id, actor, note, found.mark))

    return act


def _answered(answer: HoldAnswer) -> Done:
    if not answer.is_done:
        raise Refused(lost_text(answer))
    return Done(answer_text(answer))
