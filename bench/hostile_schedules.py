"""Texts of 200 characters, and specifications as short, that are meant to take long to judge."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

LENGTH = 200
_ALPHABET = "0123456789*/,-?#LWHRMONTUEJAN ()"
_TERMS = (
    ("*/1", "0-59/1", "0-59", "H", "H(0-59)", "H(0-59)/1", "H/1", "59/1", "0", "00000059", "0-0", "*"),  # any field
    ("L", "LW", "L-30", "15W", "31W", "1-31/1", "H(1-28)/2", "*/2", "31", "L-29"),  # day of the month
    ("MON#5", "SUN#1", "5L", "7#5", "FRIL", "SUN-SAT", "0-7/7", "H(SUN-SAT)/2", "7"),  # weekday
    ("JAN-DEC", "2", "H(JAN-DEC)/3", "FEB", "2/12", "*/12"),  # month
)


def hostile_texts(count: int, seed: int = 1) -> list[str]:
    """Long lists of every term in every field, words without an end, and noise."""
    draw = random.Random(seed)
    texts: list[str] = []
    for terms in _TERMS:
        for term in (*terms, ",".join(terms)):
            for place in range(5):
                fields = ["*", "*", "*", "*", "*"]
                fields[place] = ",".join([term] * (LENGTH // (len(term) + 1)))[: LENGTH - 8].rstrip(",")
                texts.append(" ".join(fields))
    texts += [character * LENGTH for character in _ALPHABET]
    texts += ["0 0 30 2 " + "*/2," * 47 + "*", "0 0 31 4,6,9,11 *", "0 0 29 2 MON#5", "0 0 L-30 2 *", "0 0 31W 2,4 *"]
    while len(texts) < count:
        if draw.random() < 0.5:
            texts.append("".join(draw.choice(_ALPHABET) for _ in range(LENGTH)))
        else:
            fields = [",".join(draw.choice(draw.choice(_TERMS)) for _ in range(draw.randint(1, 12))) for _ in range(6)]
            texts.append(" ".join(fields[: draw.choice((5, 6))])[:LENGTH])
    return texts


def hostile_specs(zone: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a few keys can make of a schedule: searches that find nothing, or late."""
    no_days: dict[str, list[Any]] = {"dates": [], "weekdays": [], "holidays": []}
    weekly = {"every_ms": 604_800_000, "anchor": "1970-01-01T00:00:00Z"}
    drifting = {"every_ms": 604_799_000, "anchor": "2026-01-01T12:00:00Z"}
    calendar = {"calendar": {"weeks": 1}, "at": "02:30:00", "start": "1900-01-04", "month_end": "clamp"}
    leap = {"calendar": {"years": 1}, "at": "02:30:00", "start": "1904-02-29", "month_end": "skip"}
    skip = {"gap": "skip", "overlap": "first"}
    yield "weekly on an excluded weekday", _spec(zone, [weekly], exclude=no_days | {"weekdays": [3, 4]})
    yield "drifting over an excluded weekday", _spec(zone, [drifting], exclude=no_days | {"weekdays": [3, 4, 5]})
    yield "a calendar's excluded weekday", _spec(zone, [calendar], exclude=no_days | {"weekdays": [4]})
    yield "a cron's excluded weekdays", _spec(zone, ["* * * * MON,WED,FRI"], exclude=no_days | {"weekdays": [1, 3, 5]})
    yield "seconds on excluded days", _spec(zone, ["* * * * * *"], exclude=no_days | {"weekdays": [*range(7)]})
    yield "leap days but one weekday", _spec(zone, [leap], exclude=no_days | {"weekdays": [0, 1, 2, 3, 4, 5]})
    yield "only in the gap", _spec(zone, ["30 2 * 3 0L"], dst=skip)
    yield "the fifth Monday in February", _spec(zone, ["0 0 * 2 MON#5"], exclude=no_days | {"weekdays": [0, 2, 4]})
    yield "Christmas", _spec(zone, ["0 0 25 12 *"], exclude=no_days | {"holidays": ["DE", "US"]})
    yield (
        "a year without its leap day",
        _spec(zone, ["0 0 29 2 *"], start="2097-01-01T00:00:00Z", end="2104-01-01T00:00:00Z"),
    )
    yield "thirty parts", _spec(zone, [f"{n} 2 29 2 {n % 7}#5" for n in range(30)])


def _spec(zone: str, parts: list[dict[str, Any] | str], **keys: Any) -> dict[str, Any]:
    named = [{"cron": part} if isinstance(part, str) else part for part in parts]
    return {"parts": named, "timezone": zone, "start": None, "end": None, **keys}
