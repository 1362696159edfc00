"""A CronJob's ``schedule`` (robfig/cron, as Kubernetes parses it) as a schedule of Sexton's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.jobfiles.importers.findings import shown
from sexton.zones import zone_names

_ALIASES = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_TERM = re.compile(
    r"(?:[*?]|(?:[0-9]+|[A-Za-z]{3})(?:-(?:[0-9]+|[A-Za-z]{3}))?)(?:/(?P<step>[0-9]+))?",
)
_GO_SPAN = re.compile(r"([0-9]+)(h|m|s|ms)")


class NotKubernetesTime(ValueError):
    """Why the schedule is refused, and what to write instead."""


@dataclass(frozen=True, slots=True)
class KubernetesTime:
    """``schedule`` as a job file has it; ``zone`` from a TZ= before it; ``remark``: what differs."""

    schedule: object
    zone: str | None = None
    remark: str = ""


def read_schedule(text: str) -> KubernetesTime:
    """What the schedule means. Raises NotKubernetesTime."""
    zone: str | None = None
    rest = text.strip()
    if match := re.match(r"(?:CRON_)?TZ=(\S+)\s+", rest):
        zone, rest = match[1], rest[match.end() :]
        if zone not in zone_names():
            raise NotKubernetesTime(f"{shown(text)}: {shown(zone)} is no zone of the IANA database")
    if rest.startswith("@every"):
        return KubernetesTime(_every(rest), zone, "counts from the last run in Kubernetes, and by the clock in Sexton")
    if rest.startswith("@"):
        if rest not in _ALIASES:
            raise NotKubernetesTime(
                f"{shown(text)} is no word that Kubernetes knows; known are {', '.join(sorted(_ALIASES))}"
            )
        return KubernetesTime(rest, zone)
    fields = rest.split()
    if len(fields) != 5:
        raise NotKubernetesTime(
            f"{shown(text)} has {len(fields)} fields; Kubernetes takes five: minute hour day month weekday"
        )
    cron = " ".join(_field(place, field) for place, field in enumerate(fields))
    try:
        CronExpression.parse(cron)
    except InvalidSchedule as error:
        raise NotKubernetesTime(str(error)) from None
    return KubernetesTime(cron, zone)


def _every(text: str) -> dict[str, object]:
    span = text.removeprefix("@every").strip()
    if not re.fullmatch(r"(?:[0-9]+(?:h|m|s|ms))+", span):
        raise NotKubernetesTime(f"{shown(text)}: write @every and a duration such as 1h30m")
    return {"every": "".join(number + unit for number, unit in _GO_SPAN.findall(span))}


def _field(place: int, field: str) -> str:
    """The field as Sexton reads it to the same effect.

    In Kubernetes a day field with a step is restricted, so that either day field may match; in Sexton one that begins
    with * is not. Its ? is *, in every field.
    """
    terms = field.split(",")
    for term in terms:
        if _TERM.fullmatch(term) is None:
            raise NotKubernetesTime(
                f"field {shown(field)}: Kubernetes takes numbers, names, ranges, lists and steps, and refuses "
                f"{shown(term)}"
            )
    has_step = any("/" in term and not term.endswith("/1") for term in terms)
    whole = {2: "1-31", 4: "0-6"}.get(place)
    written = []
    for term in terms:
        base, slash, step = term.partition("/")
        if base in ("*", "?"):
            base = whole if whole and has_step else "*"
        elif slash and place == 4 and "-" not in base:
            base = f"{base}-6"
        written.append(base + slash + step)
    return ",".join(written)
