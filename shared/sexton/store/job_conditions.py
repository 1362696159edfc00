"""Conditions on a job's newest definition: it is stored as canonical JSON, so a key and its value are found as text."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select

from sexton.store import tables

_LONGEST_ID = 18  # digits


def definition_conditions(queue: str, owner: str, tag: str) -> list[ColumnElement[bool]]:
    """For a query that reads ``revisions``; an empty text asks for nothing."""
    definition = tables.revisions.c.definition
    conditions = []
    for key, value in (("queue", queue), ("owner", owner)):
        if value:
            found = f'"{key}":{json.dumps(value, ensure_ascii=False)}'
            conditions.append(definition.contains(found, autoescape=True))
    if tag:
        tags = r'"tags":[%' + _like(json.dumps(tag, ensure_ascii=False)) + r"%]%"
        conditions.append(definition.like("%" + tags, escape="/"))
    return conditions


def is_named(name: str) -> ColumnElement[bool]:
    """For a query that reads ``jobs``: those of this name, case aside; ``NAME#ID`` is the one of them with this id, so
    that a retired job can be told from the one that has its name now."""
    jobs, key = tables.jobs.c, name.lower()
    base, _, number = key.rpartition("#")
    if not base or not number.isdecimal() or len(number) > _LONGEST_ID:
        return jobs.name_key == key
    return or_(jobs.name_key == key, and_(jobs.name_key == base, jobs.job_id == int(number)))


def ids_of_jobs(owner: str, tag: str) -> Select[Any]:
    """The ids of the jobs, retired ones too, whose newest revision has this owner and this tag."""
    jobs, revisions = tables.jobs, tables.revisions
    newest = (revisions.c.job_id == jobs.c.job_id) & (revisions.c.revision == jobs.c.revision)
    return select(jobs.c.job_id).join(revisions, newest).where(*definition_conditions("", owner, tag))


def _like(text: str) -> str:
    return text.replace("/", "//").replace("%", "/%").replace("_", "/_")
