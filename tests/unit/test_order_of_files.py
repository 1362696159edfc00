"""The order in which files of tests run."""

from __future__ import annotations

from tests.support.order_of_files import MEASURED, ordered
from tests.support.source_tree import ROOT


def test_each_file_comes_once_the_longest_first_and_kinds_alternate() -> None:
    tests = [
        *[("unit", "many.py")] * 50,
        *[("stores", "long.py")] * 40,
        *[("stores", "short.py")] * 10,
        *[("faults", "long.py")] * 2,
        *[("acceptance", "short.py")] * 20,
    ]
    files = [("faults", "long.py"), ("stores", "long.py"), ("acceptance", "short.py")]
    files += [("stores", "short.py"), ("unit", "many.py")]
    assert ordered(tests) == ordered(tests[::-1]) == files


def test_a_folder_that_nobody_has_weighed_comes_last() -> None:
    assert ordered([("new", "a.py"), ("unit", "b.py")]) == [("unit", "b.py"), ("new", "a.py")]


def test_what_was_measured_counts_more_than_the_number_of_tests_and_is_of_files_that_exist() -> None:
    first, *_, last = sorted(MEASURED, key=lambda file: -MEASURED[file])
    assert ordered([last] * 1000 + [first]) == [first, last]
    assert [file for file in MEASURED if not ROOT.joinpath("tests", *file).exists()] == []
