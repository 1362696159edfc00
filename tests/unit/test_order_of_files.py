"""The order in which files of tests run."""

from __future__ import annotations

from tests.support.order_of_files import ordered


def test_each_file_comes_once_the_longest_first_and_kinds_alternate() -> None:
    tests = [
        *[("unit", "many.py")] * 50,
        *[("stores", "long.py")] * 40,
        *[("stores", "short.py")] * 4,
        *[("faults", "long.py")] * 2,
        *[("acceptance", "short.py")] * 20,
    ]
    files = [("faults", "long.py"), ("stores", "long.py"), ("acceptance", "short.py")]
    files += [("stores", "short.py"), ("unit", "many.py")]
    assert ordered(tests) == ordered(tests[::-1]) == files


def test_a_folder_that_nobody_has_weighed_comes_last() -> None:
    assert ordered([("new", "a.py"), ("unit", "b.py")]) == [("unit", "b.py"), ("new", "a.py")]
