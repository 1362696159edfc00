"""JSON Schema (draft 2020-12) of a job file, for editors, made from the table of keys (``keys``).

It accepts whatever ``load`` accepts. The other way round it is as strict as a schema can be: what only ``load`` sees is
listed in docs/job-files.md ("In your editor"). ``errorMessage`` and ``patternErrorMessage`` are words of editors, which
validators pass over. It speaks of the values that a YAML 1.2 reader or a TOML reader gives.
"""

from __future__ import annotations

from typing import Any

from sexton.jobfiles.keys import JOB_KEYS, NAME_PATTERN, NAME_WANTED, TARGETS
from sexton.jobfiles.readings import JsonSchema

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "urn:sexton:job-file:1"


def job_file_schema() -> JsonSchema:
    """The schema of a job file, and of a folder's file with nothing but `defaults`. A fresh value at each call."""
    keys = {f"key-{key.name}": key.schema() for key in JOB_KEYS}
    return {
        "$schema": SCHEMA_DIALECT,
        "$id": SCHEMA_ID,
        "title": "Sexton job file",
        "description": "Jobs of Sexton, cluster-wide cron: when each runs, what it runs, and how.",
        "type": "object",
        "properties": {
            "version": {"const": 1, "description": "The version of the format."},
            "defaults": {"$ref": "#/$defs/defaults"},
            "jobs": {
                "type": "object",
                "description": "The jobs by name.",
                "propertyNames": {"pattern": f"^(?:{NAME_PATTERN})$", "description": NAME_WANTED},
                "additionalProperties": {"$ref": "#/$defs/job"},
            },
        },
        "required": ["version"],
        "anyOf": [{"required": ["jobs"]}, {"required": ["defaults"]}],
        "additionalProperties": False,
        "$defs": {"job": _job(), "defaults": _defaults(), **keys},
    }


def _job() -> JsonSchema:
    return {
        "type": "object",
        "description": "One job.",
        "properties": {key.name: _reference(key.name) for key in JOB_KEYS},
        "required": ["schedule"],
        "oneOf": [{"required": [target]} for target in TARGETS],
        # said so, and not by dependentRequired, because taplo knows the words of draft 7 only
        "if": {"anyOf": [{"required": ["args"]}, {"required": ["kwargs"]}]},
        "then": {"anyOf": [{"required": ["python"]}, {"required": ["celery"]}]},
        "additionalProperties": False,
    }


def _defaults() -> JsonSchema:
    return {
        "type": "object",
        "description": "What every job of the file has unless it says otherwise; mappings merge by key.",
        "properties": {key.name: _reference(key.name) for key in JOB_KEYS if not key.own},
        "additionalProperties": False,
    }


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/key-{name}"}
