"""The panes by number, and what help says."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import cell_len

from sexton_tui.console.core.lines import DIM, STRONG, Line, Span, line
from sexton_tui.console.core.typed_instants import EXAMPLES


@dataclass(frozen=True, slots=True)
class PaneName:
    """A pane: the key that chooses it, and its title; a shorter one for narrow screens."""

    key: str
    id: str
    title: str
    short: str = ""


PANES = (
    PaneName("1", "overview", "Overview", "Over"),
    PaneName("2", "takeovers", "Takeovers", "Terms"),
    PaneName("3", "holds", "Holds"),
    PaneName("4", "jobs", "Jobs"),
    PaneName("5", "runs", "Runs"),
    PaneName("6", "workers", "Workers", "Work"),
    PaneName("7", "queues", "Queues", "Que"),
    PaneName("8", "audit", "Audit", "Log"),
    PaneName("9", "settings", "Settings", "Set"),
)

_KEYS = (
    ("1 .. 9", "the panes, as their titles say"),
    ("enter", "open what is under the cursor"),
    ("escape", "back"),
    ("/", "show only what holds these letters in their order; also state:paused queue:gpu owner:data tag:ml"),
    ("escape", "on a pane: show all again, as of now"),
    ("S", "jobs: by name, by state, or the newest failure first"),
    ("@", f"runs, and a job's ticks and runs: as of another time, {EXAMPLES}"),
    ("[ ]", "runs: newer ones, older ones; jobs: a screenful up, down"),
    ("home end", "the first, the last; runs: the newest, the oldest"),
    ("tab", "job: its next part: overview, ticks, runs, calendar, revisions"),
    ("v l", "run: both outputs, stdout or stderr; follow what it writes"),
    ("f", "runs: only the failed ones, and back"),
    ("e", "explain the tick, or the tick of the run, under the cursor: why it ran, or did not"),
    ("a", "approve the held ticks under the cursor, all or a part"),
    ("x", "reject them; asks why"),
    ("p", "pause the job under the cursor; asks why"),
    ("r", "resume it, also out of quarantine; asks what becomes of ticks that fell due in its pause"),
    ("P", "pause all jobs, asks why; or end that"),
    ("t", "trigger it: run it once now, beside its schedule"),
    ("s", "skip its next tick, or the tick ahead under the cursor; asks why"),
    ("b", "backfill ticks of it that did not run; asks which and why"),
    ("c", "cancel the run or tick under the cursor, or all of the job's that run or wait"),
    ("o", "run the ended tick under the cursor once more; asks why"),
    ("d", "drain the worker under the cursor: it finishes its runs and ends"),
    ("u", "undo the last act, where anything undoes it; trigger, cancel and answers have nothing that does"),
    ("R", "ask the leader to hand over"),
    ("h", "halt the cluster, or lift the halt: no tick is decided, no claim granted meanwhile; asks why"),
    ("F", "force a node to lead, whatever ZooKeeper says; asks which"),
    ("C", "accept the database's clock after it jumped"),
    ("K", "kill the leader's process (in `sexton up` and `make cluster`)"),
    ("z", "clock readings in UTC, in the zone of this machine, or as distances from now"),
    ("T", "the next theme: dark, light, of high contrast"),
    ("ctrl+p", "the command palette"),
    ("q", "leave; under `sexton up` that stops the cluster, and is asked first"),
)


_CHANGING = frozenset("axprPtsbcoduRhFCK")


_EVERYWHERE = ("1 .. 9", "enter", "escape", "home end", "P", "R", "h", "F", "C", "z", "T", "ctrl+p", "q")


def help_lines(*, can_kill: bool, read_only: bool, here: Mapping[str, str] | None = None) -> list[Line]:
    """Every key with what it does: first those that work on this screen, on what is under its cursor. ``here``: these,
    each with its description; None where that is not known."""
    known = [(key, text) for key, text in _KEYS if (key != "K" or can_kill) and not (read_only and key in _CHANGING)]
    works = {} if here is None else dict(here)
    on_this = [(key, text) for key, text in known if key not in _EVERYWHERE and set(key.split()) & works.keys()]
    named = {part for key, _ in _KEYS for part in key.split()} | {"?"}
    on_this += [(key, text) for key, text in works.items() if key not in named and text]
    general = [(key, text) for key, text in known if key in _EVERYWHERE]
    others = [one for one in known if one not in on_this and one not in general]
    lines: list[Line] = []
    for title, keys in (("Keys here, now", on_this), ("Everywhere", general), ("Elsewhere", others)):
        if keys:
            lines += [line((title, STRONG)), *(line((f"  {key:<10}", STRONG), text) for key, text in keys), line()]
    lines += [
        line(("The zone of all instants stands beside the clock. Late: how long after its tick a run started.", DIM)),
        line(("Every action is recorded with who and why; pane 8 lists them.", DIM)),
    ]
    if read_only:
        lines.append(line("Started read-only: no action is offered."))
    return lines


def hanging(one: Line, width: int) -> list[Line]:
    """A key and what it does, broken at the width behind the key."""
    head, *rest = one.spans or (Span(""),)
    room = max(width - cell_len(head.text), 20)
    if len(rest) != 1 or cell_len(rest[0].text) <= room:
        return [one]
    first, *more = textwrap.wrap(rest[0].text, room, break_on_hyphens=False)
    return [line((head.text, head.style), first), *(line(" " * cell_len(head.text) + text) for text in more)]


_BY_NEED = (
    *("leave", "widen", "help", "quit", "approve", "reject", "explain", "find", "drain", "failed", "sort", "jump"),
    *("", "undo", "pause", "resume", "trigger", "skip_next", "cancel", "run_again", "backfill"),
    *("resign", "kill_leader", "find_jobs", "runs_at", "command_palette"),
)  # "": all that are not named


_ALWAYS = frozenset({"leave", "quit"})
MORE = "… ?", "all keys"
"""What stands for the keys that have no room: the key of help, and its word."""


def fitting(keys: Mapping[str, str], width: int) -> list[str]:
    """The actions whose keys the footer shows, the most needed first, as many as fit; ``keys``: by action, the key and
    its word. Where not all fit, help is the last, as ``MORE``, and the key to leave by is among them."""

    is_overview = "find_jobs" in keys and "leave" not in keys

    def place(action: str) -> int:
        if action == "resign" and is_overview:
            action = "undo"  # who leads is looked at there
        return _BY_NEED.index(action) if action in _BY_NEED else _BY_NEED.index("")

    def cells(action: str) -> int:
        return cell_len(keys[action]) + 2

    in_order = sorted(keys, key=place)
    if sum(map(cells, in_order)) <= width or "help" not in keys:
        return in_order
    kept = [action for action in in_order if action in _ALWAYS]
    width -= cell_len(" ".join(MORE)) + 2 + sum(map(cells, kept))
    for action in in_order:
        if action != "help" and action not in kept:
            width -= cells(action)
            if width < 0:
                break
            kept.append(action)
    return [*sorted(kept, key=place), "help"]
