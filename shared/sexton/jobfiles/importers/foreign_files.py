"""What a file is that was given to the wrong importer, so that one sentence says so in the place of one per line."""

from __future__ import annotations

import re

from sexton.jobfiles.importers.crontab_times import looks_like_times
from sexton.jobfiles.importers.findings import Findings

_LINES_LOOKED_AT = 2_000
_MANIFEST = re.compile(r"^[ \t{]*[\"']?apiVersion[\"']?[ \t]*:", re.MULTILINE)
_UNIT = re.compile(r"^\[(?:Unit|Timer|Service|Install)\][ \t\r]*$", re.MULTILINE)
_SAID = {"crontab": "a crontab", "systemd": "a unit of systemd", "kubernetes": "a manifest of Kubernetes"}


def kind_of_source(text: str) -> str | None:
    """The importer that a text is for, as its command is called; None where that is not plain to see."""
    if _UNIT.search(text):
        return "systemd"
    if _MANIFEST.search(text):
        return "kubernetes"
    is_crontab = any(looks_like_times(line) for line in text.split("\n", _LINES_LOOKED_AT)[:_LINES_LOOKED_AT])
    return "crontab" if is_crontab else None


def is_foreign(text: str, wanted: str, findings: Findings) -> bool:
    """Whether the text is plainly for another importer, which is then reported."""
    kind = kind_of_source(text)
    if kind is None or kind == wanted:
        return False
    if wanted == "crontab" and any(looks_like_times(line) for line in text.split("\n")):
        return False  # a job may well print a unit's heading
    findings.error(0, f"is not {_SAID[wanted]}, it reads like {_SAID[kind]}; write: sexton import {kind} FILE")
    return True
