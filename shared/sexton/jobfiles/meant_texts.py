"""What a text that is refused was probably meant to be: the remedy, written out. Guesses are told, never taken."""

from __future__ import annotations

import re

_UNITS = {
    "ms": "ms",
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
_SMALLER = {"d": ("h", 24), "h": ("m", 60), "m": ("s", 60), "s": ("ms", 1000), "w": ("d", 7)}
_SPOKEN = re.compile(r"(?:\d{1,9}(?:\.\d{1,3})?\s*[a-z]+[\s,]*)+", re.IGNORECASE)
_PART = re.compile(r"(\d+)(?:\.(\d+))?\s*([a-z]+)", re.IGNORECASE)
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d))?")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?")
_LONGEST = 60
_WORDS = ("hourly", "daily", "weekly", "monthly", "yearly", "annually", "midnight")
_SPOKEN_EVERY = re.compile(r"(?:@?every\s+)(.+)", re.IGNORECASE)


def meant_duration(text: str) -> str | None:
    """``5 minutes``, ``PT5M``, ``1.5h``, ``12:30`` and the like as this format writes durations."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if text == "0":
        return "0s"
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = match.groups()
        return _joined({"h": int(hours), "m": int(minutes), "s": int(seconds or 0)})
    if (match := _ISO.fullmatch(text)) and any(match.groups()):
        weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return _joined({"d": weeks * 7 + days, "h": hours, "m": minutes, "s": seconds})
    if not _SPOKEN.fullmatch(text):
        return None
    written = []
    for whole, fraction, word in _PART.findall(text):
        unit = _UNITS.get(word.lower())
        if unit is None or (word == "M"):  # minutes or months: nobody knows
            return None
        written.append(_part(int(whole), fraction, unit))
    return None if None in written else "".join(part for part in written if part)


def meant_schedule(text: str) -> str | None:
    """``hourly``, ``every 5 minutes`` and ``05:30`` as a schedule; a phrase of advice."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if text.lower() in _WORDS:
        return f"write '@{text.lower()}'"
    if match := _TIME_OF_DAY.fullmatch(text):
        return f"write '{int(match[2])} {int(match[1])} * * *' for {text} each day"
    if match := _SPOKEN_EVERY.fullmatch(text):
        duration = meant_duration(match[1]) or {"minute": "1m", "hour": "1h", "day": "1d"}.get(match[1].lower())
        return f"write {{every: {duration}}}" if duration else None
    return None


def _part(whole: int, fraction: str, unit: str) -> str | None:
    if unit == "w":
        return f"{whole * 7}d" if not fraction.strip("0") else None
    if not fraction.strip("0"):
        return f"{whole}{unit}"
    if unit not in _SMALLER:
        return None
    smaller, count = _SMALLER[unit]
    rest, uneven = divmod(int(fraction) * count, 10 ** len(fraction))
    if uneven:
        return None
    return (f"{whole}{unit}" if whole else "") + f"{rest}{smaller}"


def _joined(parts: dict[str, int]) -> str:
    return "".join(f"{number}{unit}" for unit, number in parts.items() if number) or "0s"
