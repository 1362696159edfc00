"""Findings about units of systemd, which stand in several files: each at the setting it speaks of."""

from __future__ import annotations

from sexton.jobfiles.importers.findings import Finding, Findings, Verdict
from sexton.jobfiles.importers.unit_files import Setting, UnitSource, settings_of


class UnitFindings:
    """One collection per file, in the order in which the files were named."""

    def __init__(self) -> None:
        self._of_file: dict[str, Findings] = {}

    def of(self, file: str) -> Findings:
        return self._of_file.setdefault(file, Findings(file))

    def all(self) -> tuple[Finding, ...]:
        """Everything that was found, by file and line."""
        return tuple(
            finding
            for findings in self._of_file.values()
            for finding in sorted(findings.found, key=lambda finding: finding.line)
        )


class AboutJob:
    """Says things about the settings of one job's units."""

    def __init__(self, findings: UnitFindings, job: str) -> None:
        self._findings = findings
        self.job = job

    def error(self, setting: Setting, message: str) -> None:
        self._add(setting, Verdict.ERROR, message)

    def left_out(self, setting: Setting, message: str) -> None:
        self._add(setting, Verdict.LEFT_OUT, message)

    def differs(self, setting: Setting, message: str) -> None:
        self._add(setting, Verdict.DIFFERS, message)

    def note(self, setting: Setting, message: str) -> None:
        self._add(setting, Verdict.NOTE, message)

    def _add(self, setting: Setting, verdict: Verdict, message: str) -> None:
        self._findings.of(setting.file).add(setting.line, verdict, f"{setting.key}: {message}", self.job)


class Unit:
    """All settings of a unit, its file's first, then its drop-ins'; an empty value takes back the ones before it."""

    def __init__(self, name: str, sources: list[UnitSource], findings: UnitFindings) -> None:
        self.name = name
        self.file = sources[0].file
        self.settings = [one for source in sources for one in settings_of(source, findings.of(source.file))]

    def every(self, section: str, key: str) -> list[Setting]:
        """The settings of a key that may stand several times."""
        found: list[Setting] = []
        for setting in self.settings:
            if (setting.section, setting.key) == (section, key):
                found = [*found, setting] if setting.value else []
        return found

    def last(self, section: str, key: str) -> Setting | None:
        """The setting that counts, of a key that has one value."""
        found = [one for one in self.settings if (one.section, one.key) == (section, key)]
        return found[-1] if found and found[-1].value else None
