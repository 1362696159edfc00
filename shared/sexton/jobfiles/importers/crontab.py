"""Crontabs, of users and of the system, as jobs: what each line becomes, with the assignments above it in force.

Meaning is kept where Sexton can keep it: every job may overlap with itself, what was missed is skipped, and nothing is
run twice, because that is what crond does. What cannot be kept is told in a finding, per line or for the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sexton.errors import InvalidSchedule
from sexton.jobfiles.importers.choices import ImportChoices, UserRule, what_of_users, with_user
from sexton.jobfiles.importers.command_names import names_for_command
from sexton.jobfiles.importers.crontab_lines import (
    Assignment,
    AtBoot,
    BadLine,
    DisabledJob,
    JobLine,
    Nothing,
    read_line,
)
from sexton.jobfiles.importers.crontab_remarks import (
    remark_on_assignment,
    remark_on_file,
    remark_on_job,
    takes_lock_or_leaves,
)
from sexton.jobfiles.importers.findings import Finding, Findings, Imported, ImportedJob, Verdict, shown
from sexton.jobfiles.importers.foreign_files import is_foreign
from sexton.jobfiles.importers.job_names import NameGiver
from sexton.jobfiles.importers.source_text import decode_source, source_lines
from sexton.zones import load_zone

DEFAULT_PATH = "/usr/bin:/bin"
LONGEST_LINE = 200_000
_KINDS = ("jobs", "env", "reboot", "disabled", "errors", "comments", "blank")
# Said to crond, not to the commands; some of it says nothing of when and how they run.
_FOR_MAIL = frozenset({"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
_FOR_CROND = _FOR_MAIL | {"CRON_TZ", "RANDOM_DELAY", "LOGNAME", "USER"}
# Users that are not programs too (mail, man, backup and mysql are).
_KNOWN_USERS = frozenset({"root", "www-data", "nobody"})
# Where crond keeps the crontabs of users, each under its user's name.
_SPOOL = re.compile(r"(^|/)var/(?:spool/)?cron/(?:crontabs/|tabs/)?(?P<user>[A-Za-z_][A-Za-z0-9_.-]*)$")
_LONGEST_DELAY_MINUTES = 20 * 24 * 60


@dataclass(slots=True)
class _InForce:
    """What the lines so far have set, as it holds for the next job."""

    env: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Name to line and value."""
    timezone: str | None = None
    broken: dict[str, int] = field(default_factory=dict)
    """Name to line of the assignments in error: nobody knows what the jobs below should have had."""
    jitter_minutes: int = 0
    used: set[int] = field(default_factory=set)

    def value(self, name: str) -> str | None:
        return self.env[name][1] if name in self.env else None


def import_crontab(data: bytes, file: str, choices: ImportChoices, names: NameGiver | None = None) -> Imported:
    """Everything that the crontab ``file`` holds. Never raises.

    With ``names``, which several files share, the jobs' names are handles until ``names.settled``.
    """
    findings = Findings(file)
    text = decode_source(data, findings)
    if text is None:
        return Imported(findings=tuple(findings.found))
    if is_foreign(text, "crontab", findings):
        return Imported(findings=tuple(findings.found), counts={"errors": 1})
    lines = source_lines(text)
    has_user = choices.has_user_column
    if has_user is None:
        has_user, why = guess_user_column(file, lines)
        if why:
            findings.note(0, why)
    if lines and lines[-1].strip() and not text.endswith("\n") and not lines[-1].lstrip().startswith("#"):
        findings.differs(
            len(lines), "has no line break at its end: Vixie's cron passes over such a last line; it was imported"
        )
    carriage_returns = sum(line.endswith("\r") for line in lines)
    if carriage_returns:
        findings.differs(
            0, f"{carriage_returns} lines end in CR LF; crond hands the CR to the command, and here it was removed"
        )
    given = names or NameGiver(choices.prefix)
    reader = _Reader(findings, choices, given, has_user)
    for number, line in enumerate(lines, start=1):
        reader.read(number, line.removesuffix("\r"))
    return reader.imported() if names is given else given.settled(reader.imported())


def with_nothing_told(imported: Imported, file: str) -> Imported:
    """The import of all files; where they hold nothing but comments, that is an error, for a job file without jobs
    would retire those that an earlier import gave."""
    if imported.has_errors or any(number for what, number in imported.counts.items() if what in _KINDS[:-2]):
        return imported
    name = "stdin" if file == "-" else file
    told = Finding(name, 0, Verdict.ERROR, "holds nothing to import; see that it is the right one, as crontab -l gives")
    return replace(imported, findings=(*imported.findings, told))


class _Reader:
    """Walks the lines once, from the top."""

    def __init__(self, findings: Findings, choices: ImportChoices, names: NameGiver, has_user: bool) -> None:
        self._findings = findings
        self._choices = choices
        self._names = names
        self._has_user = has_user
        spool = _SPOOL.search(findings.file)
        self._account = None if spool is None or has_user else spool["user"]
        self._state = _InForce()
        self._counts = dict.fromkeys(_KINDS, 0)
        self._jobs: list[ImportedJob] = []
        self._disabled: list[ImportedJob] = []
        self._assigned: dict[int, str] = {}
        self._users: dict[str, tuple[int, str]] = {}
        self._host_zone_from = 0

    def read(self, number: int, text: str) -> None:
        """One line; it becomes part of exactly one count."""
        if "\0" in text or len(text) > LONGEST_LINE:
            what = "holds a NUL: is the file UTF-16?" if "\0" in text else f"has more than {LONGEST_LINE} characters"
            self._error(number, f"{what}; mend or remove it")
            return
        line = read_line(text, has_user=self._has_user)
        match line:
            case Nothing():
                self._counts["comments" if line.is_comment else "blank"] += 1
            case Assignment():
                self._assign(number, line)
            case JobLine():
                self._counts["jobs"] += 1
                self._jobs.append(self._job(number, text, line, is_enabled=True))
            case DisabledJob():
                self._disable(number, text, line.job)
            case AtBoot():
                self._counts["reboot"] += 1
                self._findings.left_out(
                    number,
                    "@reboot runs when crond starts, and a cluster has no such moment: "
                    f"{shown(line.command, 120)}; start it by the machine's service manager (a systemd unit), or "
                    "give it a time",
                )
            case BadLine():
                self._error(number, line.message, breaks=line.assigns)

    def imported(self) -> Imported:
        """What all lines together have become."""
        for number, name in self._assigned.items():
            if number not in self._state.used:
                self._findings.left_out(number, f"{name} was not carried over: no job below it has it from here")
        for user, (number, queue) in self._users.items():
            self._findings.differs(number, what_of_users(self._choices, user, queue))
        if self._jobs:
            has_home = all("cwd" in job.keys for job in self._jobs)
            remark_on_file(
                self._findings, self._choices, self._host_zone_from, has_home=has_home, has_user=self._has_user
            )
        self._findings.found.sort(key=lambda finding: finding.line)
        return Imported(tuple(self._jobs), tuple(self._disabled), tuple(self._findings.found), dict(self._counts))

    def _error(self, number: int, message: str, *, breaks: str = "") -> None:
        """``breaks``: the variable that the jobs below should have had."""
        self._counts["errors"] += 1
        if breaks:
            self._state.broken[breaks] = number
        if breaks and breaks not in _FOR_MAIL:
            message += "; the jobs below it are written with enabled: false"
        self._findings.error(number, message)

    def _disable(self, number: int, text: str, job: JobLine) -> None:
        self._counts["disabled"] += 1
        if not self._choices.with_disabled:
            self._disabled.append(ImportedJob("", {}, self._findings.file, number, (text,)))
            self._findings.disabled(number, "is commented out, and left so; see --with-disabled")
            return
        written = self._job(number, text, job, is_enabled=False)
        self._jobs.append(written)
        self._findings.disabled(number, "is commented out; written with enabled: false", written.name)

    # --- assignments ----------------------------------------------------------------------------------------------

    def _assign(self, number: int, line: Assignment) -> None:
        name, value = line.name, line.value
        self._state.broken.pop(name, None)
        if name == "CRON_TZ" and not self._set_zone(number, value):
            return
        if name == "SHELL" and not re.fullmatch(r"/[^\s$;\"']+", value):
            self._error(
                number,
                f"SHELL={shown(value)} is no path of a shell, so crond could start none of the jobs below; write one "
                "(a comment needs a line of its own)",
                breaks=name,
            )
            return
        if name == "RANDOM_DELAY":
            self._set_delay(number, value)
        self._counts["env"] += 1
        self._state.env[name] = (number, value)
        if name not in _FOR_CROND:
            self._assigned[number] = name
        remark_on_assignment(self._findings, number, name, value)

    def _set_zone(self, number: int, value: str) -> bool:
        name = value.removeprefix(":")
        self._state.timezone = None
        if " " in name:
            self._error(
                number,
                f"CRON_TZ={shown(value)} holds more than a zone, which needs a line of its own (and so does a comment)",
                breaks="CRON_TZ",
            )
            return False
        if not name:
            return True
        try:
            load_zone(name)
        except InvalidSchedule as error:
            self._error(number, f"CRON_TZ: {error}", breaks="CRON_TZ")
            return False
        self._state.timezone = name
        return True

    def _set_delay(self, number: int, value: str) -> None:
        if re.fullmatch(r"[0-9]{1,6}", value) and int(value) <= _LONGEST_DELAY_MINUTES:
            self._state.jitter_minutes = int(value)
        else:
            self._state.jitter_minutes = 0
            self._findings.left_out(
                number, f"RANDOM_DELAY={shown(value)} is no number of minutes; no jitter was written"
            )

    # --- jobs -----------------------------------------------------------------------------------------------------

    def _job(self, number: int, text: str, line: JobLine, *, is_enabled: bool) -> ImportedJob:
        name = self._names.propose(names_for_command(line.command))
        if line.user is not None and (more := re.search(r"[:/].*", line.user)):
            self._findings.left_out(number, f"{more[0]} after its user (FreeBSD's group and login class)", name)
            line = replace(line, user=line.user[: more.start()])
        remark_on_job(self._findings, number, name, line, text)
        line = replace(line, user=line.user or self._account)
        state, choices = self._state, self._choices
        env = self._env(line.command)
        keys: dict[str, object] = {"schedule": line.times.expression, "timezone": state.timezone or choices.timezone}
        if state.timezone is None and is_enabled:
            self._host_zone_from = self._host_zone_from or number
        if state.jitter_minutes:
            keys["jitter"] = f"{state.jitter_minutes}m"
        broken = [one for one in state.broken if one not in _FOR_MAIL or _reads(line.command, one)]
        if not is_enabled or broken:
            keys["enabled"] = False
        keys.update(self._target(line, env))
        if env:
            keys["env"] = env
        home = state.value("HOME") or choices.home_of(line.user) or ("" if self._has_user else choices.home_of(None))
        if home and home.startswith("/") and not (line.user and choices.users is UserRule.SUDO):
            keys["cwd"] = home
        if line.stdin is not None:
            keys["stdin"] = line.stdin
        keys["queue"] = choices.queue_of(line.user)
        keys["overlap"] = "skip" if takes_lock_or_leaves(line.command) else "allow"
        keys["on_worker_lost"] = "fail"
        keys["missed"] = {"policy": "skip", "start_within": "10m"}
        if (owner := state.value("MAILTO")) and len(owner) <= 200:
            keys["owner"] = owner
        if line.user is not None:
            self._users.setdefault(line.user, (number, str(keys["queue"])))
        if broken:
            listed = ", ".join(f"{one} (line {state.broken[one]})" for one in broken)
            what = "timezone" if broken == ["CRON_TZ"] else "what it should have"
            self._findings.differs(
                number, f"stands below an error in {listed}: write {what} here, then remove enabled: false", name
            )
        return ImportedJob(name, keys, self._findings.file, number, (text,))

    def _env(self, command: str) -> dict[str, str]:
        env: dict[str, str] = {}
        for name, (number, value) in self._state.env.items():
            if name not in _FOR_CROND or (name.startswith("MAIL") and _reads(command, name)):
                env[name] = value
                self._state.used.add(number)
        env.setdefault("PATH", DEFAULT_PATH)
        return env

    def _target(self, line: JobLine, env: Mapping[str, str]) -> dict[str, object]:
        shell = "/bin/sh" if "SHELL" in self._state.broken else self._state.value("SHELL") or "/bin/sh"
        is_sudo = line.user is not None and self._choices.users is UserRule.SUDO
        if shell == "/bin/sh" and not is_sudo:
            return {"shell": line.command}
        return {"command": with_user([shell, "-c", line.command], line.user, self._choices.users, env)}


def _reads(command: str, name: str) -> bool:
    """Whether a command uses a variable by name."""
    return re.search(rf"\${{?{name}\b", command) is not None


def guess_user_column(file: str, lines: list[str]) -> tuple[bool, str]:
    """Whether a user stands between times and command, by the file's path, else by what stands there; and the note."""
    if re.search(r"(^|/)etc/(crontab|cron\.d/[^/]+)$", file):
        return True, "is a system crontab by its path, so each job names its user (--no-system says otherwise)"
    sixth: list[str] = []
    for line in lines:
        stripped = line.strip()
        if stripped and stripped[0] in "*0123456789@" and not stripped.startswith("@reboot"):
            parts = stripped.split(maxsplit=6)
            at = 1 if stripped.startswith("@") else 5
            if len(parts) > at + 1:
                sixth.append(parts[at])
    if sixth and all(re.fullmatch(r"[a-z_][a-z0-9_-]*", word) for word in sixth) and _KNOWN_USERS & {*sixth}:
        return True, "looks like a system crontab: each job names a user (--no-system says otherwise)"
    return False, ""
