from __future__ import annotations

from sexton_tui.console.core.keys import fitting, help_lines

KEYS = {
    "resign": "R resign",
    "backfill": "b backfill",
    "approve": "a approve",
    "section": "v runs",
    "help": "? help",
    "leave": "esc back",
}


def test_the_footer_has_the_most_needed_keys_first_and_cuts_none() -> None:
    assert fitting(KEYS, 200) == ["leave", "help", "approve", "section", "backfill", "resign"]
    assert fitting(KEYS, 10 + 8 + 11) == ["leave", "help", "approve"]
    assert fitting(KEYS, 10 + 8 + 10) == ["leave", "help"]


def test_help_begins_with_the_keys_that_work_here() -> None:
    here = {"f": "failed", "]": "after", "v": "another section", "?": "help"}
    texts = [one.text for one in help_lines(can_kill=False, read_only=False, here=here)]
    first = texts[: texts.index("")]
    assert first[0] == "Keys here, now"
    assert [text.split()[0] for text in first[1:]] == ["[", "v", "f"]
    assert texts.index("Everywhere") < texts.index("Elsewhere")
    assert len([text for text in texts if text.startswith("  f ")]) == 1
