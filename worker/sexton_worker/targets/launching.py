"""The start of a process: own session, both outputs on pipes, nothing left over if it fails."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from sexton_worker.targets.outputs import Outputs
from sexton_worker.targets.process_group import ProcessGroup


def launch(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: str | None = None,
    stdin: int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> tuple[ProcessGroup, Outputs]:
    """Start ``argv`` as the leader of a session and group of its own. Raises OSError or ValueError, as Popen does."""
    stdout, stdout_end = os.pipe()
    stderr, stderr_end = os.pipe()
    leader: subprocess.Popen[bytes] | None = None
    try:
        leader = subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout_end,
            stderr=stderr_end,
            cwd=cwd,
            env=dict(environment),
            pass_fds=pass_fds,
            start_new_session=True,
        )
        return ProcessGroup(leader), Outputs(stdout, stderr)
    except BaseException:
        os.close(stdout)
        os.close(stderr)
        if leader is not None:
            leader.kill()
            leader.wait()
        raise
    finally:
        os.close(stdout_end)
        os.close(stderr_end)
