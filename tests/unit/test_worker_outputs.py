from __future__ import annotations

import fcntl
import os

from sexton_worker.targets.outputs import Outputs

LARGE = 1 << 20


def test_drain_takes_all_that_lies_in_a_pipe_and_waits_for_nobody_who_holds_it() -> None:
    (stdout, writer), (stderr, other) = os.pipe(), os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, LARGE)
    os.set_blocking(writer, False)
    assert os.write(writer, b"x" * LARGE) == LARGE
    outputs = Outputs(stdout, stderr)
    outputs.drain()
    assert (outputs.stdout.total, outputs.stderr.total) == (LARGE, 0)
    assert not outputs.has_ended
    os.close(other)
    assert not outputs.read(stderr)
    assert outputs.has_ended
    assert outputs.descriptors() == (stdout,)
    outputs.fresh_tails()
    assert outputs.stdout.total == 0
    outputs.close()
    os.close(writer)
