"""Plans: what an apply would change, and what it refuses to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sexton.errors import InvalidJobFile, Refused
from sexton.jobfiles.differences import Difference
from sexton.jobfiles.load import LoadedJobs, load_job_text
from sexton.jobfiles.plan import ApplyPlan, plan_changes
from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeKind, CurrentJob


def files(*jobs: str) -> LoadedJobs:
    lines = "".join(f"  {job}\n" for job in jobs)
    return load_job_text(f"version: 1\njobs:\n{lines}" if lines else "version: 1\njobs: {}\n")


def job(name: str, more: str = "") -> str:
    return f"{name}: {{schedule: '0 5 * * *', command: [x]{', ' + more if more else ''}}}"


def cluster(*jobs: str) -> list[CurrentJob]:
    return [
        CurrentJob(number, one.name, 3, replace(one.definition, renamed_from=None), one.name, False, False)
        for number, one in enumerate(files(*jobs).jobs, start=1)
    ]


def names(definitions: tuple[JobDefinition, ...]) -> list[str]:
    return [definition.name for definition in definitions]


def test_a_plan_tells_added_changed_unchanged_and_missing_apart() -> None:
    plan = plan_changes(
        files(job("new"), job("same"), job("other", "queue: q")), cluster(job("same"), job("other"), job("gone"))
    )
    assert names(plan.added) == ["new"]
    assert [(one.definition.name, one.differences) for one in plan.revised] == [
        ("other", (Difference("queue", "default", "q"),))
    ]
    assert plan.unchanged == ("same",)
    assert [one.name for one in plan.missing] == ["gone"]
    assert plan.retired == ()
    assert plan.summary() == "1 added, 1 changed, 1 unchanged, 1 of the cluster not in the files"


def test_changes_carry_the_revision_they_were_planned_against() -> None:
    plan = plan_changes(files(job("other", "queue: q")), cluster(job("other"), job("gone")), prune=True)
    assert [(change.kind, change.job_id, change.expected_revision) for change in plan.changes] == [
        (ChangeKind.RETIRE, 2, 3),
        (ChangeKind.REVISE, 1, 3),
    ]


def test_a_new_job_that_does_what_a_missing_one_does_is_pointed_out() -> None:
    current = cluster(job("every5", "queue: q"), job("gone", "timezone: Asia/Tokyo"))
    plan = plan_changes(files(job("every-five")), current)
    assert plan.likely_renames == (("every5", "every-five"),)
    assert plan_changes(files(job("every-five", "renamed_from: every5")), current).likely_renames == ()
    pruned = plan_changes(files(job("every-five")), current, prune=True, prune_limit=2)
    assert pruned.likely_renames == plan.likely_renames
    with pytest.raises(Refused) as refused:
        plan_changes(files(job("every-five")), current, prune=True)
    assert refused.value.hint == (
        "1 of them may be renamed (`sexton plan` without --prune tells which); if this is meant, add --prune-limit 2"
    )


def test_many_alike_pair_in_their_order() -> None:
    current = cluster(*(job(f"old{n:03}") for n in range(100)))
    plan = plan_changes(files(*(job(f"new{n:03}") for n in range(90))), current)
    assert plan.likely_renames == tuple((f"old{n:03}", f"new{n:03}") for n in range(90))


def test_differences_speak_the_words_of_job_files() -> None:
    old = cluster(job("a", "max_runtime: 1h, env: {A: x}, missed: {grace: 90s}"))
    new = files("a: {schedule: [{every: 15m}, '0 5 * * *'], shell: z, missed: {grace: 2m}}")
    (revised,) = plan_changes(new, old).revised
    assert [(one.key, one.old, one.new) for one in revised.differences] == [
        ("command", '["x"]', None),
        ("env.A", "x", None),
        ("max_runtime", "1h", "1d"),
        ("missed.grace", "1m30s", "2m"),
        ("schedule", "0 5 * * *", "every 15m + 0 5 * * *"),
        ("shell", None, "z"),
    ]


def test_nothing_changed_is_an_empty_plan() -> None:
    plan = plan_changes(files(job("a")), cluster(job("a")))
    assert plan.is_empty
    assert plan.changes == ()


def test_an_argument_of_another_kind_is_a_change() -> None:
    old, new = (f"a: {{schedule: '0 5 * * *', python: 'm:f', kwargs: {{'n': {n}}}}}" for n in ("1", "true"))
    (revised,) = plan_changes(files(new), cluster(old)).revised
    assert [(one.key, one.old, one.new) for one in revised.differences] == [("kwargs", '{"n": 1}', '{"n": true}')]
    assert plan_changes(files(old), cluster(old)).is_empty


class TestRenames:
    def test_a_rename_keeps_the_job(self) -> None:
        plan = plan_changes(files(job("new", "renamed_from: old")), cluster(job("old")))
        (revised,) = plan.revised
        assert (revised.current.name, revised.definition.name, revised.renamed) == ("old", "new", True)
        assert plan.missing == ()

    def test_it_is_ignored_once_the_new_name_exists(self) -> None:
        assert plan_changes(files(job("new", "renamed_from: old")), cluster(job("new"))).is_empty

    def test_an_old_name_nobody_knows_is_refused_at_its_place(self) -> None:
        with pytest.raises(InvalidJobFile, match="knows neither old nor new") as refused:
            plan_changes(files(job("new", "renamed_from: old")), cluster(job("other")))
        (problem,) = refused.value.problems
        assert (problem.line, problem.column) == (3, 60)

    def test_another_spelling_of_the_name_is_a_rename(self) -> None:
        (revised,) = plan_changes(files(job("Backup")), cluster(job("backup"))).revised
        assert revised.renamed

    def test_two_jobs_cannot_come_from_one(self) -> None:
        with pytest.raises(InvalidJobFile, match="also what a was"):
            files(job("a", "renamed_from: old"), job("b", "renamed_from: old"))


class TestPruning:
    @pytest.mark.parametrize(("total", "gone"), [(2, 1), (9, 1), (20, 2), (39, 3)])
    def test_up_to_the_larger_of_one_and_a_tenth(self, total: int, gone: int) -> None:
        assert len(self.plan(total, gone).retired) == gone

    @pytest.mark.parametrize(("total", "gone"), [(2, 2), (19, 2), (39, 4)])
    def test_more_is_refused_with_the_limit_to_give(self, total: int, gone: int) -> None:
        with pytest.raises(Refused, match=f"add --prune-limit {gone}"):
            self.plan(total, gone)

    def test_more_is_done_with_a_limit_and_not_beyond_it(self) -> None:
        assert len(self.plan(10, 10, limit=10).retired) == 10
        with pytest.raises(Refused, match="more than the 9 allowed"):
            self.plan(10, 10, limit=9)

    def test_a_limit_of_none_at_all_holds_too(self) -> None:
        with pytest.raises(Refused):
            self.plan(10, 1, limit=0)

    def plan(self, total: int, gone: int, limit: int | None = None) -> ApplyPlan:
        jobs = [job(f"j{number}") for number in range(total)]
        return plan_changes(files(*jobs[gone:]), cluster(*jobs), prune=True, prune_limit=limit)
