"""systemd timers and the services they start, as jobs.

A timer's ticks become the schedule, its service's ``ExecStart=`` the command; every other setting is carried over or
found. Nothing overlaps, because a timer does not start a service that runs: that is Sexton's default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sexton.jobfiles.importers.choices import ImportChoices
from sexton.jobfiles.importers.findings import Imported, ImportedJob, shown, with_faulty_paused
from sexton.jobfiles.importers.foreign_files import is_foreign
from sexton.jobfiles.importers.job_names import NameGiver
from sexton.jobfiles.importers.on_calendar import CalendarPart, NotCalendar, read_on_calendar
from sexton.jobfiles.importers.systemd_services import service_keys, tell_unit_settings
from sexton.jobfiles.importers.unit_files import Setting, UnitSource, is_true, span_of, with_specifiers
from sexton.jobfiles.importers.unit_findings import AboutJob, Unit, UnitFindings
from sexton.settings import format_duration
from sexton.zones import load_zone

_PATH_OF_SERVICES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SINCE_START = ("OnBootSec", "OnStartupSec", "OnActiveSec")
_REPEATING = ("OnUnitActiveSec", "OnUnitInactiveSec")
_READ = frozenset(
    {"OnCalendar", *_SINCE_START, *_REPEATING, "RandomizedDelaySec", "FixedRandomDelay", "Persistent", "Unit"}
)
_LONGEST_JITTER = timedelta(days=20)
_LEFT_OUT = {
    "AccuracySec": "Sexton starts a run at its second, and does not gather timers to spare the machine's sleep",
    "OnClockChange": "a cluster has no such event",
    "OnTimezoneChange": "a cluster has no such event",
    "WakeSystem": "Sexton wakes no machine; a run waits for a worker",
    "RemainAfterElapse": "it speaks of the timer unit itself",
    "RandomizedOffsetSec": "write jitter, or another minute, in its place",
    "DeferReactivation": "a tick that meets a running job is skipped",
}


def import_systemd(sources: Sequence[UnitSource], choices: ImportChoices, *, by_systemctl: bool = False) -> Imported:
    """Jobs for all timers among ``sources``; ``by_systemctl``: they start the service's unit. Never raises."""
    findings = UnitFindings()
    sources = [one for one in sources if not is_foreign(one.text, "systemd", findings.of(one.file))]
    if not sources and findings.all():
        return Imported(findings=findings.all(), counts={"units": 0})
    names = NameGiver(choices.prefix)
    reader = _Timers(sources, choices, names, findings, by_systemctl=by_systemctl)
    jobs = [job for unit in reader.timers for job in reader.jobs_of(unit)]
    for name, unit in reader.units.items():
        if not name.endswith(".timer") and name not in reader.used:
            findings.of(unit.file).left_out(0, f"no timer among the files starts {name}; name its timer too")
    if not reader.timers:
        named = sources[0].file if sources else "nothing"
        findings.of(named).error(
            0, "holds no timer; name a .timer file, or pipe `systemctl cat NAME.timer NAME.service`"
        )
    for file in dict.fromkeys(job.file for job in jobs):
        _tell_all(
            findings.of(file).differs, choices, is_zone_ours=file in reader.without_zone, by_systemctl=by_systemctl
        )
    imported = Imported(tuple(jobs), (), findings.all(), {"units": len(reader.timers)})
    return names.settled(with_faulty_paused(imported))


@dataclass(slots=True)
class _When:
    """What a timer's settings have come to: parts that cannot stand in one job are in several groups."""

    groups: dict[tuple[object, ...], list[CalendarPart]]
    is_broken: bool = False
    """Something in it was found wanting, and reported."""


class _Timers:
    """Reads the timers of one import."""

    def __init__(
        self,
        sources: Sequence[UnitSource],
        choices: ImportChoices,
        names: NameGiver,
        findings: UnitFindings,
        *,
        by_systemctl: bool,
    ) -> None:
        grouped: dict[str, list[UnitSource]] = {}
        for source in sources:
            grouped.setdefault(source.unit, []).append(source)
        self.units = {name: Unit(name, files, findings) for name, files in grouped.items()}
        self.timers = [unit for name, unit in self.units.items() if name.endswith(".timer")]
        self.used: set[str] = set()
        self.without_zone: set[str] = set()
        self._choices, self._names, self._findings, self._by_systemctl = choices, names, findings, by_systemctl

    def jobs_of(self, timer: Unit) -> list[ImportedJob]:
        """One job, or as many as the timer's schedules need; none (reported) where nothing can be made of it."""
        stem = timer.name.removesuffix(".timer")
        name = self._names.propose([stem, f"{stem}-timer"])
        about = AboutJob(self._findings, name)
        when = self._when(timer, about)
        tell_unit_settings(timer, about)
        for setting in timer.settings:
            if setting.section == "Timer" and setting.key not in _READ:
                about.left_out(setting, _LEFT_OUT.get(setting.key, f"is not carried over: {shown(setting.value)}"))
        what = self._what(timer, about)
        if what is None or not when.groups:
            if not when.groups and not when.is_broken:
                self._findings.of(timer.file).error(
                    0, f"{timer.name} says no time that a cluster has; give it OnCalendar="
                )
            return []
        how = self._how(timer, about)
        jobs: list[ImportedJob] = []
        for place, parts in enumerate(when.groups.values()):
            own = name if place == 0 else self._names.propose([f"{stem}-{place + 1}", f"{stem}-timer-{place + 1}"])
            keys = {**self._schedule_keys(parts), **how, **what}
            if parts[0].zone is None:
                self.without_zone.add(timer.file)
            if when.is_broken:
                keys["enabled"] = False
            source = tuple(f"{s.key}={s.value}" for s in timer.settings if s.key in ("OnCalendar", *_REPEATING))
            jobs.append(ImportedJob(own, keys, timer.file, self._line(timer), source))
        if len(jobs) > 1:
            listed = ", ".join(job.name for job in jobs)
            self._findings.of(timer.file).differs(
                0,
                "its OnCalendar= lines differ in zone, years or weekdays, so they became several jobs "
                f"({listed}), which may "
                "run at the same time",
                name,
            )
        return jobs

    def _line(self, timer: Unit) -> int:
        return next((one.line for one in timer.settings if one.key in ("OnCalendar", *_REPEATING)), 1)

    # --- when -------------------------------------------------------------------------------------------------------

    def _when(self, timer: Unit, about: AboutJob) -> _When:
        when = _When({})
        for setting in timer.every("Timer", "OnCalendar"):
            try:
                part = read_on_calendar(setting.value)
            except NotCalendar as error:
                about.error(setting, str(error))
                when.is_broken = True
            else:
                when.groups.setdefault(part.beside, []).append(part)
        for setting in (one for key in _REPEATING for one in timer.every("Timer", key)):
            repeated = self._every(setting, about)
            if repeated is None:
                when.is_broken = True
            else:
                first = next(iter(when.groups), repeated.beside)
                when.groups.setdefault(first, []).append(repeated)
        has_ticks = bool(when.groups)
        for setting in (one for key in _SINCE_START for one in timer.every("Timer", key)):
            why = "a cluster has no moment of start"
            what = "; its other times were carried over" if has_ticks else ", so this timer alone gives no ticks"
            about.left_out(setting, f"{why}{what}")
            when.is_broken = when.is_broken or not has_ticks
        return when

    def _every(self, setting: Setting, about: AboutJob) -> CalendarPart | None:
        try:
            span = span_of(setting.value)
        except ValueError as error:
            about.error(setting, str(error))
            return None
        if span is None or span < timedelta(seconds=1):
            about.error(setting, f"{shown(setting.value)} is no interval of at least 1s, as Sexton's have to be")
            return None
        since = "starts" if setting.key == "OnUnitActiveSec" else "ends"
        about.differs(
            setting,
            f"counts from when the service last {since}; written as every: {format_duration(span)}, which "
            "counts by the clock "
            "(from 1970-01-01, or an anchor)",
        )
        return CalendarPart({"every": format_duration(span)})

    def _schedule_keys(self, parts: list[CalendarPart]) -> dict[str, object]:
        schedules = [part.schedule for part in parts]
        zone = parts[0].zone or self._choices.timezone
        keys: dict[str, object] = {"schedule": schedules[0] if len(schedules) == 1 else schedules, "timezone": zone}
        if parts[0].years is not None:
            first, last = parts[0].years
            keys["start"] = _new_year(first, zone)
            keys["end"] = _new_year(last + 1, zone)
        if parts[0].excluded_weekdays:
            keys["exclude"] = {"weekdays": list(parts[0].excluded_weekdays)}
        return keys

    # --- how and what -----------------------------------------------------------------------------------------------

    def _how(self, timer: Unit, about: AboutJob) -> dict[str, object]:
        keys: dict[str, object] = {"on_worker_lost": "fail"}
        persistent = timer.last("Timer", "Persistent")
        is_persistent = persistent is not None and is_true(persistent.value) is True
        if persistent is not None and is_true(persistent.value) is None:
            about.error(persistent, f"{shown(persistent.value)} is neither yes nor no")
        keys["missed"] = {"policy": "latest" if is_persistent else "skip", "start_within": "10m"}
        if persistent is not None and is_persistent:
            about.note(
                persistent, "missed: {policy: latest} runs what was missed once, as systemd does at the next start"
            )
        if (delay := timer.last("Timer", "RandomizedDelaySec")) is not None:
            try:
                span = span_of(delay.value)
            except ValueError as error:
                about.error(delay, str(error))
            else:
                if span is None or span > _LONGEST_JITTER:
                    about.error(delay, f"Sexton's longest jitter is {_LONGEST_JITTER.days}d")
                elif span:
                    keys["jitter"] = format_duration(span)
                    about.differs(
                        delay, "systemd draws a new delay each time; Sexton's jitter is fixed by job and tick"
                    )
        if (fixed := timer.last("Timer", "FixedRandomDelay")) is not None:
            about.differs(
                fixed, "Sexton's jitter differs from tick to tick, and is the same for one tick on every node"
            )
        return keys

    def _what(self, timer: Unit, about: AboutJob) -> dict[str, object] | None:
        named = timer.last("Timer", "Unit")
        stem = timer.name.removesuffix(".timer")
        unit_name = with_specifiers(named.value, timer.name)[0] if named is not None else f"{stem}.service"
        prefix, at, _ = unit_name.partition("@")
        template = f"{prefix}@.service" if at else unit_name
        if unit_name == template and at:
            self._tell_template(timer, unit_name, about)
        service = self.units.get(unit_name) or self.units.get(template)
        if service is not None:
            self.used.update({unit_name, template})
        if self._by_systemctl:
            return {"command": ["systemctl", "start", "--wait", unit_name], "queue": self._choices.queue}
        if service is None:
            self._findings.of(timer.file).error(
                0,
                f"the unit it starts, {unit_name}, is not among the files; name its file too, or import with "
                "--as systemctl, "
                "which starts the unit where it is",
                about.job,
            )
            return None
        return service_keys(service, unit_name, about, self._choices)

    def _tell_template(self, timer: Unit, unit_name: str, about: AboutJob) -> None:
        """A template is started under an instance's name, and nobody has said which."""
        stem = timer.name.removesuffix(".timer").rstrip("@")
        named = "name the instance in its Unit="
        if "@" in timer.name:
            named = f"copy {timer.name} as {stem}@INSTANCE.timer and import that"
            if timer.file == "stdin":
                named = f"write the instance into its line: # /etc/systemd/system/{stem}@INSTANCE.timer"
        self._findings.of(timer.file).error(
            0, f"{unit_name} is a template, and systemd starts only its instances: {named}", about.job
        )


def _new_year(year: int, zone: str) -> str:
    return datetime(year, 1, 1, tzinfo=load_zone(zone)).astimezone(UTC).isoformat().replace("+00:00", "Z")


def _tell_all(
    say: Callable[[int, str], None], choices: ImportChoices, *, is_zone_ours: bool, by_systemctl: bool
) -> None:
    """What holds for all jobs of a file."""
    if is_zone_ours:
        say(
            0,
            f"timers go by the clock of their host: timezone: {choices.timezone} was written where OnCalendar= "
            f"names no zone ({choices.timezone_reason}); --timezone ZONE sets another",
        )
    say(
        0,
        f"timers run on each machine that has them; Sexton runs a job once, on any one worker that serves its queue "
        f"({choices.queue}, or the one named after its User=)",
    )
    say(0, "the nights the clocks change: fixed times that are skipped run once after the gap, repeated ones once")
    say(0, "missed: start_within: 10m was written: a run may wait so long for a free worker")
    say(
        0,
        "on_worker_lost: fail was written: systemd starts nothing again by itself; retry suits jobs that may be "
        "repeated",
    )
    if by_systemctl:
        say(0, "systemctl start --wait needs a worker on the unit's machine that may start units (root, or polkit)")
        return
    say(
        0,
        f"systemd starts services with PATH={_PATH_OF_SERVICES}; a job has its worker's: write env: {{PATH: ...}} "
        "where a command relies on it",
    )
