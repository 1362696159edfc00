"""What a run and a takeover open into, as lines, and what of a job is told on one."""

from __future__ import annotations

from datetime import datetime

from sexton.claims import Overlap, State
from sexton.job_rules import QUEUE_LIMIT, Limits
from sexton.jobs import JobDefinition
from sexton.races import THE_RACE
from sexton.secret_texts import shown_text
from sexton.settings import format_duration
from sexton.sizes import size_text
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, PythonTarget, ShellTarget, Target
from sexton.terms import EndedBy
from sexton.views import ClaimView, GapView, TakeoverDetail
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Line, line
from sexton_tui.console.core.overview import decided_words, gap_words
from sexton_tui.console.core.words import duration, instant, late_words, plural, state_style

_HOW_ENDED = {
    "none": "the first leader of this cluster",
    "resigned": "handed over",
    "vanished": "vanished: its heartbeat stopped",
    "forced": "was replaced by force",
}


def claim_line(claim: ClaimView, now: datetime) -> Line:
    """A tick's claim on one line."""
    late = None if claim.started_at is None else claim.started_at - claim.scheduled_at - claim.jitter
    parts = [] if late is None else [(f"  {late_words(late)} late", DIM)]
    if claim.is_blocked and claim.state is State.READY:
        parts.append(("  blocked by the pause", WARN))
    return line(
        f"  {instant(claim.scheduled_at, now):>12}  ",
        (f"{claim.state.word:<10}", state_style(claim.state)),
        (f" {claim.origin.word}", DIM),
        *parts,
        f"  {claim.reason}" if claim.reason else "",
    )


def overlap_words(definition: JobDefinition) -> str:
    """What a tick does that finds the slot busy, and whose slot that is where it is not the job's own."""
    words = definition.overlap.name.lower()
    if definition.overlap is Overlap.QUEUE and definition.queue_limit != QUEUE_LIMIT:
        words += f", at most {definition.queue_limit} wait"
    if (key := definition.concurrency_key) is not None:
        words += f", of {key.limit} at once with the key {key.key}"
    return words


def limits_words(limits: Limits) -> str:
    """What each process of a run may use."""
    words = (
        f"memory {size_text(limits.memory)}" if limits.memory is not None else "",
        f"processor time {format_duration(limits.cpu_time)}" if limits.cpu_time is not None else "",
        f"{limits.open_files} open files" if limits.open_files is not None else "",
    )
    return ", ".join(filter(None, words))


def target_words(target: Target) -> str:
    """What the job runs, on one line; what looks like a secret is hidden."""
    return shown_text("", _target_words(target))


def _target_words(target: Target) -> str:
    match target:
        case CommandTarget(argv):
            return " ".join(argv)
        case ShellTarget(script):
            first, _, rest = script.strip().partition("\n")
            return f"sh: {first}{' …' if rest else ''}"
        case PythonTarget(reference):
            return f"python: {reference}"
        case HttpTarget(url, method):
            return f"{method} {url}"
        case CeleryTarget(_, task):
            return f"celery: {task}"


def takeover_lines(detail: TakeoverDetail, now: datetime) -> list[Line]:
    """The head of an opened takeover, or of a gap within its term: who followed whom, the gap, and what was decided in
    all."""
    if detail.gap is not None:
        return [*_gap_lines(detail.gap, now), *_not_whole(detail)]
    takeover = detail.takeover
    totals = takeover.totals
    before = takeover.predecessor or "nobody"
    ended = takeover.predecessor_ended.value
    how_ended = _HOW_ENDED.get(ended, f"ended in a way that is {ended}")
    lines = [
        line(
            (f"term {takeover.term}: {takeover.node}", STRONG),
            " leads again, after its own term ended under a force"
            if takeover.predecessor == takeover.node and takeover.predecessor_ended is EndedBy.FORCED
            else f" took over from {before}, which {how_ended}"
            if takeover.predecessor
            else f" leads, {how_ended}",
        ),
        line(
            ("gap ", DIM),
            gap_words(takeover),
            ("  planned in ", DIM),
            duration(takeover.planning),
            ("  elected by ", DIM),
            takeover.elected_by.value,
            *(
                [(f"  {takeover.blockers_terminated} blockers terminated", WARN)]
                if takeover.blockers_terminated
                else []
            ),
        ),
    ]
    if totals.missed:
        lines.append(line(f"{plural(totals.jobs, 'job')}, {decided_words(totals)}"))
    else:
        lines.append(line("no tick was missed: claims had been written ahead"))
    if (late := takeover.not_started).missed:
        lines.append(line(f"later, claimed but not started: {plural(late.jobs, 'job')}, {decided_words(late)}"))
    for gap in takeover.gaps[:_GAPS_TOLD]:
        stretch = f"{instant(gap.gap_from, now)} to {instant(gap.gap_until, now)}"
        told = f"later, a gap of {duration(gap.gap)} from {stretch}, same term: {decided_words(gap.totals)}"
        lines.append(line((told, WARN)))
    if (more := len(takeover.gaps) - _GAPS_TOLD) > 0:
        lines.append(line((f"and {plural(more, 'gap')} before", WARN)))
    return [*lines, *_not_whole(detail)]


_GAPS_TOLD = 3


def _gap_lines(gap: GapView, now: datetime) -> list[Line]:
    stretch = f"from {instant(gap.gap_from, now)} to {instant(gap.gap_until, now)}"
    ended = "and the race went on" if gap.node == THE_RACE else "and led on in its term"
    return [
        line((f"term {gap.term}: {gap.node}", STRONG), f" wrote no claims {stretch}, {ended}"),
        line(("gap ", DIM), duration(gap.gap), ("  frozen, without its database, or halted", DIM)),
        line(f"{plural(gap.totals.jobs, 'job')}, {decided_words(gap.totals)}"),
    ]


def _not_whole(detail: TakeoverDetail) -> list[Line]:
    if detail.is_whole:
        return []
    return [line((f"only the first {len(detail.decisions)} decisions are shown", WARN))]
