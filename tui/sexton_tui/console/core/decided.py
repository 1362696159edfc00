"""What was decided: the ticks of a decision, a tick explained, and a proposal with what approving it would start."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from datetime import datetime

from sexton.claims import State
from sexton.decisions import SkipReason
from sexton.hold_views import HoldDetail
from sexton.holds import HeldTick, ProposalState
from sexton.tick_explanation import Answer, TickExplanation
from sexton.views import ClaimView, SkipView
from sexton_tui.console.core.explained import explained
from sexton_tui.console.core.hold_words import hold_facts
from sexton_tui.console.core.lines import BAD, DIM, PLAIN, STRONG, WARN, Line, Part, Row, line, row
from sexton_tui.console.core.subjects import OfTick
from sexton_tui.console.core.words import count, full_instant, instant, late_words, state_style

TICK_COLUMNS = ("tick", "ticks", "became", "origin", "late", "try", "worker", "reason")
HELD_TICK_COLUMNS = ("tick", "could start")
_LABEL = 10
_ANSWER_STYLES = {Answer.OVERDUE: BAD, Answer.MISSING: BAD, Answer.HELD: WARN, Answer.UNDECIDED: WARN}


def tick_rows(claims: Sequence[ClaimView], skips: Sequence[SkipView], now: datetime) -> list[Row]:
    """Claims and skip records of one job, the newest tick first."""
    rows = [(claim.scheduled_at, _claim_row(claim, now)) for claim in claims]
    rows += [(skip.upto, _skip_row(skip, now)) for skip in skips]
    return [one for _, one in sorted(rows, key=lambda pair: pair[0], reverse=True)]


def _claim_row(claim: ClaimView, now: datetime) -> Row:
    late = None if claim.started_at is None else claim.started_at - claim.scheduled_at - claim.jitter
    return row(
        f"claim {claim.scheduled_at.isoformat()}",
        instant(claim.scheduled_at, now),
        "1",
        (claim.state.word, state_style(claim.state)),
        claim.origin.word,
        late_words(late),
        str(claim.attempt) if claim.attempt else "-",
        claim.worker or "-",
        claim.reason,
        about=OfTick(claim.job, claim.scheduled_at, is_held=claim.state is State.HELD),
    )


def _skip_row(skip: SkipView, now: datetime) -> Row:
    answered = "" if skip.resolved_at is None else f"; answered by {skip.resolved_by or '?'}"
    span = instant(skip.upto, now) if skip.count == 1 else f"to {instant(skip.upto, now)}"
    return row(
        f"skip {skip.upto.isoformat()}",
        span,
        count(skip.count),
        (skip.reason.value, WARN if skip.reason.value in ("held", "expired") else PLAIN),
        *("-", "-", "-", "-"),
        skip.detail + answered,
        about=OfTick(skip.job, skip.upto, is_held=skip.reason is SkipReason.HELD and skip.resolved_at is None),
    )


def explanation_lines(found: TickExplanation, now: datetime, width: int) -> list[Line]:
    """A tick explained, its sentences broken at the width. What happened is told in UTC; the head in the shown zone."""
    lines = [
        line((found.job, STRONG), f"  {full_instant(found.tick, now)}", (f"  {found.local}", DIM)),
        line(*_answer(found)),
        line(),
    ]
    for label, text in explained(found):
        wrapped = textwrap.wrap(text, max(width - _LABEL - 3, 20), break_on_hyphens=False) or [""]
        heads = itertools.chain((label,), itertools.repeat(""))
        lines += [line((f"{head:<{_LABEL}}  ", DIM), part) for head, part in zip(heads, wrapped, strict=False)]
    return lines


def _answer(found: TickExplanation) -> tuple[Part, ...]:
    """The answer in a word; of a claim that of its state."""
    if found.claim is not None:
        return ((found.claim.state.word, state_style(found.claim.state)),)
    return ((str(found.answer), _ANSWER_STYLES.get(found.answer, STRONG)),)


def proposal_lines(found: HoldDetail, now: datetime, *, with_keys: bool = True) -> list[Line]:
    """The head of an opened proposal. ``with_keys``: and the console's keys."""
    is_open = found.hold.state is ProposalState.OPEN
    first, *facts = hold_facts(found.hold, now)
    lines = [line((first[1], STRONG))]
    lines += [line((f"{label:<{_LABEL}}", DIM), text) for label, text in facts]
    if is_open and with_keys:
        lines.append(line(("a approves all or a part, x rejects; other ticks of the job go on meanwhile", DIM)))
    return lines


def held_tick_rows(job: str, starts: Sequence[tuple[HeldTick, datetime]], now: datetime) -> list[Row]:
    """The held ticks in the order they would start in, and when they could if they were approved now."""
    return [
        row(
            tick.scheduled_at.isoformat(),
            full_instant(tick.scheduled_at, now),
            instant(start, now),
            about=OfTick(job, tick.scheduled_at, is_held=True),
        )
        for tick, start in starts
    ]
