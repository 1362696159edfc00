from __future__ import annotations

import errno

import pytest

from sexton_worker.core.machine_faults import NO_SPELL, QUIET, is_machine_fault


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_want_of_descriptors_processes_and_memory_is_the_machines(code: int) -> None:
    assert is_machine_fault(OSError(code, "no more"))


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC, errno.E2BIG])
def test_a_command_that_cannot_be_started_anywhere_is_the_jobs(code: int) -> None:
    assert not is_machine_fault(OSError(code, "no such"))
    assert not is_machine_fault(ValueError("embedded null byte"))


def test_each_fault_after_a_pause_doubles_the_next_until_it_was_quiet() -> None:
    now, spell, pauses = 100.0, NO_SPELL, []
    assert spell.remaining(now) == 0
    for _ in range(7):
        spell = spell.after_fault(now)
        assert spell.after_fault(now + 0.5) == spell  # of the same burst
        pauses.append(spell.remaining(now))
        now += spell.remaining(now)
        assert spell.remaining(now) == 0
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert not spell.is_over(now)
    now += QUIET
    assert spell.is_over(now)
    assert spell.after_fault(now).remaining(now) == 1
