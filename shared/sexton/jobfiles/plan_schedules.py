"""The schedules of many definitions, each distinct one made once."""

from __future__ import annotations

import json

from sexton.errors import SextonError
from sexton.jobs import JobDefinition
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule


class ScheduleBook:
    """Schedules by their text. One book serves one plan; it only remembers, and changes no answer."""

    def __init__(self) -> None:
        self._by_text: dict[str, Schedule | None] = {}

    def schedule_of(self, definition: JobDefinition, hash_seed: str) -> Schedule | None:
        """The job's schedule; None where this version refuses it (such a job is quarantined, and fires nothing)."""
        try:
            text = definition.schedule_text(hash_seed)
        except SextonError:
            return None
        if text not in self._by_text:
            try:
                self._by_text[text] = schedule_from_spec(json.loads(text))
            except SextonError:
                self._by_text[text] = None
        return self._by_text[text]
