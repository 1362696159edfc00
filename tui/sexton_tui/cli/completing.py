"""What a shell offers where a name or a word is typed (``sexton --install-completion``). It never says a word."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import typer

from sexton.errors import SextonError
from sexton_tui.cli.invocation import invocation_of

WITHIN_SECONDS = 1.0
_OFFERED = 200
_MEANT_BY_SHELLS = frozenset(" \t'\"\\$`;&|<>(){}*?!#~")

Completing = Callable[[typer.Context, str], list[str]]


def names_of(kind: str) -> Completing:
    """Offers the cluster's names of this ``known_names.Kind``; none where its database takes longer than a second."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        try:
            url = invocation_of(ctx).settings().database
        except SextonError:
            return found
        looking = threading.Thread(target=_look, args=(url, kind, incomplete, found), daemon=True)
        looking.start()
        looking.join(WITHIN_SECONDS)
        return list(found)

    return complete


def _look(url: str, kind: str, incomplete: str, found: list[str]) -> None:
    from sexton.store.known_names import Kind, known_names

    try:
        names = known_names(url, Kind(kind), incomplete, _OFFERED, WITHIN_SECONDS)
    except Exception:
        return
    # A shell takes the answer line by line, and puts it on its command line as it is.
    found += [name for name in names if name and name.isprintable() and not set(name) & _MEANT_BY_SHELLS]


def words_of(words: Iterable[str]) -> Completing:
    """Offers these words."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        del ctx
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_zone(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offers the zones of the zone database."""
    from sexton.zones import zone_names

    del ctx
    return sorted(name for name in zone_names() if name.startswith(incomplete))


complete_job = names_of("job")
complete_queue = names_of("queue")
complete_owner = names_of("owner")
complete_tag = names_of("tag")
complete_worker = names_of("worker")
complete_node = names_of("node")
