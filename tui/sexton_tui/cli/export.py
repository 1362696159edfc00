"""``sexton export``: what runs now, as job files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import Refused
from sexton_tui.cli.completing import complete_job
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.output import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sexton.store.protocol import CurrentJob

_MORE_THAN_A_FILE_HOLDS = 10 * 1024 * 1024


def export(
    ctx: typer.Context,
    jobs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[JOB]...", help="These jobs; else all of them.", autocompletion=complete_job),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--output-dir", metavar="DIR", help="A file for each job, instead of all to stdout.")
    ] = None,
) -> None:
    """What runs now, as job files: applied here they change nothing, applied elsewhere they give the same ticks.

    What an operator paused is told in a comment only. Files with env, http or celery, which may hold secrets, are
    readable by their owner only.
    """
    with open_cluster(ctx, read_only=True) as store:
        chosen: Sequence[CurrentJob] = store.edits.current_jobs()
        if jobs:
            by_id = {job.job_id: job for job in (find_job(store, name) for name in jobs)}
            chosen = list(by_id.values())
    if folder is None:
        _print(chosen)
    else:
        _write(chosen, folder)


def _print(jobs: Sequence[CurrentJob]) -> None:
    from sexton.jobfiles.exporting import export_text

    text = export_text(jobs)
    sys.stdout.write(text)
    if len(text.encode()) > _MORE_THAN_A_FILE_HOLDS:
        print("sexton: this is more than one job file may hold; --output-dir DIR writes several", file=sys.stderr)


def _write(jobs: Sequence[CurrentJob], folder: Path) -> None:
    from sexton.jobfiles.exporting import HEADER, export_files
    from sexton.jobfiles.file_writing import write_file

    first_line = f"# {HEADER[0]}\n"
    files = list(export_files(jobs))
    folder.mkdir(parents=True, exist_ok=True)
    names = {file.name for file in files}
    others = sorted(path.name for path in folder.rglob("*") if _is_in_the_way(path, folder, names))
    if others:
        shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        raise Refused(
            f"{folder} holds files that are not of this export ({shown}), and together they would say something else",
            hint="name an empty folder, or remove them; nothing was written",
        )
    for file in files:
        write_file(
            folder / file.name,
            file.text,
            is_private=file.is_private,
            replaces=lambda start: start.startswith(first_line),
            what="an export",
        )
    private = sum(file.is_private for file in files)
    told = f"; {private} with env, http or celery, readable by you alone" if private else ""
    print(f"{counted(len(jobs), 'job')} in {counted(len(files), 'file')} of {folder}{told}", file=sys.stderr)


def _is_in_the_way(path: Path, folder: Path, names: set[str]) -> bool:
    """Whether a file that stands there would be read as a job file beside those of the export."""
    is_read = path.suffix.lower() in (".yaml", ".yml", ".toml", ".py")
    is_ours = path.parent == folder and path.name in names
    return path.is_file() and is_read and not is_ours
