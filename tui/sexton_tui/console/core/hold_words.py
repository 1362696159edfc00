"""What is said of proposals, in sentences: by ``sexton holds`` and on the console. Instants are UTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sexton.hold_views import HoldAnswer, HoldDetail, HoldView
from sexton.holds import HeldTick, ProposalState
from sexton.missed_reasons import rounded
from sexton.settings import format_duration
from sexton_tui.console.core.lines import clean
from sexton_tui.console.core.words import iso_instant

_WIDTH = 9


def hold_facts(hold: HoldView, now: datetime) -> Iterator[tuple[str, str]]:
    """One proposal, fact by fact with a label; the first has none and is its title."""
    yield "", f"proposal {hold.proposal_id} of {clean(hold.job)}: {count_text(hold.count)}, {hold.state.value}"
    yield "ticks", f"{_stretch(hold.first, hold.last)}, {hold.order.value} first, revision {hold.revision}"
    yield "why", clean(hold.reason) or "not recorded"
    if hold.state is ProposalState.OPEN:
        waits, lapses = now - hold.made_at, max(hold.lapses_at - now, timedelta(0))
        yield "waits", f"for {_coarse(waits)}, lapses in {_coarse(lapses)}: {_second(hold.lapses_at)}"
        yield "takes", _drain(hold)
        if hold.is_paused:
            yield "paused", f"what is approved waits for `sexton resume {clean(hold.job)}`"
        return
    yield "answer", f"{_how(hold.state, hold.approved, hold.count)} by {_by(hold.answered_by, hold.answered_at)}"
    if hold.note:
        yield "note", clean(hold.note)


def hold_lines(hold: HoldView, now: datetime) -> Iterator[str]:
    """One proposal, a fact a line, as ``sexton holds show`` prints it."""
    (_, title), *facts = hold_facts(hold, now)
    yield title
    for label, text in facts:
        yield _line(label, text)
    if hold.state is ProposalState.OPEN:
        yield _line("answer", f"sexton holds approve {hold.proposal_id}, or sexton holds reject {hold.proposal_id}")


def approval_text(found: HoldDetail, ticks: Sequence[HeldTick]) -> str:
    """What approving these ticks would do, before it is done."""
    hold = found.hold
    first, last = ticks[0].scheduled_at, ticks[-1].scheduled_at
    rest = hold.count - len(ticks)
    others = f"; the other {rest:,} would be rejected" if rest else ""
    paused = ", once the job is resumed" if hold.is_paused else ""
    return (
        f"proposal {hold.proposal_id} of {clean(hold.job)}: {count_text(len(ticks))} would run"
        f" ({_stretch(first, last)}), {hold.order.value} first{paused}{others}"
    )


def part_text(hold: HoldView, chosen: int) -> str:
    """What approving so many of a proposal's ticks means for all of them; empty where it is none."""
    rest = hold.count - chosen
    return f"Approve {chosen:,}" + (f", reject the other {rest:,} for good" if rest else "")


def rejection_text(hold: HoldView) -> str:
    """What rejecting a proposal would do, before it is done."""
    return (
        f"proposal {hold.proposal_id} of {clean(hold.job)}: {count_text(hold.count)} would not run"
        f" ({_stretch(hold.first, hold.last)})"
    )


def answer_text(answer: HoldAnswer) -> str:
    """What this command has done."""
    name = f"proposal {answer.proposal_id} of {clean(answer.job)}"
    if answer.state is not ProposalState.APPROVED:
        return f"{name} is rejected: {count_text(answer.count)} will not run"
    rest = answer.count - answer.approved
    what = f"{name} is approved: {count_text(answer.approved)}"
    if answer.is_paused:
        what += f" once it is resumed (`sexton resume {clean(answer.job)}`)"
    elif answer.first_start is not None and answer.last_start is not None:
        when = f"at {_second(answer.first_start)}"
        if answer.last_start - answer.first_start >= timedelta(seconds=1):
            when = f"from {_second(answer.first_start)} to {_second(answer.last_start)}"
        what += f" may start {when}"
    return what + (f"; the other {rest:,} {'is' if rest == 1 else 'are'} rejected" if rest else "")


def lost_text(answer: HoldAnswer) -> str:
    """Why this command has not answered a proposal: who did, when and how."""
    name = f"proposal {answer.proposal_id} of {clean(answer.job)}"
    if answer.state is ProposalState.OPEN:
        return f"{name} has grown to {count_text(answer.count)} since it was read; look at it and answer again"
    how = _how(answer.state, answer.approved, answer.count)
    note = f" ({clean(answer.note)})" if answer.note else ""
    return f"{name} was {how} by {_by(answer.answered_by, answer.answered_at)}{note}; this changed nothing"


def count_text(count: int) -> str:
    return f"{count:,} held tick" if count == 1 else f"{count:,} held ticks"


def _how(state: ProposalState, approved: int, count: int) -> str:
    if state is not ProposalState.APPROVED or approved == count:
        return state.value
    return f"{state.value} in part ({approved:,} of {count:,} ticks)"


def _by(who: str | None, at: datetime | None) -> str:
    return clean(who or "?") + ("" if at is None else f" at {_second(at)}")


def _drain(hold: HoldView) -> str:
    if hold.drain is None or hold.usual_run is None:
        return "not known: the job has no runs yet to tell by"
    how_long = "less than 1s" if hold.drain < timedelta(seconds=1) else f"about {_coarse(hold.drain)}"
    return f"{how_long} if approved now, by its last runs of {rounded(hold.usual_run)}"


def _stretch(first: datetime, last: datetime) -> str:
    if first == last:
        return iso_instant(first)
    return f"{iso_instant(first)} to {iso_instant(last)}"


def _second(at: datetime) -> str:
    return iso_instant(at.replace(microsecond=0))


def _coarse(duration: timedelta) -> str:
    """Whole seconds; whole minutes from an hour on."""
    unit = timedelta(minutes=1) if duration >= timedelta(hours=1) else timedelta(seconds=1)
    return format_duration(max(duration // unit * unit, timedelta(0)))


def _line(key: str, text: str) -> str:
    return f"  {key:<{_WIDTH}}{text}"
