"""Time zones, by their IANA names, from the `tzdata` package alone, so that hosts agree (invariant 8).

The host's own zone files are never read: they differ in version, in case sensitivity and in what they take for a zone.
A name is looked up in the package's list first, so that no path, directory or POSIX string ever reaches a file name.
"""

import difflib
import io
import re
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]  # the package ships no types

from sexton.errors import InvalidSchedule

_NOT_A_PLACE = frozenset({"Factory"})  # tzdata's word for "nobody has set the zone"
_OFFSET = re.compile(r"(?:UTC|GMT|Z)?([+-])(\d{1,2})(?::?(\d{2}))?", re.IGNORECASE)
_SHOWN_CHARACTERS = 60
_added: dict[str, ZoneInfo] = {}


def zone_data_version() -> str:
    """The IANA version of the zone data in use, such as `2026b`: one of the cluster's inputs."""
    return str(tzdata.IANA_VERSION)


@cache
def zone_names() -> frozenset[str]:
    """Every name that `load_zone` accepts."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii")
    return frozenset(listed.split()) - _NOT_A_PLACE


def load_zone(name: str) -> ZoneInfo:
    """The zone of that exact name; the same object for the same name.

    Raises InvalidSchedule, with a near name where there is one, for anything that is not the exact IANA name.
    """
    if name in _added:
        return _added[name]
    if name not in zone_names():
        raise InvalidSchedule(_refusal(name))
    return _read_zone(name)


def add_zone(name: str, data: bytes) -> None:
    """Have ``load_zone`` know a zone of other data than the package's: the content of its file, under a name of its
    own, with an `@` in it. One that is known already is left as it is."""
    if "@" not in name:
        raise ValueError(f"{name!r} is a name of the package's")
    if name not in _added:
        _added[name] = ZoneInfo.from_file(io.BytesIO(data), key=name)


@cache
def _read_zone(name: str) -> ZoneInfo:
    resource = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
    with resource.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _refusal(name: str) -> str:
    shown = repr(name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…")
    if not name.strip():
        return "timezone is empty: give an IANA name such as 'Europe/Berlin', or leave the key out for UTC"
    if same := _by_lower_case().get(name.strip().lower()):
        return f"timezone {shown} is not spelt as in the zone database: did you mean {same!r}?"
    if name.startswith(("/", ".")) or ".." in name or "\\" in name:
        return f"timezone {shown} is a path: give an IANA name such as 'Europe/Berlin'"
    if offset := _OFFSET.fullmatch(name.strip()):
        return f"timezone {shown} is an offset, not an IANA name: {_fixed_zone_hint(offset)}"
    if "," in name or re.fullmatch(r"[A-Za-z]{3,}[+-]?\d+([A-Za-z]{3,})?", name):
        return f"timezone {shown} is a POSIX rule, not an IANA name: name the place, such as 'Europe/Berlin'"
    inside = sorted(zone for zone in zone_names() if zone.startswith(name.rstrip("/") + "/"))
    if inside:
        return f"timezone {shown} is a region, not a zone: name a place in it, such as {inside[len(inside) // 2]!r}"
    near = _nearest(name)
    advice = f"did you mean {near!r}?" if near else "give an IANA name such as 'Europe/Berlin'"
    return f"timezone {shown} is not in the zone database ({zone_data_version()}): {advice}"


@cache
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in zone_names()}


def _nearest(name: str) -> str | None:
    wanted = name[:_SHOWN_CHARACTERS].strip().lower().replace(" ", "_")
    by_lower_case = _by_lower_case()
    if near := difflib.get_close_matches(wanted, by_lower_case, n=1, cutoff=0.75):
        return by_lower_case[near[0]]
    by_city = {lower.rpartition("/")[2]: zone for lower, zone in sorted(by_lower_case.items())}
    if near := difflib.get_close_matches(wanted.rpartition("/")[2], by_city, n=1, cutoff=0.8):
        return by_city[near[0]]
    return None


def _fixed_zone_hint(offset: re.Match[str]) -> str:
    sign, hours, minutes = offset.groups()
    fixed = f"Etc/GMT{'-' if sign == '+' else '+'}{int(hours)}"
    if minutes in (None, "00") and fixed in zone_names():
        always = f"UTC{sign}{int(hours)}"
        return f"name the place, such as 'Europe/Berlin', or write {fixed!r} for always {always} (its sign is reversed)"
    return "name the place, such as 'Asia/Kolkata'"
