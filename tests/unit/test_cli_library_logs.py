"""What libraries log reads like Sexton's own lines, and does not repeat itself."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from sexton_tui.cli.library_logs import QUIET, OncePerOutage, route_library_logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, text = logging.getLogger(), io.StringIO()
    level = root.level
    handler = route_library_logs(text, [structlog.processors.add_log_level], structlog.processors.JSONRenderer())
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


def test_a_library_s_line_is_json_among_json(stream: io.StringIO) -> None:
    logging.getLogger("kazoo.client").warning("Connection dropped: %s", "refused")
    logging.getLogger("kazoo.client").info("not worth a line")
    assert json.loads(stream.getvalue()) == {
        "event": "Connection dropped: refused",
        "level": "warning",
        "library": "kazoo.client",
    }


def test_the_end_of_a_pipeline_on_a_dead_connection_is_no_news(stream: io.StringIO) -> None:
    psycopg_log = logging.getLogger("psycopg")
    psycopg_log.warning("error ignored terminating %r: %s", "<psycopg.Pipeline [BAD]>", "the connection is lost")
    assert stream.getvalue() == ""
    psycopg_log.warning("error ignored in rollback on %s: %s", "<psycopg.Connection [BAD]>", "the connection is lost")
    assert "in rollback" in stream.getvalue()


def test_an_error_s_traceback_stays_in_its_line(stream: io.StringIO) -> None:
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError:
        logging.getLogger("psycopg").exception("odd")
    (told,) = stream.getvalue().splitlines()
    assert json.loads(told)["event"].startswith("odd")
    assert "by zero" in told


def test_a_line_repeated_through_an_outage_is_said_once_and_after_it_again() -> None:
    once, quiet = OncePerOutage(), QUIET.total_seconds()

    def is_said(at: float, text: str = "dropped: %s", value: str = "a") -> bool:
        record = logging.LogRecord("kazoo", logging.WARNING, "", 0, text, (value,), None)
        record.created = at
        passes = bool(once.filter(record))
        counts.append(getattr(record, "left_out", None))
        return passes

    counts: list[int | None] = []
    assert [is_said(float(second), value=str(second)) for second in range(100)] == [True] + [False] * 99
    assert is_said(50.0, "another: %s")
    assert not is_said(99.0 + quiet - 1)
    assert is_said(99.0 + quiet - 1 + quiet)
    assert counts[-1] == 100
