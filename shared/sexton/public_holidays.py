"""Public holidays by region code, from the `holidays` package: `DE` for a country, `DE-BE` for a part of it.

Its data changes with its version, so the version is among the cluster's inputs (invariant 8). The package is imported
when the first job asks for it: it is slow to load, and few jobs do.
"""

from datetime import date
from functools import cache
from importlib.metadata import version

from sexton.errors import InvalidSchedule

FIRST_YEAR, LAST_YEAR = 1900, 2100


def holiday_data_version() -> str:
    """The version of the holidays in use, such as `0.109`."""
    return version("holidays")


def region_of(code: str) -> str:
    """The region's code as the package spells it. Raises InvalidSchedule, with what is near, where it knows none."""
    import holidays

    country, _, part = code.partition("-")
    country = country.upper()
    known = holidays.list_supported_countries(include_aliases=False)
    if country not in known:
        raise InvalidSchedule(
            f"holidays region {code[:20]!r} is not known; write a country's ISO code such as DE, or DE-BE for a part"
        )
    if not part:
        return country
    for one in known[country]:
        if one.casefold() == part.casefold():
            return f"{country}-{one}"
    parts = ", ".join(f"{country}-{one}" for one in known[country])
    raise InvalidSchedule(f"holidays region {code[:20]!r} is not known; {country} has {parts or 'no parts'}")


@cache
def is_holiday(code: str, day: date) -> bool:
    """Whether the region has a public holiday on that date; none before 1900 or after 2100."""
    return FIRST_YEAR <= day.year <= LAST_YEAR and day in _of_year(code, day.year)


@cache
def _of_year(code: str, year: int) -> frozenset[date]:
    import holidays

    country, _, part = code.partition("-")
    return frozenset(holidays.country_holidays(country, subdiv=part or None, years=year))
