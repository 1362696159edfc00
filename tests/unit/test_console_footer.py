from __future__ import annotations

from sexton_tui.console.core.keys import MORE, fitting, hanging, help_lines

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


def test_where_keys_have_no_room_help_and_the_way_out_have_and_help_says_that_there_are_more() -> None:
    more = len(" ".join(MORE)) + 2
    keys = {**KEYS, "quit": "q leave"}
    assert fitting(keys, 10 + 9 + 11 + more) == ["leave", "quit", "approve", "help"]
    assert fitting(keys, 10 + 9 + 10 + more) == ["leave", "quit", "help"]
    assert fitting(keys, 3) == ["leave", "quit", "help"]


def test_on_the_overview_resign_comes_before_the_keys_of_a_job() -> None:
    keys = {"quit": "q leave", "pause": "p pause", "resign": "R resign", "find_jobs": "/ find jobs"}
    assert fitting(keys, 200) == ["quit", "resign", "pause", "find_jobs"]
    assert fitting({**keys, "leave": "esc back"}, 200)[2:] == ["pause", "resign", "find_jobs"]


def test_what_a_key_does_is_broken_behind_the_key() -> None:
    sort = next(one for one in help_lines(can_kill=False, read_only=False) if one.text.startswith("  home end  the"))
    assert [one.text for one in hanging(sort, 36)] == [
        "  home end  the first, the last;",
        "            runs: the newest, the",
        "            oldest",
    ]
    assert hanging(sort, 200) == [sort]


def test_help_begins_with_the_keys_that_work_here() -> None:
    here = {"f": "failed", "]": "after", "v": "another section", "?": "help"}
    texts = [one.text for one in help_lines(can_kill=False, read_only=False, here=here)]
    first = texts[: texts.index("")]
    assert first[0] == "Keys here, now"
    assert [text.split()[0] for text in first[1:]] == ["[", "v", "f"]
    assert texts.index("Everywhere") < texts.index("Elsewhere")
    assert len([text for text in texts if text.startswith("  f ")]) == 1
    everywhere = texts[texts.index("Everywhere") : texts.index("Elsewhere")]
    assert {"P", "R", "h", "F", "C"} <= {text.split()[0] for text in everywhere if text}  # of the cluster
