"""What of a crontab means something else in Sexton, in sentences: per assignment, per job, and for the whole file."""

from __future__ import annotations

import re

from sexton.jobfiles.importers.choices import ImportChoices, UserRule
from sexton.jobfiles.importers.crontab_lines import JobLine
from sexton.jobfiles.importers.findings import Findings, shown
from sexton.jobfiles.importers.shell_questions import question_that_ends

_FLOCK = re.compile(r"\b(?:flock|lockf|setlock|run-one|lckdo)\b")
_LEAVES = re.compile(
    r"\bflock\s+(?:\S+\s+)*?(?:-[a-zA-Z]*n[a-zA-Z]*|--nb|--nonblock(?:ing)?)\b|\brun-one\b|\bsetlock\s+-n"
)
_KNOWN = frozenset({"SHELL", "PATH", "HOME", "MAILTO", "MAILFROM", "CRON_TZ", "TZ", "RANDOM_DELAY", "LOGNAME"})
_DATE_FORMAT = re.compile(r"date\b[^|;&]*\+\S*$|\+['\"]?$")
_BACKGROUND = re.compile(r"(?:[^&]|^)&\s*$")


def takes_lock_or_leaves(command: str) -> bool:
    """Whether the command ends at once where it already runs: what `overlap: skip` does in the whole cluster."""
    return _LEAVES.search(command) is not None


def remark_on_assignment(findings: Findings, line: int, name: str, value: str) -> None:
    """What crond would do with it and Sexton does not."""
    match name:
        case "MAILTO":
            kept = f"; written as owner of the jobs below: {shown(value)}" if value and len(value) <= 200 else ""
            findings.left_out(
                line,
                f"MAILTO: Sexton sends no mail; the last 64 KiB of each output are kept (sexton logs JOB){kept}",
            )
        case "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING":
            findings.left_out(line, f"{name} is about crond's mails, and Sexton sends none")
        case "PATH" if "/" not in value:
            findings.differs(line, f"PATH={shown(value)} names no folder: jobs below find no program by its name alone")
        case _ if name.upper() in _KNOWN and name not in _KNOWN:
            findings.differs(line, f"{name} is a variable like any other; crond knows {name.upper()}, in capitals")
        case "LOGNAME" | "USER":
            findings.left_out(line, f"{name} is set by crond whatever a crontab says; a job finds its worker's")
        case "CRON_TZ":
            zone = f"timezone: {value.removeprefix(':')}" if value else "the timezone of the file"
            findings.note(
                line,
                f"CRON_TZ: the jobs below have {zone}, as in cronie (Debian's cron ignores CRON_TZ); in the "
                "hour its clocks change "
                "cronie may lose or double a run, and Sexton runs it once",
            )
        case "TZ":
            findings.differs(
                line,
                f"TZ={shown(value)} is for the commands' clock alone, as in Vixie's cron and cronie, and was "
                "written to env; "
                "schedules go by timezone",
            )
        case "SHELL" if value != "/bin/sh":
            findings.note(line, f"SHELL: the jobs below are commands for {shown(value)}; it must be on the workers")
        case "RANDOM_DELAY":
            findings.differs(
                line,
                f"RANDOM_DELAY: the jobs below have jitter: {shown(value)[1:-1]}m; cronie draws a delay once a "
                "day, Sexton's is "
                "fixed by job and tick",
            )
    if name not in ("CRON_TZ", "RANDOM_DELAY", "MAILTO"):
        if "$" in value:
            findings.note(line, f"{name}={shown(value)} is taken literally, as crond does: $ is not expanded")
        if " #" in value:
            findings.note(line, f"{name}: {shown(value)} is all value to crond, the # and what follows too")


def remark_on_job(findings: Findings, line: int, name: str, job: JobLine, text: str) -> None:
    """What differs for this job alone; ``text`` is the whole line."""
    command = job.command
    if _FLOCK.search(command):
        how = ""
        if takes_lock_or_leaves(command):
            how = "; overlap: skip was written, which holds for the whole cluster"
            if not re.search(r"\s(?:-[a-zA-Z]*E|--conflict-exit-code)", command):
                how += "; where the lock is taken it exits 1, a failed run to Sexton (flock -n -E 0 exits 0)"
        findings.differs(line, f"its lock file holds on one machine only, not between workers on two{how}", name)
    if (question := question_that_ends(command)) is not None:
        findings.differs(
            line,
            f"where {question} says no, the command exits 1, which crond does not look at and Sexton counts as a "
            "failed run: write success_codes: [0, 1], or 'if ...; then ...; fi' around what follows",
            name,
        )
    if job.stdin is not None:
        why = ""
        if _DATE_FORMAT.search(command.rstrip()) or command.count("'") % 2 or command.count('"') % 2:
            why = "; this looks like a date format whose % should be written \\%: crond has run it cut off as here"
        text = f"the first % ends the command, and what follows became stdin, as in crond{why}"
        (findings.differs if why else findings.note)(line, text, name)
    elif _ends_in_percent(text.rstrip()):
        findings.note(line, "ends with %: its input is empty", name)
    if job.times.knows_last_day:
        findings.note(line, "L is the last day of the month, as in cronie; Vixie's cron refuses such a line", name)
    if text.rstrip().endswith("\\"):
        findings.differs(line, "ends with \\: crond does not join lines, so the shell gets the \\ as it is", name)
    if "anacron" in command or re.search(r"\brun-parts\b", command):
        findings.differs(
            line,
            "keeps house on each machine (run-parts or anacron); as one job it runs on one worker only: leave "
            "it to the "
            "machines' own cron unless you want it once in the cluster",
            name,
        )
    if _BACKGROUND.search(command):
        findings.differs(
            line,
            "starts its program in the background (&): to Sexton the run is over when the shell ends, whatever "
            "becomes of the program; remove the & to have its outcome",
            name,
        )
    if job.user is None and re.match(r"(root|www-data|nobody|postgres)[ \t]", command):
        findings.differs(
            line,
            f"its command begins with {shown(command.split()[0])}: is this a user column? then import with --system",
            name,
        )


def _ends_in_percent(command: str) -> bool:
    return command.endswith("%") and not command.endswith("\\%")


def remark_on_file(
    findings: Findings, choices: ImportChoices, host_zone_from: int, *, has_home: bool, has_user: bool
) -> None:
    """What differs for every job: crond's way, what was written to keep it, and what could not be kept."""
    say = findings.differs
    if host_zone_from:
        say(
            0,
            f"crond goes by the clock of its host: timezone: {choices.timezone} was written "
            f"({choices.timezone_reason}); --timezone ZONE sets another",
        )
    served = "the queues named below" if has_user and choices.users is UserRule.QUEUE else f"the queue {choices.queue}"
    say(
        0,
        f"crond runs these on its own machine; Sexton on any one worker that serves {served} (--queue NAME binds them)",
    )
    if not has_home:
        say(
            0,
            "crond starts commands in the user's home folder; Sexton in its worker's, unless there is a cwd: "
            f"import with --home {'USER=DIR' if has_user else 'DIR'} where commands rely on it",
        )
    say(
        0,
        "overlap: allow was written: crond starts a command though the last one still runs; most jobs are "
        "better off with skip",
    )
    say(
        0,
        "missed: {policy: skip} was written: crond forgets what fell due while it was down (anacron does not: "
        "policy: latest); start_within: 10m: a run may wait so long for a free worker, where crond starts all at once",
    )
    say(0, "crond looks at no exit code; a run that exits with another than 0 is failed, unless success_codes has it")
    say(0, "on_worker_lost: fail was written: crond never runs anything twice; retry suits jobs that may be repeated")
    say(0, "crond sets no limit to a run; Sexton ends it after max_runtime: 24h unless a job says otherwise")
    say(
        0,
        "the nights the clocks change: as Vixie's cron and Debian's do (skipped fixed times run once after the "
        "gap, repeated ones once); other crons skip or repeat them",
    )
