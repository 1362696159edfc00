"""``sexton explain JOB TICK``: why a tick ran or did not, by whom it was decided, and what comes next."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import SextonError
from sexton_tui.cli.completing import complete_zone, words_of
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.output import Output, OutputOption, instant_text, json_value, print_record, printable
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.local_readings import LocalReading
    from sexton.store.protocol import Store
    from sexton.tick_explanation import TickExplanation

_LABEL = 10
_NARROWEST = 50
_NEAR = ("last", "next")
_YEARS = range(1900, 2200)


@watchable
def explain(
    ctx: typer.Context,
    job: JobArgument,
    tick: Annotated[
        str,
        typer.Argument(
            metavar="TICK",
            help="An instant, a reading of the local clock, `last` or `next`.",
            autocompletion=words_of(_NEAR),
        ),
    ],
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz",
            metavar="ZONE",
            help="The zone of a local reading; the job's by default.",
            autocompletion=complete_zone,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Tell whether a tick was due and why, what was decided by whom, each attempt, and what comes next.

    TICK is an instant (2026-03-29T01:00:00Z), a reading of the clock on the wall (2026-03-29T02:30), last, or next.
    """
    from sexton.tick_explanation import explain as explain_facts

    with open_cluster(ctx, read_only=True) as store:
        instant, reading = _asked(store, job, tick, tz)
        facts = store.reads.tick_facts(job, instant)
        found = explain_facts(facts)
        note = "" if reading is None else _reading_note(store, found, reading)
    if output is not Output.TABLE:
        print_record({"asked": tick, "note": note, **json_value(found)}, output)
        return
    width = max(min(shutil.get_terminal_size().columns, 120), _NARROWEST) if sys.stdout.isatty() else 80
    for line in _lines(found, note, width):
        print(line)


# --- which instant ----------------------------------------------------------------------------------


def _asked(store: Store, job: str, text: str, tz: str | None) -> tuple[datetime, LocalReading | None]:
    """The instant that is meant; with it the local reading, where one was given."""
    from sexton.local_readings import find_reading

    if text.lower() in _NEAR:
        if tz is not None:
            raise typer.BadParameter(f"--tz goes with a local reading, not with {text.lower()}")
        return store.reads.near_tick(job, text.lower()), None
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        if _is_time(text):
            today = store.now().date()
            raise typer.BadParameter(
                f"TICK: {text!r} is a reading without its date; write e.g. {today}T{text}"
            ) from None
        raise typer.BadParameter(
            f"TICK: {text!r} is no instant and no reading of a clock; write e.g. 2026-03-29T01:00:00Z, "
            "2026-03-29T02:30 for the job's own clock, last, or next"
        ) from None
    if given.year not in _YEARS:
        raise typer.BadParameter(f"TICK: {text!r} lies outside the years {_YEARS.start} to {_YEARS.stop - 1}")
    if given.tzinfo is not None:
        if tz is not None:
            raise typer.BadParameter(f"--tz goes with a local reading; {text} says its offset itself")
        return given.astimezone(UTC), None
    zone = store.reads.zone(job) if tz is None else tz
    try:
        reading = find_reading(given, zone)
    except SextonError as error:
        raise typer.BadParameter(f"--tz: {error}") from None
    if reading.jump is not None:
        return reading.jump.at, reading
    return _showing(store, job, reading), reading


def _is_time(text: str) -> bool:
    try:
        time.fromisoformat(text)
    except ValueError:
        return False
    return ":" in text


def _showing(store: Store, job: str, reading: LocalReading) -> datetime:
    """Of two showings the one that is a tick; the first where both or neither are."""
    from sexton.tick_explanation import explain as explain_facts

    for instant in reading.instants[:1] if len(reading.instants) == 1 else reading.instants:
        if len(reading.instants) == 1 or explain_facts(store.reads.tick_facts(job, instant)).is_due:
            return instant
    return reading.instants[0]


def _reading_note(store: Store, found: TickExplanation, reading: LocalReading) -> str:
    """What there is to say of a reading that no instant, or two, show."""
    from sexton.tick_reasons import change_words, clock_text, local_text

    when = f"{clock_text(reading.reading)} on {reading.reading:%Y-%m-%d} in {reading.zone}"
    if reading.jump is not None:
        jump = f"{when} does not exist ({change_words(reading.jump)})"
        if not found.is_due:
            return f"{jump}; nothing fires for it: {found.why}"
        fires = "fired" if found.tick <= store.now() else "fires"
        return f"{jump}; what is due then {fires} at {local_text(found.tick, reading.zone)}"
    others = [instant for instant in reading.instants if instant != found.tick]
    if others:
        return f"{when} comes twice, this is {instant_text(found.tick)}; ask for {instant_text(others[0])} as well"
    return ""


# --- as text ------------------------------------------------------------------------------------------


def _lines(found: TickExplanation, note: str, width: int) -> Iterator[str]:
    from sexton_tui.console.core.explained import explained

    title = f"{found.job}  {instant_text(found.tick)}"
    yield printable(f"{title}  ({found.local})" if found.zone != "UTC" else title)
    for label, text in explained(found, note):
        indent = " " * (_LABEL + 2)
        yield from textwrap.wrap(
            printable(text),
            width,
            initial_indent=f"{label:<{_LABEL}}  ",
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
