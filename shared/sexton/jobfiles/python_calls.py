"""Whether a ``python`` job's function takes the arguments it is given: found out by reading its module, not running it.

The module is looked for as an import would from here, without importing it or the packages above it. What reading alone
cannot tell (another machine's module, a decorated or imported function, a method) is not warned of: the run will say.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from inspect import Parameter
from pathlib import Path

from sexton.jobfiles.plan_report import PlanReport
from sexton.jobfiles.plan_warnings import PlanWarning, WarningKind
from sexton.targets import PythonTarget

_LARGEST_SOURCE = 4 * 1024 * 1024  # bytes
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def call_warnings(report: PlanReport, path: Sequence[str]) -> Iterator[PlanWarning]:
    """Of the jobs whose target the plan brings or changes; ``path`` as ``sys.path``."""
    for job in report.jobs:
        target = None if job.after is None else job.after.target
        if not isinstance(target, PythonTarget) or (job.before is not None and job.before.target == target):
            continue
        wrong = wrong_call(target, path)
        if wrong is not None:
            remedy = "mend the function, or the job's python, args and kwargs; as it stands every run fails"
            yield PlanWarning(WarningKind.CALL, (job.name,), wrong, remedy, numbers={"python": target.reference})


def wrong_call(target: PythonTarget, path: Sequence[str]) -> str | None:
    """Why calling the function will fail, as far as its source tells; None: it is well, or not to be told here."""
    module, _, name = target.reference.partition(":")
    file = _source_of(module, path)
    if file is None or "." in name:
        return None
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError as error:
        return f"{file}, line {error.lineno}: {error.msg}"
    except (OSError, ValueError, RecursionError):
        return None
    binding = _binding(tree, name)
    if binding is None:
        return None if _may_bind_more(tree) else f"{file} has no function {name!r}"
    if not isinstance(binding, _Function) or binding.decorator_list:
        return None
    if _is_generator(binding):
        return f"{name} ({file}, line {binding.lineno}) is a generator function, and calling it would run nothing"
    try:
        _signature(binding.args).bind(*target.args, **target.kwargs)
    except TypeError as error:
        return f"{name} ({file}, line {binding.lineno}) does not take its arguments: {error}"
    return None


def _source_of(module: str, path: Sequence[str]) -> Path | None:
    """The file that an import from here would read; None: there is none, or it is no source."""
    places: Sequence[str] | None = path
    spec: ModuleSpec | None = None
    parts = module.split(".")
    for number in range(1, len(parts) + 1):
        if places is None:
            return None
        try:
            spec = PathFinder.find_spec(".".join(parts[:number]), list(places))
        except (ImportError, OSError, ValueError):
            return None
        if spec is None:
            return None
        found = spec.submodule_search_locations
        places = None if found is None else [str(one) for one in found]
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        return None
    file = Path(spec.loader.path)
    try:
        return file if file.stat().st_size <= _LARGEST_SOURCE else None
    except OSError:
        return None


def _binding(tree: ast.Module, name: str) -> ast.AST | None:
    """What binds the name in the module: its only function of this name, or another node that is not looked into."""
    found = [node for node in _at_module_level(tree) if _binds(node, name)]
    return tree if len(found) > 1 else found[0] if found else None


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Name():
            return node.id == name and isinstance(node.ctx, ast.Store)
        case ast.alias():
            return (node.asname or node.name.partition(".")[0]) == name
        case _:
            return False


def _at_module_level(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those inside functions and classes."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def _may_bind_more(tree: ast.Module) -> bool:
    """Whether names may come in another way: from elsewhere, or made when they are asked for."""
    for node in _at_module_level(tree):
        if isinstance(node, ast.alias) and node.name == "*":
            return True
        if isinstance(node, _Function) and node.name == "__getattr__":
            return True
        if isinstance(node, ast.Name) and node.id in ("globals", "setattr", "exec", "vars"):
            return True
    return False


def _is_generator(function: _Function) -> bool:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def _signature(given: ast.arguments) -> inspect.Signature:
    """With which arguments are needed; their values are of no interest."""
    positional = [*given.posonlyargs, *given.args]
    needed = len(positional) - len(given.defaults)
    parameters = []
    for number, one in enumerate(positional):
        kind = Parameter.POSITIONAL_ONLY if number < len(given.posonlyargs) else Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(Parameter(one.arg, kind, default=Parameter.empty if number < needed else None))
    if given.vararg is not None:
        parameters.append(Parameter(given.vararg.arg, Parameter.VAR_POSITIONAL))
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        is_needed = default is None
        parameters.append(Parameter(one.arg, Parameter.KEYWORD_ONLY, default=Parameter.empty if is_needed else None))
    if given.kwarg is not None:
        parameters.append(Parameter(given.kwarg.arg, Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)
