"""``sexton takeovers --preview``: what a takeover now would decide, job by job; nothing is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Column, Output, counted, instant_text, print_json, print_rows, printable

if TYPE_CHECKING:
    from sexton_scheduler.preview import PreviewedJob, TakeoverPreview

_COUNTS = ("missed", "fired", "merged", "skipped", "expired", "held")
_COLUMNS: tuple[Column | str, ...] = (
    *(Column("job", folds=True), Column("after", gives_way=3, in_seconds=True)),
    *(Column("upto", gives_way=2, in_seconds=True), Column("policy", gives_way=1)),
    *(Column("missed", align="right"), Column("fired", align="right")),
    *(Column(key, align="right", gives_way=4, usual="0") for key in ("merged", "skipped", "expired")),
    *(Column("held", align="right"), Column("reason", is_note=True)),
)


def show_preview(ctx: typer.Context, output: Output) -> None:
    """Print it. No node need run."""
    # The one that decides is the node's planner: the very code of a takeover.
    from sexton_scheduler.preview import preview_takeover

    with open_cluster(ctx, read_only=True) as store:
        preview = preview_takeover(store, store.edits.settings())
    rows = [_row(one) for one in preview.jobs]
    if output is Output.JSONL:
        print_rows(rows, output, _COLUMNS)
        return
    totals = {key: sum(row[key] for row in rows) for key in _COUNTS}
    if output is Output.JSON:
        record = {field.name: getattr(preview, field.name) for field in dataclasses.fields(preview)}
        faults = [{"job": job, "reason": reason} for job, reason in preview.faults]
        print_json({**record, "totals": totals, "jobs": rows, "faults": faults})
        return
    if rows:
        print_rows(rows, output, _COLUMNS)
        print()
    for line in _told(preview, totals, len(rows)):
        print(line)


def _row(one: PreviewedJob) -> dict[str, Any]:
    decision = one.decision
    counts = {key: getattr(decision, key) for key in _COUNTS}
    interval = {"after": decision.after, "upto": decision.upto, "policy": decision.policy}
    return {"job": one.job, **interval, **counts, "revision": decision.revision, "reason": decision.reason}


def _told(preview: TakeoverPreview, totals: dict[str, int], jobs: int) -> Sequence[str]:
    now = instant_text(preview.now.replace(microsecond=0))
    if not jobs:
        lines = [f"a takeover now ({now}) would find nothing missed"]
    else:
        parts = [f"{totals[key]:,} {key}" for key in _COUNTS[1:] if totals[key]]
        missed = f"{totals['missed']:,} missed tick{'' if totals['missed'] == 1 else 's'}"
        lines = [f"a takeover now ({now}) would decide {missed} of {counted(jobs, 'job')}: {', '.join(parts)}"]
    if preview.holds_on and jobs:
        lines.append("the pass it goes on with holds its ticks (catch_up.hold_above), and so would this one")
    elif preview.holds_all:
        before = f", and {preview.fired_before:,} fired by the pass it goes on with" if preview.fired_before else ""
        lines.append(
            f"{preview.would_fire:,} would fire{before}: more than catch_up.hold_above ({preview.hold_above:,}), "
            "so they are held instead, whatever the policy"
        )
    if preview.not_started:
        late = counted(preview.not_started, "claim")
        lines.append(f"besides, {late} that no worker took in time would be decided by policy within seconds")
    lines += [f"{printable(job)} would be put in quarantine: {printable(reason)}" for job, reason in preview.faults]
    if preview.is_halted:
        lines.append("the cluster is halted: nothing is decided until `sexton halt --lift`")
    return lines
