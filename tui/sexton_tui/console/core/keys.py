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
    ("e", "explain the tick, or the tick of the run, under the cursor: why it ran, or did not"),
    ("a", "approve the held ticks under the cursor, all or a part"),
    ("x", "reject them; asks why"),
    ("p", "pause the job under the cursor; asks why"),
    ("r", "resume it, also out of quarantine; asks what becomes of ticks that fell due in its pause"),
    ("P", "pause all jobs, or end that; asks why"),
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
    ("q", "leave"),
)


_CHANGING = frozenset("axprPtsbcoduRhFCK")


def help_lines(*, can_kill: bool, read_only: bool) -> list[Line]:
    """Every key with what it does."""
    lines = [line(("Keys", STRONG)), line()]
    for key, text in _KEYS:
        if key == "K" and not can_kill:
            continue
        if read_only and key in _CHANGING:
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
