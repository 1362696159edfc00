"""The workers of ``sexton up`` can import the Python job files that it applied."""

from __future__ import annotations

from sexton_tui.local_cluster import python_path


def test_roots_stand_before_what_is_there_already() -> None:
    assert python_path(["/a", "/b"], {"PYTHONPATH": "/c:/a::"}) == {"PYTHONPATH": "/a:/b:/c"}


def test_nothing_is_set_where_there_are_none() -> None:
    assert python_path([], {"PYTHONPATH": "/c"}) == {}
