"""A crontab's text, imported, and what is found in it."""

from __future__ import annotations

from typing import Any

from sexton.jobfiles.importers.choices import ImportChoices
from sexton.jobfiles.importers.crontab import import_crontab
from sexton.jobfiles.importers.findings import Finding, Imported, ImportedJob, Verdict


def imported(text: str, **choices: Any) -> Imported:
    return import_crontab(text.encode(), "crontab", ImportChoices(**choices))


def the_job(text: str, **choices: Any) -> ImportedJob:
    (job,) = imported(text, **choices).jobs
    return job


def found(text: str, verdict: Verdict, **choices: Any) -> list[Finding]:
    return [finding for finding in imported(text, **choices).findings if finding.verdict is verdict and finding.line]


def the_error(text: str, **choices: Any) -> str:
    (finding,) = found(text, Verdict.ERROR, **choices)
    return finding.message
