"""One line of a crontab: what kind it is and what it says, by the rules of crond's own reader. No context, no meaning.

line  = blank | "#" text | assignment | job
assignment = name blanks "=" blanks value          name and value may stand in '...' or "..."; nothing is expanded
job   = ( field field field field field | "@" word ) [ user ] command
command: the first "%" that is not written "\\%" ends it; the rest is its input, "%" as line break
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sexton.jobfiles.importers.crontab_times import (
    ALIASES,
    FIELD_NAMES,
    NotTimes,
    Times,
    fields_before_command,
    looks_like_a_field,
    looks_like_times,
    times_of_alias,
    times_of_fields,
    what_field_may_mean,
)
from sexton.jobfiles.importers.findings import shown

_BLANKS = re.compile(r"[ \t]+")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?(?::[A-Za-z0-9_.-]+)?(?:/[A-Za-z0-9_.-]+)?")
_ANACRON = re.compile(
    r"(?:[0-9]+|@[a-z]+)[ \t]+[0-9]+[ \t]+(?=[A-Za-z0-9_-]*[a-z.])[A-Za-z][A-Za-z0-9_.-]+[ \t]+[A-Za-z/.]"
)
_CONFLICT = re.compile(r"(?:<{7}|\|{7}|>{7})(?: |$)|={7}$")
_TIME_OF_DAY = re.compile(r"(?:at[ \t]+)?(?P<hour>[01]?[0-9]|2[0-3])[:.h](?P<minute>[0-5][0-9])(?:[ \t]|$)")
# What was meant to set a variable, as crond, shells and other files write it.
_MEANT = re.compile(
    r"(?P<word>(?:export|set|setenv|env|declare(?:[ \t]+-[a-z]+)?)[ \t]+)?[$'\"]*(?P<name>[A-Za-z_][A-Za-z0-9_]*)['\"]*"
    r"[ \t]*(?P<sign>[+:?]?=|[:; \t])"
)
# What templates and manuals show in comments.
_EXAMPLES = re.compile(
    r"(user-?name\s+)?(/path/to/)?commands?(\s+to\s+be\s+executed)?|user\s+command|tar -zcf "
    r"/var/backups/home\.tgz /home/"
)


@dataclass(frozen=True, slots=True)
class Nothing:
    """A blank line, or a comment."""

    is_comment: bool


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class JobLine:
    """``stdin`` is None where the command has no `%`."""

    times: Times
    user: str | None
    command: str
    stdin: str | None


@dataclass(frozen=True, slots=True)
class DisabledJob:
    """A job that is commented out."""

    job: JobLine


@dataclass(frozen=True, slots=True)
class AtBoot:
    """`@reboot`, which crond runs when it starts."""

    user: str | None
    command: str


@dataclass(frozen=True, slots=True)
class BadLine:
    """What is wrong, and what to write instead. ``assigns``: the variable that the line was meant to set, if any."""

    message: str
    assigns: str = ""


Line = Nothing | Assignment | JobLine | DisabledJob | AtBoot | BadLine


def read_line(text: str, *, has_user: bool) -> Line:
    """What the line says. ``has_user``: a user stands between times and command, as in /etc/crontab."""
    stripped = text.strip(" \t")
    if not stripped:
        return Nothing(is_comment=False)
    if stripped.startswith("#"):
        return _disabled(stripped, has_user=has_user) or Nothing(is_comment=True)
    if not _CONFLICT.match(stripped) and (assignment := read_assignment(stripped)) is not None:
        return replace(assignment, assigns=_meant(stripped)) if isinstance(assignment, BadLine) else assignment
    try:
        return _read_job(stripped, has_user=has_user)
    except NotTimes as error:
        return BadLine(str(error))


def read_assignment(text: str) -> Assignment | BadLine | None:
    """NAME=value as crond reads it; None where the line is none."""
    name, rest = _name(text)
    if name is None or not rest.lstrip(" \t").startswith("="):
        return None
    if not name:
        return BadLine("has no name before the '='; write NAME=value")
    if name[-1] in "+:?":
        return BadLine(
            f"crond knows no {name[-1]}= and would set {shown(name)}; write {name[:-1]}= and the whole value"
        )
    value = rest.lstrip(" \t")[1:].strip(" \t")
    if value[:1] in ("'", '"'):
        end = value.find(value[0], 1)
        if end < 0:
            return BadLine(
                f"the value of {shown(name)} begins with {value[0]} and does not end with it; close the quote"
            )
        if value[end + 1 :].strip(" \t"):
            return BadLine(
                f"the value of {shown(name)} has {shown(value[end + 1 :].strip())} after its closing quote, "
                "which crond "
                "refuses; remove it (a comment needs a line of its own)"
            )
        value = value[1:end]
    return Assignment(name, value)


def _name(text: str) -> tuple[str | None, str]:
    if text[0] in "'\"":
        end = text.find(text[0], 1)
        return (None, "") if end < 0 else (text[1:end], text[end + 1 :])
    match = re.match(r"[^ \t=]*", text)
    name = match[0] if match else ""
    if name and not re.match(r"[A-Za-z_]", name):
        return None, ""  # a time field: `5 = x` was never meant as a variable
    return name, text[len(name) :]


def split_command(text: str) -> tuple[str, str | None]:
    """The command and its input, as crond's child splits them at the first `%` that is not written `\\%`."""
    command: list[str] = []
    is_escaped = False
    for place, character in enumerate(text):
        if is_escaped:
            if character == "%":
                command[-1] = "%"
            else:
                command.append(character)
            is_escaped = False
            continue
        if character == "%":
            rest = text[place + 1 :]
            return "".join(command), _input(rest) if rest else None
        command.append(character)
        is_escaped = character == "\\"
    return "".join(command), None


def _input(text: str) -> str:
    written: list[str] = []
    is_escaped = False
    for character in text:
        if is_escaped and character != "%":
            written.append("\\")
        out = "\n" if character == "%" and not is_escaped else character
        is_escaped = out == "\\"
        if not is_escaped:
            written.append(out)
    if is_escaped:
        written.append("\\")
    joined = "".join(written)
    return joined if joined.endswith("\n") else joined + "\n"


def _read_job(text: str, *, has_user: bool) -> JobLine | AtBoot | BadLine:
    if _CONFLICT.match(text):
        problem = "is a mark of a merge conflict; keep one of the two sides, and remove the marks"
        return BadLine(problem, "merge conflict")
    if time := _TIME_OF_DAY.match(text):
        minute, hour = int(time["minute"]), int(time["hour"])
        return BadLine(
            f"begins with a time of day, which crond knows as minute and hour: write {minute} {hour} * * * and the "
            "command"
        )
    if text.startswith("-") and (text[1:].startswith("@") or fields_before_command(_BLANKS.split(text[1:])) == 5):
        return BadLine(
            "begins with '-' (SUSE's and cronie's mark for \"do not log\"), which Sexton has not; remove it: "
            f"{text[1:60]}"
        )
    if text.startswith("-"):
        return BadLine(_no_job(text))
    if _ANACRON.match(text) and not _BLANKS.split(text)[2].isdigit():
        return BadLine(
            "looks like a line of /etc/anacrontab (period in days, delay in minutes, name, command); write the "
            "job by hand, "
            'such as schedule: {calendar: {days: 1}, at: "03:05", start: 2026-01-01} with missed: {policy: latest}'
        )
    if text.startswith("@"):
        parts = _BLANKS.split(text, maxsplit=1)
        word, rest = parts[0], parts[1] if len(parts) > 1 else ""
        if word.lower() == "@reboot":
            return _at_boot(rest, has_user=has_user)
        return _job(times_of_alias(word, _BLANKS.split(rest)[0]), rest, has_user=has_user)
    if text[0] in "'\"" and text[0] not in text[1:]:
        problem = "begins with a quote that does not end; close it, as in NAME='value', or remove it"
        return BadLine(problem, _meant(text))
    words = _BLANKS.split(text, maxsplit=6)
    count = fields_before_command(words)
    if count == 0:
        return BadLine(_no_job(text), _meant(text))
    if count < 5:
        return BadLine(_too_few_fields(words, count))
    if len(words) > 5 and looks_like_a_field(words[5]) and not any(word.endswith(",") for word in words[:5]):
        return BadLine(_sixth_field(words[5]))
    parts = _BLANKS.split(text, maxsplit=5)
    return _job(times_of_fields(parts[:5]), parts[5] if len(parts) > 5 else "", has_user=has_user)


def _too_few_fields(words: list[str], count: int) -> str:
    """Only ``count`` words look like time fields: a field is missing, or the next one is not understood."""
    fields = "1 time field" if count == 1 else f"{count} time fields"
    all_five = f"{' '.join(FIELD_NAMES)}, then the command"
    if count >= len(words):
        return f"has {fields} and no command; write the missing ones: {all_five}"
    what = f"has {fields} before {shown(words[count])}, which is no {FIELD_NAMES[count]}"
    if "/" in words[count] or count + 1 >= len(words):
        return f"{what}; write the missing ones: {all_five}"
    meant = what_field_may_mean(words[count], count)
    return f"{what}{meant}; or, if it is the command, write the missing fields before it: {all_five}"


def _sixth_field(field: str) -> str:
    return (
        f"has {shown(field)} after five time fields: crond knows neither seconds nor years and would run it as "
        "the command; "
        "remove the field that is too many, or write the job by hand (six fields: seconds first)"
    )


def _no_job(text: str) -> str:
    first, _, rest = text.partition(" ")
    rest = rest.strip()
    if "@" + first.lower() in ALIASES or first.lower() == "reboot":
        return f"begins with {shown(first)}; write @{first.lower()} if that is meant"
    if first == "export" and "=" in rest:
        return f"crond has no export; write {rest[:60]}"
    if (name := re.fullmatch(r"([A-Z_][A-Z0-9_]*):?", first)) and rest:
        return f"has no '='; write {name[1]}={rest[:60]} if it is an assignment, or a # before a comment"
    return f"{shown(text)} is neither a job (five time fields and a command) nor NAME=value; write a # before a comment"


def _meant(text: str) -> str:
    """The variable that a line in error was meant to set; empty where it reads like anything else."""
    match = _MEANT.match(text)
    if match is None:
        return ""
    is_meant = match["word"] or "=" in match["sign"] or match["name"].isupper()
    return match["name"] if is_meant else ""


def _at_boot(rest: str, *, has_user: bool) -> AtBoot | BadLine:
    user, command, problem = _user_and_command(rest, has_user=has_user)
    return BadLine(problem) if problem else AtBoot(user, command)


def _job(times: Times, rest: str, *, has_user: bool) -> JobLine | BadLine:
    user, command, problem = _user_and_command(rest, has_user=has_user)
    if problem:
        return BadLine(problem)
    command, stdin = split_command(command)
    if not command.strip():
        return BadLine("has nothing before its first '%', which ends a command; write the command, or \\% for the sign")
    return JobLine(times, user, command, stdin)


def _user_and_command(rest: str, *, has_user: bool) -> tuple[str | None, str, str]:
    """User, command, and what is wrong with them (empty: nothing)."""
    first = _BLANKS.split(rest, maxsplit=1)[0]
    if looks_like_a_field(first):
        return None, "", _sixth_field(first)
    user: str | None = None
    if has_user:
        parts = _BLANKS.split(rest, maxsplit=1)
        if not rest or len(parts) < 2 or not parts[1]:
            return (
                None,
                "",
                (
                    "has no command; after the times come the user and the command"
                    if not rest or _USER.fullmatch(first)
                    else f"has {shown(first)} where the user should stand, and nothing after it; write user and command"
                ),
            )
        if not _USER.fullmatch(first):
            return (
                None,
                "",
                (
                    f"has {shown(first)} where the user should stand; write the user before the command, or "
                    "import with "
                    "--no-system if this file has no user column"
                ),
            )
        user, rest = parts
    if not rest:
        return None, "", "has no command after its time fields; write one, or remove the line"
    if re.match(r"-[A-Za-z]+[ \t]", rest):
        flags = _BLANKS.split(rest, maxsplit=1)[0]
        return (
            None,
            "",
            (
                f"has {shown(flags)} before the command: OpenBSD's flags (n: no mail on success, q: no log, s: "
                "one at a time); "
                "remove them (for s, Sexton has overlap: skip)"
            ),
        )
    return user, rest, ""


def _disabled(stripped: str, *, has_user: bool) -> DisabledJob | None:
    """The job that a comment holds, if it reads like one and not like prose."""
    text = stripped.lstrip("# \t")
    if not looks_like_times(text):
        return None
    if text.startswith("@") and stripped.lstrip("#").startswith((" ", "\t")) and "/" not in text:
        return None  # "# @daily is the same as 0 0 * * *"
    try:
        line = _read_job(text, has_user=has_user)
    except NotTimes:
        return None
    if not isinstance(line, JobLine) or _EXAMPLES.fullmatch(line.command.strip()):
        return None
    return DisabledJob(line)
