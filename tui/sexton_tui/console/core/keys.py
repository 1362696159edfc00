"""The panes by number, and what help says."""

from __future__ import annotations

from dataclasses import dataclass

from sexton_tui.console.core.lines import DIM, STRONG, Line, line


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
    ("/", "jobs: find by name; runs: only those of one job"),
    ("[ ]", "jobs and runs: the page before, the page after"),
    ("f", "runs: only the failed ones, and back"),
    ("p", "pause the job under the cursor; asks why"),
    ("r", "resume it, also out of quarantine"),
    ("t", "trigger it: run it once now, beside its schedule"),
    ("a", "approve the held ticks under the cursor, all or a part"),
    ("x", "reject them; asks why"),
    ("R", "ask the leader to hand over"),
    ("h", "halt the cluster, or lift the halt: no tick is decided, no claim granted meanwhile; asks why"),
    ("F", "force a node to lead, whatever ZooKeeper says; asks which"),
    ("C", "accept the database's clock after it jumped"),
    ("K", "kill the leader's process (in `sexton up` and `make cluster`)"),
    ("z", "clock readings in UTC, in the zone of this machine, or as distances from now"),
    ("ctrl+p", "the command palette"),
    ("q", "leave"),
)


def help_lines(*, can_kill: bool, read_only: bool) -> list[Line]:
    """Every key with what it does."""
    lines = [line(("Keys", STRONG)), line()]
    for key, text in _KEYS:
        if key == "K" and not can_kill:
            continue
        if read_only and key in ("p", "r", "t", "a", "x", "R", "h", "F", "C", "K"):
            continue
        lines.append(line((f"  {key:<8}", STRONG), text))
    lines += [
        line(),
        line(("The zone of all instants stands beside the clock. Late: how long after its tick a run started.", DIM)),
        line(("Every action is recorded with who and why; pane 8 lists them.", DIM)),
    ]
    if read_only:
        lines.append(line("Started read-only: no action is offered."))
    return lines
