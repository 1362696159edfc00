"""The loops' own logs during a simulation: errors are findings, the rest is counted."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

_ERRORS = frozenset({"error", "exception", "critical"})


@contextmanager
def captured_logs(on_error: Callable[[str], None], on_other: Callable[[str], None]) -> Iterator[None]:
    """Within it, nothing is logged: ``on_error`` is given what a loop logs as an error, ``on_other`` other events."""

    def take(_: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        name = str(event.get("event"))
        if method in _ERRORS:
            told = {key: value for key, value in event.items() if key not in ("event", "exc_info")}
            error = sys.exc_info()[1] if event.get("exc_info") or method == "exception" else None
            trace = "" if error is None else "".join(traceback.format_exception(error))
            on_error(f"{name} {told} {trace}".strip())
        else:
            on_other(name)
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[take], wrapper_class=structlog.make_filtering_bound_logger(0))
    try:
        yield
    finally:
        structlog.configure(**before)
