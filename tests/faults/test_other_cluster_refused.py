"""Two clusters on one database: a node with another coordinator than the cluster's does not join it."""

from __future__ import annotations

import re

from tests.support.judge import Judge
from tests.support.trial import LONG, Trial


def test_a_node_of_another_cluster_is_refused_and_disturbs_nobody(trial: Trial, judge: Judge) -> None:
    trial.apply()
    trial.start(nodes=1, workers=1)
    own = trial.environment["SEXTON_COORDINATOR"]
    for other in (f"{own}-other", "database:"):
        stranger = trial.processes.sexton(
            "scheduler", "--name", "stranger", env={**trial.environment, "SEXTON_COORDINATOR": other}
        )
        assert stranger.wait(within=LONG) == 1, stranger.report()
        (sentence,) = [line for line in stranger.stderr().splitlines() if line.startswith("sexton: ")]
        assert re.search(rf"{re.escape(own)}(?!-other)", sentence)
        assert other in sentence
    trial.wait_for_runs(5)
    assert trial.leader() == "node-1"
    assert [node.name for node in trial.store.reads.nodes()] == ["node-1"]
    judge.check()
