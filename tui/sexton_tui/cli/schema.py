"""``sexton schema``: the JSON Schema of job files, for editors."""

from __future__ import annotations

from sexton_tui.cli.output import print_json


def schema() -> None:
    """Print the JSON Schema (draft 2020-12) of job files: write it to a file and name that to your editor."""
    from sexton.jobfiles.schema import job_file_schema

    print_json(job_file_schema())
