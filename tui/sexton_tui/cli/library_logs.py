"""What libraries log (kazoo, psycopg), in the form of Sexton's own logs, and once an outage.

A library that tries again every second says so every second. Here a record like one that was heard within the last
``QUIET`` is left out, however long that goes on; the next after a quiet time says how many were.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import TextIO

import structlog
from structlog.typing import Processor

QUIET = timedelta(seconds=30)
_Kind = tuple[str, int, str]


class OncePerOutage(logging.Filter):
    """Passes a record unless its like (logger, level, text before its values) was heard within ``QUIET``."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: dict[_Kind, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, record.levelno, str(record.msg))
        heard, left_out = self._heard.get(kind, (float("-inf"), 0))
        if record.created - heard < QUIET.total_seconds():
            self._heard[kind] = (record.created, left_out + 1)
            return False
        self._heard[kind] = (record.created, 0)
        record.left_out = left_out
        return True


def route_library_logs(stream: TextIO, before: Sequence[Processor], renderer: Processor) -> logging.Handler:
    """Send warnings and errors of all libraries to ``stream`` through ``renderer``; the handler that does it."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(_is_told)
    handler.addFilter(OncePerOutage())
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_name_library, *before],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    # A duty that is late by a turn on a busy machine is no news: the next turn does its work.
    logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    return handler


def _is_told(record: logging.LogRecord) -> bool:
    """Not of a connection that died within a pipeline: psycopg raises that error, and who caught it has told it; that
    the pipeline on the dead connection could not be ended as well follows from it."""
    return not (record.name == "psycopg" and str(record.msg).startswith("error ignored terminating"))


def _name_library(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    record: logging.LogRecord = event["_record"]
    event["library"] = record.name
    if left_out := getattr(record, "left_out", 0):
        event["left_out_before"] = left_out
    return event
