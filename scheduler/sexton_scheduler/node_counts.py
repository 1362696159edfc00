"""What a node has done since its process began: numbers that its threads leave, for whoever reads them.

Each number has one thread that writes it. Counting is by commit, not by tick, and costs next to nothing.
"""

from __future__ import annotations

from sexton.decisions import CommitResult
from sexton.distributions import Distribution
from sexton_scheduler.core.planner import Draft

COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
PARTS = ("loop", "heartbeat", "housekeeping", "figures")  # the threads that ask the database


class NodeCounts:
    """``errors``: by part, calls that the database did not answer. ``attempts``: cursors that were to be moved, and
    ``conflicts``, those of them that others had moved or locked; ``claims`` and ``ticks``: written and decided by those
    that moved. ``swallowed``: claims that were there already though no cursor accounts for them. ``refused``: how often
    the database said that this node's term was over. ``turned_at``: when the loop came round last, in elapsed seconds.
    """

    def __init__(self) -> None:
        self.turned_at: float | None = None
        self.is_reached = False  # the database, by the loop's last turn
        self.errors = dict.fromkeys(PARTS, 0)
        self.terms_taken = 0
        self.commits = Distribution(COMMIT_SECONDS)  # seconds from the draft's end to the database's answer
        self.grown_old = 0  # commits of which nothing was written, for they came too late
        self.attempts = 0
        self.conflicts = 0
        self.claims = 0
        self.ticks = 0
        self.swallowed = 0
        self.refused = 0
        self.leases_expired = 0

    def turned(self, at: float, *, reached: bool) -> None:
        """The loop came round."""
        self.turned_at = at
        self.is_reached = reached

    def missed(self, part: str) -> None:
        """The database did not answer."""
        self.errors[part] += 1

    def committed(self, draft: Draft, result: CommitResult, seconds: float) -> None:
        """A commit was answered."""
        self.commits.add(seconds)
        if not (result.is_current and result.is_fresh):
            self.grown_old += not result.is_fresh
            return
        cost, lost = draft.counted(result), set(result.not_moved)
        self.attempts += cost.attempts
        self.conflicts += cost.conflicts
        self.ticks += cost.ticks
        self.claims += sum(len(p.claims) + len(p.paced) for p in draft.plans if p.job.job_id not in lost)
        self.swallowed += result.swallowed
