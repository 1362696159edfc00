"""What no other checker sees: long files, empty words as names, leftovers, dead modules, addresses."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.support.source_tree import ROOT, Module, is_within, modules_of_tests, product_modules

MODULES = (*product_modules(), *modules_of_tests())

LONGEST_FILE = 400
LONGEST_FUNCTION = 80  # aim at 70

# Names that say nothing about the subject of a file.
EMPTY_WORDS = {"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}

# Spelled in parts, so that this file does not find itself.
LEFTOVERS = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "NotImplemented" + "Error")))

# An ignore is followed by its reason, after its code and a dash or in a comment of its own.
IGNORE = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma)\b(?P<rest>.*)")
CODES = re.compile(r"^:?\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|^\[[^\]]*\]")

# Who only users or other programs import.
ENTRY_POINTS = {
    "sexton.fencing": "users guard their own tables with it",
    "sexton.testing": "users test their jobs with it",
    "sexton_worker.context": "users' jobs ask it about their run",
}

NAMES_FOR_REGISTRIES = ("py" + "pi", "http:", "https:", "://")


def offenders(found: Callable[[Module], object], among: Iterable[Module] = MODULES) -> dict[str, object]:
    """What `found` finds in each of the modules, by path: one test a rule, not one a file."""
    return {str(module.path): what for module in among if (what := found(module))}


def test_a_file_has_one_subject_and_fits_on_some_screens() -> None:
    def length(module: Module) -> int | None:
        lines = len(module.text.splitlines())
        return lines if lines > LONGEST_FILE else None

    assert offenders(length) == {}


def test_a_function_fits_on_a_screen() -> None:
    def too_long(module: Module) -> list[str]:
        return [
            f"{node.name} has {length} lines"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
        ]

    assert offenders(too_long) == {}


def test_a_name_says_what_is_inside() -> None:
    assert offenders(lambda module: EMPTY_WORDS & {*module.path.with_suffix("").parts}) == {}


def test_nothing_is_left_for_later() -> None:
    assert offenders(lambda module: LEFTOVERS.findall(module.text)) == {}


def test_every_ignore_has_a_reason() -> None:
    assert offenders(lambda module: ignores_without_reason(module.text)) == {}


def ignores_without_reason(text: str) -> list[str]:
    """Return the lines that silence a checker and do not say why."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        ignore = IGNORE.search(line)
        if ignore and len(re.findall(r"\w+", CODES.sub("", ignore["rest"]))) < 1:
            found.append(f"{number}: {line.strip()}")
    return found


def test_an_ignore_without_a_reason_is_seen() -> None:
    mark = "# no" + "qa"
    assert ignores_without_reason(f"x = 1  {mark}") != []
    assert ignores_without_reason(f"x = 1  {mark}: S108, S101") != []
    assert ignores_without_reason(f"x = 1  {mark}: S108 - a memory file system") == []
    assert ignores_without_reason("x = 1  # type: " + "ignore[attr-defined]") != []
    assert ignores_without_reason("x = 1  # type: " + "ignore[attr-defined]  # ships no types") == []


def test_a_module_says_what_it_is() -> None:
    """The first thing in its file is its docstring."""
    described = [one for one in MODULES if one in product_modules() or is_within(one.name, "tests.support")]
    assert offenders(lambda one: one.text.strip() and not ast.get_docstring(one.tree), among=described) == {}


def test_only_waiting_sleeps() -> None:
    """A test that sleeps is slow on a fast machine and fails on a slow one: wait for the fact."""
    tests = [one for one in modules_of_tests() if one.name != "tests.support.waiting" and "sleep" in one.text]
    assert offenders(sleeps, among=tests) == {}


def sleeps(module: Module) -> list[str]:
    """Return the calls of `time.sleep`, and those of `asyncio.sleep` that wait for more than the next turn."""
    found = [f"imports {name}" for name in ("time.sleep", "asyncio.sleep") if name in module.imports()]
    for node in ast.walk(module.tree):
        call = ast.unparse(node) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if call.startswith(("time.sleep(", "asyncio.sleep(")) and call != "asyncio.sleep(0)":
            found.append(f"{call}")
    return found


def test_a_sleep_is_seen() -> None:
    for text in (
        "import time\ntime.sleep(1)",
        "from time import sleep",
        "async def f():\n    await asyncio.sleep(0.1)",
    ):
        assert sleeps(Module("tests.unit.sample", Path("sample.py"), False, text)) != []


def test_no_module_is_dead() -> None:
    nobody_imports = dead(product_modules(), by=product_modules())
    assert nobody_imports == []


def test_no_support_module_is_dead() -> None:
    support = tuple(one for one in modules_of_tests() if is_within(one.name, "tests.support"))
    assert dead(support, by=modules_of_tests()) == []


def dead(modules: tuple[Module, ...], by: tuple[Module, ...]) -> list[str]:
    """Return the modules that nobody of `by` imports or starts by name, and that are no entry points."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    entries = {target.partition(":")[0] for target in scripts.values()} | ENTRY_POINTS.keys()
    mentions = {one.name: one.imports() | one.names_in_strings() for one in by}
    users = Counter(name for names in mentions.values() for name in names)
    found = []
    for module in modules:
        if module.is_package or module.name in entries or module.name.endswith(".__main__"):
            continue
        if is_within(module.name, "sexton.store.migrations"):
            continue  # Alembic finds them by folder
        if users[module.name] - (module.name in mentions.get(module.name, ())) == 0:
            found.append(module.name)
    return found


def test_a_dead_module_is_seen() -> None:
    alive = Module("sexton.alive", Path("alive.py"), False, "")
    lonely = Module("sexton.lonely", Path("lonely.py"), False, "import sexton.lonely")
    named = Module("sexton.named", Path("named.py"), False, "")
    text = 'from sexton import alive\nHERE = "sexton"\nNAMES = (f"{HERE}.named:main",)'
    user = Module("sexton.user", Path("user.py"), False, text)
    assert dead((alive, named, lonely), by=(alive, named, lonely, user)) == ["sexton.lonely"]


def test_constraints_pin_versions_and_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+", line)] == []
    assert [line for line in lines if any(name in line.lower() for name in NAMES_FOR_REGISTRIES)] == []


@pytest.mark.parametrize("name", ["pyproject.toml", "Makefile", ".ci/run"])
def test_set_up_names_no_registry(name: str) -> None:
    text = (ROOT / name).read_text().lower()
    assert [word for word in ("://", "index" + "-url", *NAMES_FOR_REGISTRIES[:1]) if word in text] == []
