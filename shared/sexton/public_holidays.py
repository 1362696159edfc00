"""Public holidays by region code, from the `holidays` package: `DE` for a country, `DE-BE` for a part of it.

Its data changes with its version, so the version is among the cluster's inputs (invariant 8). The package is imported
when the first job asks for it: it is slow to load, and few jobs do. Days on which a holiday is observed instead (the
Monday after a Sunday, where that is the law) count as the package counts them.
"""

import difflib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.metadata import version

from sexton.errors import InvalidSchedule

FIRST_YEAR, LAST_YEAR = 1900, 2100
_SHOWN_CHARACTERS = 40
_SHOWN_PARTS = 60


@cache
def holiday_data_version() -> str:
    """The version of the holidays in use, such as `0.109`: one of the cluster's inputs."""
    return version("holidays")


def region_of(code: str) -> str:
    """The region's code as the package spells it, by its ISO 3166 codes; case does not matter.

    Raises InvalidSchedule, naming what is near, for anything else: other names of a country or a part are no codes.
    """
    country, dash, part = code.partition("-")
    known = _countries()
    country = country.upper()
    if country not in known.values():
        raise _unknown(code, _near_country(code), "write a country's ISO code such as DE, or DE-BE for a part")
    parts, aliases = _parts_of(country)
    if not dash:
        return country
    by_lower_case = {one.lower(): one for one in parts}
    if found := by_lower_case.get(part.lower()):
        return f"{country}-{found}"
    names = by_lower_case | {alias.lower(): one for alias, one in aliases.items()}
    near = difflib.get_close_matches(part.lower()[:_SHOWN_CHARACTERS], names, n=1, cutoff=0.7)
    listed = ", ".join(parts[:_SHOWN_PARTS]) + (", ..." if len(parts) > _SHOWN_PARTS else "")
    has = f"{country} has the parts {listed}" if parts else f"{country} has no parts; write {country} alone"
    raise _unknown(code, f"{country}-{names[near[0]]}" if near else None, has)


@cache
def is_holiday(code: str, day: date) -> bool:
    """Whether the region has a public holiday on that date; none before 1900 or after 2100."""
    return FIRST_YEAR <= day.year <= LAST_YEAR and day in _of_year(code, day.year)


@cache
def _of_year(code: str, year: int) -> frozenset[date]:
    import holidays

    country, _, part = code.partition("-")
    return frozenset(holidays.country_holidays(country, subdiv=part or None, years=year))


@cache
def _countries() -> Mapping[str, str]:
    """Every name and code of a country in lower case, and its two-letter code."""
    from holidays.registry import COUNTRIES

    codes: dict[str, str] = {}
    for name, (_, alpha2, *others) in COUNTRIES.items():
        codes |= dict.fromkeys((name.replace("_", " "), alpha2.lower(), *(other.lower() for other in others)), alpha2)
    return codes


@cache
def _parts_of(country: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The parts of a country, and what else they are called."""
    import holidays

    entity = getattr(holidays, country)
    return tuple(entity.subdivisions), dict(getattr(entity, "subdivisions_aliases", {}))


def _near_country(code: str) -> str | None:
    """The code that was meant: by another code (UK, USA), by the name, or by what looks like it."""
    known = _countries()
    wanted = code[:_SHOWN_CHARACTERS].strip().lower().replace("_", " ")
    if meant := known.get(wanted):
        return meant
    country, dash, part = wanted.partition("-")
    if dash and (meant := known.get(country)) is not None:
        return f"{meant}-{part.upper()}"
    near = difflib.get_close_matches(wanted, [name for name in known if len(name) > 3], n=1, cutoff=0.75)
    return known[near[0]] if near else None


def _unknown(code: str, near: str | None, otherwise: str) -> InvalidSchedule:
    shown = repr(code if len(code) <= _SHOWN_CHARACTERS else code[:_SHOWN_CHARACTERS] + "…")
    meant = f"did you mean {near!r}? " if near else ""
    return InvalidSchedule(f"holidays region {shown} is not known: {meant}{otherwise}")
