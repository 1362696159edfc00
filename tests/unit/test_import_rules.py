"""The direction of imports, and the purity of the cores (docs/architecture.md, "Direction").

The contracts in pyproject.toml say the same to import-linter, for the modules that exist; here every module counts from
the moment its file appears. The last tests import for real, each in an interpreter of its own.
"""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.support.source_tree import ROOT, Module, is_within, product_modules

PURE_PACKAGES = ("sexton_scheduler.core", "sexton_worker.core", "sexton_tui.console.core", "sexton_tui.web.guard")

# What stands directly in `sexton` is pure, but for these.
EDGES_OF_SEXTON = {
    "sexton.clock": "is where time comes in",
    "sexton.ending_signals": "takes the process's signals",
    "sexton.fencing": "gives users statements against their own databases",
    "sexton.jobfiles": "reads files",
    "sexton.logs": "sets logging up",
    "sexton.output_places": "carries files to where whole outputs are kept",
    "sexton.process_settings": "reads files and the environment",
    "sexton.process_setting_views": "shows what that has read",
    "sexton.service_endpoint": "serves metrics and health on a socket and a thread of its own",
    "sexton.run_context": "asks the process's environment, threads and signals",
    "sexton.store": "is the database's edge",
    "sexton.testing": "serves users' tests",
}

NOT_PURE = {
    "alembic",
    "apscheduler",
    "asyncio",
    "concurrent",
    "fcntl",
    "http",
    "kazoo",
    "logging",
    "multiprocessing",
    "os",
    "psycopg",
    "random",
    "requests",
    "secrets",
    "select",
    "selectors",
    "signal",
    "socket",
    "sqlalchemy",
    "sqlite3",
    "structlog",
    "subprocess",
    "tempfile",
    "textual",
    "threading",
    "time",
    "typer",
    "urllib",
}
PURE_PARTS = ("urllib.parse",)  # of what else is not: texts in, texts out
CLOCK_READS = {"now", "utcnow", "today"}

# Who may import the other programs: the command line, which starts them, and its simulator, which runs their loops.
STARTERS = ("sexton_tui.cli", "sexton_tui.simulation")

PARTS = ("sexton", "sexton_scheduler", "sexton_worker", "sexton_tui")


def is_pure(name: str) -> bool:
    """Whether this module must be pure: a part of a core, or in `sexton` and not named as an edge."""
    if any(is_within(name, package) for package in PURE_PACKAGES):
        return True
    return is_within(name, "sexton") and not is_edge(name)


def is_edge(name: str) -> bool:
    """Whether this module belongs to an edge of `sexton`."""
    return any(is_within(name, edge) for edge in EDGES_OF_SEXTON)


def is_outside(name: str) -> bool:
    """Whether this module of Python or of others reaches the outside world."""
    return name.partition(".")[0] in NOT_PURE and not any(is_within(name, part) for part in PURE_PARTS)


def impurities(module: Module) -> list[str]:
    """Return what makes a module impure: imports of the outside world or of an edge, and reads of the clock."""
    found = [f"imports {name}" for name in sorted(module.imports()) if is_outside(name) or is_edge(name)]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_READS:
            found.append(f"line {node.lineno} reads the clock: {ast.unparse(node)}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            found.append(f"line {node.lineno} opens a file")
    return found


def wrong_directions(module: Module) -> list[str]:
    """Return the imports of this module that point the wrong way."""
    own = module.name.partition(".")[0]
    found = []
    for name in sorted(module.imports()):
        part = name.partition(".")[0]
        if part not in PARTS or part in (own, "sexton"):
            continue
        if any(is_within(module.name, one) for one in STARTERS) and part in ("sexton_scheduler", "sexton_worker"):
            continue
        found.append(f"{module.name} imports {name}")
    if is_within(module.name, "sexton_tui.console"):
        found += [
            f"{module.name} imports {name}"
            for name in module.imports()
            if any(is_within(name, one) for one in (*STARTERS, "sexton_tui.web"))
        ]
    return found


def sample(name: str, text: str) -> Module:
    return Module(name, ROOT / "sample.py", False, text)


@pytest.mark.parametrize("module", [one for one in product_modules() if is_pure(one.name)], ids=lambda one: one.name)
def test_a_pure_module_takes_time_randomness_and_data_as_arguments(module: Module) -> None:
    assert impurities(module) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from threading import Lock",
        "def f():\n    import sqlalchemy.orm",
        "from sexton import store",
        "from sexton.store.protocol import Store",
        "from sexton.clock import Clock",
        "from datetime import UTC, datetime\nx = datetime.now(UTC)",
        "x = open('file')",
    ],
)
def test_an_impure_module_is_seen(text: str) -> None:
    assert is_pure("sexton.schedules")
    assert is_pure("sexton_scheduler.core.planner")
    assert not is_pure("sexton.store.protocol")
    assert not is_pure("sexton_scheduler.loop")
    assert impurities(sample("sexton.schedules", text)) != []


def test_programs_stand_on_sexton_and_never_on_each_other() -> None:
    assert [wrong for module in product_modules() for wrong in wrong_directions(module)] == []


def test_a_wrong_direction_is_seen() -> None:
    assert wrong_directions(sample("sexton.jobs", "def f():\n    from sexton_worker import loop")) != []
    assert wrong_directions(sample("sexton_worker.loop", "import sexton_scheduler.node")) != []
    assert wrong_directions(sample("sexton_tui.console.app", "import sexton_scheduler")) != []
    assert wrong_directions(sample("sexton_tui.console.app", "from sexton_tui.cli import main")) != []
    assert wrong_directions(sample("sexton_tui.console.app", "from sexton_tui.simulation import cluster")) != []
    assert wrong_directions(sample("sexton_tui.console.app", "from sexton_tui.web import server")) != []
    assert wrong_directions(sample("sexton_tui.cli.up", "import sexton_scheduler.node")) == []
    assert wrong_directions(sample("sexton_tui.simulation.machines", "import sexton_worker.loop")) == []


def test_audit_shares_nothing_with_the_planner_but_the_next_tick_arithmetic() -> None:
    """Else the judge would repeat the mistakes of the judged (invariant 2)."""
    shared = [
        f"{module.name} imports {name}"
        for module in product_modules()
        if is_within(module.name, "sexton.audit")
        for name in module.imports()
        if is_within(name, "sexton.missed_ticks") or is_within(name, "sexton_scheduler")
    ]
    assert shared == []


# --------------------------------------------------------------------------------------- imports that really happen

HEAVY = {
    "alembic",
    "apscheduler",
    "kazoo",
    "psycopg",
    "pydantic",
    "sqlalchemy",
    "structlog",
    "textual",
    "typer",
    "yaml",
    "asyncio",
    "sqlite3",
}

IMPORT_WITHOUT = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("blocked by the test: " + name)

sys.meta_path.insert(0, Blocked())
for name in {modules!r}:
    importlib.import_module(name)
"""


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules that an interpreter of its own has loaded after this code."""
    report = "\nimport sys\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code + report], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def names_below(package: str) -> list[str]:
    """Return the modules of a package that can be imported without starting something."""
    names = [module.name for module in product_modules() if is_within(module.name, package)]
    return [name for name in names if not name.endswith("__main__")]


def test_importing_sexton_stays_light() -> None:
    assert loaded_after("from sexton import Job, job") & HEAVY == set()


def test_a_worker_needs_neither_textual_nor_what_only_schedulers_need() -> None:
    loaded_after(
        IMPORT_WITHOUT.format(blocked=["textual", "kazoo", "apscheduler"], modules=names_below("sexton_worker"))
    )


def test_a_scheduler_needs_no_textual() -> None:
    loaded_after(IMPORT_WITHOUT.format(blocked=["textual"], modules=names_below("sexton_scheduler")))


def test_a_blocked_module_cannot_be_imported() -> None:
    with pytest.raises(AssertionError, match="blocked by the test: kazoo"):
        loaded_after(IMPORT_WITHOUT.format(blocked=["kazoo"], modules=["kazoo.client"]))


def test_the_command_line_loads_the_programs_only_when_it_starts_them() -> None:
    imports = "".join(f"import {name}\n" for name in names_below("sexton_tui.cli"))
    assert loaded_after(imports) & {"sexton_scheduler", "sexton_worker", "textual", "kazoo", "apscheduler"} == set()
