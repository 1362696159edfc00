"""A job file as an editor sees it: the values that YAML 1.2 gives, checked against the schema that we print."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date, datetime, time
from functools import cache
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from sexton.jobfiles.schema import job_file_schema


class _Yaml12(yaml.SafeLoader):
    """YAML with the words of its 1.2 core schema: no dates, no base 60, no `yes`."""


_Yaml12.yaml_implicit_resolvers = {}

for _tag, _pattern, _first in (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), _first)


def _int(loader: yaml.SafeLoader, node: yaml.Node) -> int:
    text = str(node.value)
    return int(text, 0) if re.match("0[ox]", text) else int(text)


def _float(loader: yaml.SafeLoader, node: yaml.Node) -> float:
    return float(str(node.value).replace(".inf", "inf").replace(".Inf", "inf").replace(".nan", "nan"))


_Yaml12.add_constructor("tag:yaml.org,2002:int", _int)
_Yaml12.add_constructor("tag:yaml.org,2002:float", _float)


@cache
def validator() -> Draft202012Validator:
    """For the schema as it is printed: through JSON and back."""
    return Draft202012Validator(json.loads(json.dumps(job_file_schema())))


def yaml_values(text: str) -> Any:
    """What an editor makes of YAML. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Yaml12)  # noqa: S506 - a SafeLoader with fewer words


def toml_values(text: str) -> Any:
    """What an editor makes of TOML: dates and times as their texts."""
    return _with_texts(tomllib.loads(text))


def _with_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item) for item in value]
    return value.isoformat() if isinstance(value, date | datetime | time) else value


def schema_faults(values: Any) -> list[str]:
    """What an editor underlines, one line a fault."""
    return [f"{'/'.join(map(str, fault.path))}: {fault.message[:200]}" for fault in validator().iter_errors(values)]


def editor_refuses(text: str) -> bool:
    """Whether an editor with our schema shows any fault of this YAML."""
    try:
        values = yaml_values(text)
    except (yaml.YAMLError, ValueError):
        return True
    return bool(schema_faults(values))
