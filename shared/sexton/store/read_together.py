"""Several small queries as one statement: a round trip, and a moment of the ledger, for all of them.

A UNION ALL whose columns are told apart by their type, so that each query finds room for its own; NULL elsewhere. Rows
come back by the name of their query, with the names of its columns. The order of a query is that of its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    Float,
    Integer,
    Select,
    Text,
    cast,
    literal,
    null,
    select,
    type_coerce,
    union_all,
)
from sqlalchemy.sql.expression import TextualSelect
from sqlalchemy.types import TypeEngine

from sexton.store.instants import Instant

Query = Select[Any] | TextualSelect
_Place = tuple[int, int]  # a kind of column, and which of that kind
_TEXT, _INTEGER, _INSTANT, _BOOLEAN, _FLOAT = range(5)
_KINDS: tuple[TypeEngine[Any], ...] = (Text(), BigInteger(), Instant(), Boolean(), Float())


def read_together(connection: Connection, queries: Mapping[str, Query]) -> dict[str, list[Any]]:
    """The rows of each query."""
    sources = {name: query.subquery(name) for name, query in queries.items()}
    places = {name: _places(source.c) for name, source in sources.items()}
    widths: Counter[int] = Counter()
    for taken in places.values():
        for kind, number in taken:
            widths[kind] = max(widths[kind], number + 1)
    all_places = [(kind, number) for kind in sorted(widths) for number in range(widths[kind])]
    parts = []
    for name, source in sources.items():
        own = dict(zip(places[name], source.c, strict=True))
        columns = [_column(own.get(place), place) for place in all_places]
        parts.append(select(literal(name, Text()).label("part"), *columns).select_from(source))
    found: dict[str, list[Any]] = {name: [] for name in queries}
    index = {place: at for at, place in enumerate(all_places, start=1)}
    readings = {
        name: [(column.name, index[place]) for column, place in zip(source.c, places[name], strict=True)]
        for name, source in sources.items()
    }
    for row in connection.execute(union_all(*parts)):
        found[row[0]].append(SimpleNamespace(**{column: row[at] for column, at in readings[row[0]]}))
    return found


def _places(columns: Iterable[Any]) -> list[_Place]:
    taken: Counter[int] = Counter()
    places = []
    for column in columns:
        kind = _kind(column.type)
        places.append((kind, taken[kind]))
        taken[kind] += 1
    return places


def _kind(of: TypeEngine[Any]) -> int:
    if isinstance(of, Instant):
        return _INSTANT
    if isinstance(of, Boolean):
        return _BOOLEAN
    if isinstance(of, Integer):
        return _INTEGER
    return _FLOAT if isinstance(of, Float) else _TEXT


def _column(own: Any, place: _Place) -> Any:
    kind, number = place
    of = _KINDS[kind]
    if own is None:
        own = cast(null(), of)
    elif kind == _INTEGER:
        own = cast(own, of)  # of whichever size
    return type_coerce(own, of).label(f"c{kind}_{number}")
