"""A plan as a person reads it: signs without colour, nothing that acts on the terminal, no secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.job_standing import JobStanding, RunsInFlight
from sexton.jobfiles.plan_warnings import warnings_of
from sexton.store.protocol import CurrentJob
from sexton_tui.cli.plan_paint import Paint, paint_for_stdout
from sexton_tui.cli.plan_text import report_lines
from sexton_tui.cli.plan_time_text import about
from sexton_tui.cli.plan_warning_text import warning_lines
from tests.support.plans import NOW, cluster, report_of

PLAIN, COLOURED = Paint(), Paint(has_colour=True)

OLD = (
    "report: {schedule: '0 2 * * *', timezone: Europe/Berlin, command: [report, --all]}",
    "gone: {schedule: '0 5 * * *', command: [gone]}",
    "old: {schedule: 'H 5 * * *', command: [x]}",
    'script: {schedule: {every: 15m}, shell: "set -e\\none\\ntwo\\n"}',
    "kept: {schedule: '0 6 * * *', command: [kept]}",
)
NEW = (
    "report: {schedule: '0 4 * * *', timezone: Europe/Berlin, command: [report, --all]}",
    "new: {schedule: '0 5 * * *', renamed_from: old, command: [x]}",
    'script: {schedule: {every: 15m}, shell: "set -e\\none\\n2\\n", jitter: 1m}',
    "added: {schedule: '* * * * *', command: [a], env: {TOKEN: abc}}",
)
WHOLE = """\
+ added  * * * * * (UTC)
    + command: ["a"]
    + env.TOKEN: (hidden)
~ report  (revision 3 by bob@desk, 17s ago)
    ~ schedule: 0 2 * * * → 0 4 * * *
→ old → new
    ~ schedule: H 5 * * * → 0 5 * * *
~ script
    ~ jitter: 0s → 1m
    ~ shell:
          set -e
          one
        - two
        + 2
- gone  0 5 * * * (UTC); retired  (revision 3 by eve@laptop, 2d3h ago)
- kept  0 6 * * * (UTC); retired

Ticks until 2026-12-06T12:00:00Z (7d)
+ added  10080 appear
    + Sun 2026-11-29 12:01 UTC
    + Sun 2026-11-29 12:02 UTC
    + Sun 2026-11-29 12:03 UTC
      ... and 10077 more
~ report  7 move by +2h
    ~ Mon 2026-11-30 02:00 CET = 01:00Z → 04:00 CET = 03:00Z
    ~ Tue 2026-12-01 02:00 CET = 01:00Z → 04:00 CET = 03:00Z
    ~ Wed 2026-12-02 02:00 CET = 01:00Z → 04:00 CET = 03:00Z
      ... and 4 more
→ new  7 move by -33m
    ~ Mon 2026-11-30 05:33 UTC → 05:00 UTC
    ~ Tue 2026-12-01 05:33 UTC → 05:00 UTC
    ~ Wed 2026-12-02 05:33 UTC → 05:00 UTC
      ... and 4 more
~ script  672 stay
    ticks that stay are available at other times (jitter):
    ~ Sun 2026-11-29 12:15 UTC: +0s → +10s623ms
    ~ Sun 2026-11-29 12:30 UTC: +0s → +11s425ms
    ~ Sun 2026-11-29 12:45 UTC: +0s → +34s562ms
      ... and 669 more
- gone  7 vanish
    - Mon 2026-11-30 05:00 UTC
    - Tue 2026-12-01 05:00 UTC
    - Wed 2026-12-02 05:00 UTC
      ... and 4 more
- kept  7 vanish
    - Mon 2026-11-30 06:00 UTC
    - Tue 2026-12-01 06:00 UTC
    - Wed 2026-12-02 06:00 UTC
      ... and 4 more
Ticks: 10080 appear, 14 vanish, 14 move; 672 stay.

Claims and runs
~ report
    it counts from 2026-11-29T12:00:30Z on: ticks up to there are decided, and stay so
    1 run in flight since 2026-11-29T11:59:00Z goes on under revision 3
~ script
    2 claims written ahead are withdrawn, and none is due within the horizon under revision 4
- gone
    1 claim written ahead is withdrawn
    2 runs in flight since 2026-11-29T11:58:00Z go on under revision 2, and may end
    1 proposal with 12 held ticks is rejected

Warnings (1)
! added: env.TOKEN holds what looks like a secret; the database keeps it in plain text
    write ${secret:NAME} in its place, which the worker fills in

Plan: 1 added, 2 changed, 1 renamed, 2 retired."""
STANDINGS = (
    JobStanding(
        1,
        decided_upto=NOW + timedelta(seconds=30),
        in_flight=(RunsInFlight(3, 1, NOW - timedelta(minutes=1)),),
        made_by="bob@desk",
        made_at=NOW - timedelta(seconds=17),
    ),
    JobStanding(
        2,
        ahead=1,
        in_flight=(RunsInFlight(2, 2, NOW - timedelta(minutes=2)),),
        proposals=1,
        held_ticks=12,
        made_by="eve@laptop",
        made_at=NOW - timedelta(days=2, hours=3, minutes=4),
    ),
    JobStanding(4, ahead=2),
)


def shown(
    files: Sequence[str],
    current: Sequence[CurrentJob] = (),
    *standings: JobStanding,
    paint: Paint = PLAIN,
    brief: bool = False,
    prune: bool = False,
) -> str:
    report = report_of(files, current, *standings, prune=prune)
    return "\n".join(report_lines(report, warnings_of(report), paint, brief=brief))


def test_a_whole_plan() -> None:
    assert shown(NEW, cluster(*OLD), *STANDINGS, prune=True) == WHOLE


def test_colours_only_repeat_what_the_signs_say() -> None:
    coloured = shown(NEW, cluster(*OLD), *STANDINGS, prune=True, paint=COLOURED)
    assert "\x1b[32m+\x1b[0m" in coloured
    assert "\x1b[31m- two\x1b[0m" in coloured
    bare = coloured
    for code in ("0", "1", "2", "31", "32", "33", "36", "1;31"):
        bare = bare.replace(f"\x1b[{code}m", "")
    assert bare == WHOLE


def test_in_short_it_has_the_definitions_the_sums_and_the_facts() -> None:
    assert shown(NEW, cluster(*OLD), *STANDINGS, brief=True, prune=True).splitlines()[-8:] == [
        "- gone  0 5 * * * (UTC); retired  (revision 3 by eve@laptop, 2d3h ago)",
        "- kept  0 6 * * * (UTC); retired",
        "Ticks: 10080 appear, 14 vanish, 14 move; 672 stay.",
        "Claims: 3 claims written ahead withdrawn; 3 runs in flight go on.",
        "Warnings (1)",
        "! added: env.TOKEN holds what looks like a secret; the database keeps it in plain text",
        "    write ${secret:NAME} in its place, which the worker fills in",
        "Plan: 1 added, 2 changed, 1 renamed, 2 retired.",
    ]


def test_ticks_are_told_to_be_too_many_to_pair_only_where_some_could_be() -> None:
    busy, other = ("busy: {schedule: '" + text + "', command: [x]}" for text in ("*/2 * * * *", "*/3 * * * *"))
    assert "~ busy  1680 appear, 3360 vanish, 1680 of 5040 stay; too many to pair" in shown([other], cluster(busy))
    assert "too many" not in shown([busy])


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(milliseconds=400), "0s"),
        (timedelta(seconds=-3), "0s"),
        (timedelta(minutes=59, seconds=59, milliseconds=300), "59m59s"),
        (timedelta(hours=3, minutes=4, seconds=40), "3h5m"),
        (timedelta(days=7), "7d"),
        (timedelta(days=6, hours=23, minutes=59, seconds=59.5), "7d"),
        (timedelta(days=1, hours=11, minutes=44), "1d12h"),
        (timedelta(days=123, minutes=25, seconds=44), "123d"),
    ],
)
def test_lengths_are_rounded_as_a_person_says_them(length: timedelta, text: str) -> None:
    assert about(length) == text


def test_nothing_to_change_is_one_line_and_what_is_kept() -> None:
    assert shown([OLD[0]], cluster(*OLD[:2])).splitlines() == [
        "  not in the files, and kept (--prune retires them): gone",
        "Nothing to change: 1 unchanged, 1 of the cluster not in the files.",
    ]


def test_no_text_of_a_job_acts_on_the_terminal() -> None:
    nasty = "\\e[2J\\u202e\\a"
    more = f'description: "{nasty}", env: {{A: "{nasty}"}}'
    files = [f'a: {{schedule: "0 5 * * *", shell: "echo {nasty}\\n{nasty}\\n", {more}}}']
    for current in ([], cluster(f'a: {{schedule: "0 5 * * *", shell: "{nasty}", owner: "{nasty}"}}')):
        for brief in (False, True):
            text = shown(files, current, brief=brief)
            assert [one for one in text if not one.isprintable() and one != "\n"] == []
    assert "\\x1b[2J" in text


def test_jobs_of_which_the_same_is_said_are_told_together() -> None:
    text = shown([f"j{n}: {{schedule: '0 5 * * *', command: [x]}}" for n in range(5)])
    assert "+ j0, j1, j2 and 2 more, each  7 appear" in text
    assert text.count("Mon 2026-11-30 05:00 UTC") == 1


def test_a_map_of_crowded_minutes_fits_80_columns_and_needs_no_colour() -> None:
    text = shown([f"j{n:03}: {{schedule: '0 2 * * *', command: [x]}}" for n in range(90)])
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if "Jobs due in each minute, UTC" in line)
    assert lines[start + 1].split() == ["00", "10", "20", "30", "40", "50"]
    assert lines[start + 2] == "    02 @"
    assert lines[start + 3].strip() == ". up to 6   : up to 13   + up to 20   # more than 20   @ more than 80"
    assert max(map(len, lines[start : start + 4])) < 80
    assert '      schedule: "H 2 * * *"  # instead of "0 2 * * *"' in lines


def the_map(*jobs: str) -> list[str]:
    lines = shown(jobs).splitlines()
    start = next(number for number, line in enumerate(lines) if "Jobs due in each minute, UTC" in line)
    stop = next(number for number, line in enumerate(lines) if line.startswith("    . up to"))
    return [line[4:] for line in lines[start + 2 : stop]]


class TestTheMapFitsAScreen:
    CROWD = tuple(f"j{n:03}: {{schedule: '0 2 * * *', command: [x]}}" for n in range(90))

    def test_hours_that_look_alike_are_one_row(self) -> None:
        rows = the_map(*self.CROWD, "each: {schedule: '* * * * *', command: [x]}")
        assert rows == [f"00-01 {'.' * 60}", f"02    @{'.' * 59}", f"03-23 {'.' * 60}"]

    def test_hours_without_a_crowd_are_told_together_where_each_looks_different(self) -> None:
        others = [f"h{n:02}: {{schedule: '{n} {n} * * *', command: [x]}}" for n in range(24)]
        rows = the_map(*self.CROWD, *others)
        assert rows == ["00-01 ..", "02    @ .", f"03-23 {' ' * 3}{'.' * 21}"]

    def test_crowds_in_many_hours_are_three_hours_a_row(self) -> None:
        rows = the_map(
            *(f"j{h:02}{n:02}: {{schedule: '{h} {h} * * *', command: [x]}}" for h in range(0, 20, 2) for n in range(21))
        )
        assert len(rows) == 7
        assert rows[0] == "00-02 # #"
        assert rows[1] == f"03-05 {' ' * 4}#"
        assert "".join(rows).count("#") == 10, "no crowd is hidden"


def test_a_pause_that_begins_ends_or_stays_is_told() -> None:
    current = cluster(*OLD[:2])
    begins = shown([OLD[0].replace("command", "enabled: false, command")], current)
    assert "~ report  7 vanish (paused: enabled: false)" in begins
    paused = [replace(one, is_paused=True) for one in current]
    by_file = JobStanding(1, pause_reason="enabled: false")
    assert "7 appear (its pause by file ends)" in shown([NEW[0]], paused, by_file)
    stays = shown([NEW[0]], paused, JobStanding(1, pause_reason="storage"))
    assert "none appears, vanishes or moves" in stays
    assert "sexton resume report" in stays


def test_output_that_is_no_terminal_gets_no_colour() -> None:
    assert not paint_for_stdout({}).has_colour


def test_what_is_told_of_several_jobs_is_told_of_each() -> None:
    sparse = "{schedule: '0 2 1 * *', command: [x], missed: {policy: skip}}"

    def told(count: int) -> str:
        report = report_of(tuple(f"n{number}: {sparse}" for number in range(count)))
        (one,) = [one for one in warnings_of(report) if one.kind == "sparse"]
        return " ".join("\n".join(warning_lines([one], None, PLAIN, brief=True)).split())

    assert "! n0: its ticks are 28d or more apart" in told(1)
    assert "! n0, n1, each: its ticks are" in told(2)
    assert "! n0, n1, n2 and 16 more, each: its ticks are" in told(19)
