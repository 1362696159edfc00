"""The service that a timer starts, as the keys of a job: what it runs, where, and within which limits."""

from __future__ import annotations

import re
from datetime import timedelta

from sexton.jobfiles.importers.choices import ImportChoices, UserRule, what_of_users, with_user
from sexton.jobfiles.importers.findings import shown
from sexton.jobfiles.importers.shell_words import Variable
from sexton.jobfiles.importers.systemd_commands import ExecLine, NotCommand, argv_of, read_exec, script_of
from sexton.jobfiles.importers.systemd_limits import LIMIT_SETTINGS, limits_of
from sexton.jobfiles.importers.unit_files import NotWords, Setting, is_true, span_of, with_specifiers, words_of
from sexton.jobfiles.importers.unit_findings import AboutJob, Unit
from sexton.settings import format_duration

_ELSEWHERE = ("EnvironmentFile", "PassEnvironment")
_DEFAULT_KILL_AFTER = timedelta(seconds=90)
_READ = frozenset(
    {
        "Type",
        "ExecStart",
        "ExecStartPre",
        "ExecStartPost",
        "Environment",
        "WorkingDirectory",
        "User",
        "Restart",
        "RestartSec",
    }
    | {"TimeoutStartSec", "TimeoutStopSec", "TimeoutSec", "RuntimeMaxSec", "SuccessExitStatus", "StandardInputText"}
    | {"KillSignal", "RemainAfterExit", "EnvironmentFile", "Description"}
    | LIMIT_SETTINGS
)
_SANDBOX = re.compile(
    r"Protect|Private|Restrict|SystemCall|NoNewPrivileges|Capability|AmbientCap|ReadOnly|ReadWrite|Inaccessible|Bind|Root"
    r"|DynamicUser|Group|SupplementaryGroups|UMask|Lock|MemoryDeny|StateDirectory|CacheDirectory|RuntimeDirectory|Logs"
    r"|ConfigurationDirectory|LoadCredential|SetCredential|PassEnvironment|UnsetEnvironment|PAMName|Delegate|SELinux|AppArmor"
)
_RESOURCE = re.compile(r"CPU|IO|Memory|Tasks|Limit|Nice|Slice|OOM|Block|IPAccounting|IPAddress|Device|Weight")
_EXIT_NAMES = {
    "SUCCESS": 0, "FAILURE": 1, "USAGE": 64, "DATAERR": 65, "NOINPUT": 66, "NOUSER": 67, "NOHOST": 68,
    "UNAVAILABLE": 69, "SOFTWARE": 70, "OSERR": 71, "OSFILE": 72, "CANTCREAT": 73, "IOERR": 74, "TEMPFAIL": 75,
    "PROTOCOL": 76, "NOPERM": 77, "CONFIG": 78,
}  # fmt: skip


def service_keys(unit: Unit, name: str, about: AboutJob, choices: ImportChoices) -> dict[str, object] | None:
    """The keys of the job that runs what the service runs; None (reported) where it runs nothing."""
    reader = _Service(unit, name, about, choices)
    keys = reader.keys()
    tell_unit_settings(unit, about)
    for setting in unit.settings:
        if setting.section == "Service" and setting.key not in _READ:
            about.left_out(setting, _why_left_out(setting))
    return keys


def tell_unit_settings(unit: Unit, about: AboutJob) -> None:
    """Everything in [Unit], [Install] and sections of no meaning here."""
    for setting in unit.settings:
        if setting.section in ("Timer", "Service") or (setting.section, setting.key) == ("Unit", "Description"):
            continue
        if setting.section.startswith("X-"):
            about.left_out(setting, "stands in a section that systemd too passes over")
        elif setting.section == "Install":
            about.left_out(setting, "says when the unit is enabled; a job is on once it is applied")
        elif setting.key.startswith(("Condition", "Assert")):
            about.left_out(
                setting,
                f"the job runs whether or not {shown(setting.value)} holds; ask in the command (such as test -e)",
            )
        elif setting.key in ("OnFailure", "OnSuccess"):
            about.left_out(
                setting, "Sexton starts no unit after a run; ask `sexton runs --output json`, or do it in the command"
            )
        elif setting.key in ("Documentation", "SourcePath"):
            about.left_out(setting, "is for readers; put it into description if it helps")
        else:
            about.left_out(setting, "orders and binds units of one machine; jobs have no such order")


def _why_left_out(setting: Setting) -> str:
    if setting.key.startswith("ExecStop") or setting.key in ("ExecReload", "ExecCondition"):
        return f"is not run: {shown(setting.value)}; put it into the command if the job needs it"
    if setting.key.startswith("Standard"):
        return f"the outputs' last 64 KiB are kept by Sexton; {shown(setting.value)} is not done (a shell can redirect)"
    if _SANDBOX.match(setting.key):
        return "Sexton does not fence its jobs; put it on the worker's own unit, or import with --as systemctl"
    if setting.key in ("MemoryMax", "MemoryHigh", "MemoryLimit"):
        return (
            f"{shown(setting.value)} is for all processes together; limits: {{memory: ...}} is the address space of "
            "each, which some programs take much of and never use: write it by hand, or import with --as systemctl"
        )
    if _RESOURCE.search(setting.key):
        return "Sexton sets no such limit; put it on the worker's own unit, or import with --as systemctl"
    if setting.key.startswith("Syslog") or setting.key.startswith("Log"):
        return "outputs are kept by Sexton, not by the journal"
    return f"is not carried over: {shown(setting.value)}"


class _Service:
    """Reads one service for one job."""

    def __init__(self, unit: Unit, name: str, about: AboutJob, choices: ImportChoices) -> None:
        self._unit, self._name, self._about, self._choices = unit, name, about, choices
        kind = unit.last("Service", "Type")
        self._type = kind.value if kind is not None else "simple"

    def keys(self) -> dict[str, object] | None:
        env = self._env()
        user = self._user()
        target = self._target(env, user)
        if target is None:
            return None
        keys: dict[str, object] = {**target, "queue": self._choices.queue_of(user)}
        if env:
            keys["env"] = env
        keys.update(self._limits())
        keys.update(limits_of(self._unit, self._about))
        keys.update(self._outcome())
        if (folder := self._unit.last("Service", "WorkingDirectory")) is not None:
            path = self._resolved(folder, folder.value.removeprefix("-"))
            if path.startswith("/"):
                keys["cwd"] = path
            else:
                self._about.differs(
                    folder, f"{shown(folder.value)} is the user's home, which is not known here: write cwd"
                )
        if given := self._unit.every("Service", "StandardInputText"):
            keys["stdin"] = "".join(f"{one.value}\n" for one in given)
        if (text := self._unit.last("Unit", "Description")) is not None:
            keys["description"] = with_specifiers(text.value, self._name)[0]
        for one in self._unit.every("Service", "EnvironmentFile"):
            self._about.left_out(
                one,
                f"the variables in {shown(one.value)} are not in this unit: write them to env, or read the file "
                "in the command",
            )
        return keys

    def _resolved(self, setting: Setting, text: str) -> str:
        resolved, unknown = with_specifiers(text, self._name)
        unknown = [one for one in unknown if one not in ("%i", "%I")]  # a template's, which is told of the whole job
        if unknown:
            self._about.error(
                setting,
                f"{', '.join(unknown)} is filled in by the machine's systemd and not known here; write the value",
            )
        return resolved

    def _env(self) -> dict[str, str]:
        env: dict[str, str] = {}
        for setting in self._unit.every("Service", "Environment"):
            try:
                words = words_of(self._resolved(setting, setting.value))
            except NotWords as error:
                self._about.error(setting, str(error))
                continue
            for word in words:
                name, equals, value = word.partition("=")
                if equals and name:
                    env[name] = value
                else:
                    self._about.error(setting, f"{shown(word)} is not NAME=value; quote values with blanks as a whole")
        return env

    def _user(self) -> str | None:
        setting = self._unit.last("Service", "User")
        if setting is None:
            return None
        user = self._resolved(setting, setting.value)
        self._about.differs(setting, what_of_users(self._choices, user, self._choices.queue_of(user)))
        return user

    # --- the command ------------------------------------------------------------------------------------------------

    def _target(self, env: dict[str, str], user: str | None) -> dict[str, object] | None:
        lines: list[ExecLine] = []
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost"):
            for setting in self._unit.every("Service", key):
                try:
                    read = read_exec(self._resolved(setting, setting.value))
                except (NotCommand, NotWords) as error:
                    self._about.error(setting, str(error))
                    return None
                lines += read
                for remark in dict.fromkeys(remark for line in read for remark in line.remarks):
                    self._about.differs(setting, remark)
        if not self._unit.every("Service", "ExecStart"):
            place = Setting("Service", "ExecStart", "", self._unit.file, 0)
            self._about.error(place, f"{self._name} runs nothing (it has no ExecStart=), so there is no job")
            return None
        self._tell_unknown_variables(lines, env)
        if self._type in ("forking", "dbus", "notify", "notify-reload", "idle"):
            kind = self._unit.last("Service", "Type")
            assert kind is not None  # noqa: S101 - the type was read from it
            self._about.differs(
                kind, f"{self._type}: Sexton waits for the program's end, and knows no sign of its start"
            )
        is_sudo = user is not None and self._choices.users is UserRule.SUDO
        argv = argv_of(lines)
        if argv is not None:
            return {"command": with_user(argv, user, self._choices.users, env)}
        script = script_of(lines)
        if is_sudo:
            return {"command": with_user(["/bin/sh", "-c", script], user, self._choices.users, env)}
        return {"shell": script}

    def _tell_unknown_variables(self, lines: list[ExecLine], env: dict[str, str]) -> None:
        """Variables of the command that only a file of the machine has a value for: without it they are empty."""
        named = {part.name for line in lines for word in line.words for part in word if isinstance(part, Variable)}
        for setting in [one for key in _ELSEWHERE for one in self._unit.every("Service", key)][:1]:
            for name in sorted(named - env.keys()):
                self._about.error(setting, f"${name} of the command has its value from there; write it to env")

    # --- limits and outcome -----------------------------------------------------------------------------------------

    def _span(self, *names: str) -> tuple[Setting, timedelta | None] | None:
        """The first of these settings that is there, and its span; None where none is, or it is no span (reported)."""
        for name in names:
            if (setting := self._unit.last("Service", name)) is not None:
                try:
                    return setting, span_of(setting.value)
                except ValueError as error:
                    self._about.error(setting, str(error))
                    return None
        return None

    def _limits(self) -> dict[str, object]:
        keys: dict[str, object] = {}
        is_oneshot = self._type == "oneshot"
        longest = self._span("TimeoutStartSec", "TimeoutSec") if is_oneshot else self._span("RuntimeMaxSec")
        if longest is not None:
            setting, span = longest
            if span:
                keys["max_runtime"] = format_duration(span)
            else:
                self._about.differs(
                    setting, "means no limit in systemd; Sexton's is max_runtime: 24h unless another is written"
                )
        other = "RuntimeMaxSec" if is_oneshot else "TimeoutStartSec"
        if (ignored := self._unit.last("Service", other)) is not None:
            self._about.left_out(ignored, f"has no effect on a service of Type={self._type}")
        stop = self._span("TimeoutStopSec", "TimeoutSec")
        span = stop[1] if stop is not None else _DEFAULT_KILL_AFTER
        keys["kill_after"] = format_duration(span if span is not None else timedelta(days=1))
        signal = self._unit.last("Service", "KillSignal")
        if signal is not None and signal.value not in ("SIGTERM", "TERM", "15"):
            self._about.differs(signal, f"Sexton ends a run by SIGTERM, then SIGKILL, not by {shown(signal.value)}")
        remain = self._unit.last("Service", "RemainAfterExit")
        if remain is not None and is_true(remain.value):
            self._about.differs(
                remain, "systemd would start the service once and then hold it active; Sexton runs it each time"
            )
        return keys

    def _outcome(self) -> dict[str, object]:
        keys: dict[str, object] = {}
        codes = [0]
        for setting in self._unit.every("Service", "SuccessExitStatus"):
            for word in setting.value.split():
                number = _EXIT_NAMES.get(word, int(word) if re.fullmatch(r"[0-9]{1,3}", word) else -1)
                if 0 <= number <= 255:
                    codes.append(number)
                else:
                    self._about.left_out(setting, f"{shown(word)} is no exit code; a run that a signal ends has failed")
        if len(codes) > 1:
            keys["success_codes"] = sorted(set(codes))
        restart = self._unit.last("Service", "Restart")
        if restart is None or restart.value == "no":
            return keys
        if restart.value not in ("on-failure", "on-abnormal", "on-abort", "always"):
            self._about.left_out(restart, f"{shown(restart.value)} is not carried over: a run that succeeded is done")
            return keys
        delay = self._span("RestartSec")
        every = format_duration(delay[1]) if delay is not None and delay[1] else "100ms"
        keys["retries"] = {"max": 5, "delay": every, "factor": 1, "max_delay": every, "jitter": False}
        self._about.differs(
            restart,
            f"{restart.value}: systemd tries for ever, within its start limit; written as 5 retries of a failed run",
        )
        return keys
