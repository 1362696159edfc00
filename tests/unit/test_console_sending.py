from __future__ import annotations

from typing import Any, cast

import pytest

from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import Store
from sexton_tui.console.acts import Done
from sexton_tui.console.acts.sending import Sending


class Answering:
    """A store that answers, or does not."""

    def __init__(self, answers: bool) -> None:
        self._answers = answers
        self.pauses = self

    def pause_of_all(self) -> None:
        if not self._answers:
            raise DatabaseUnreachable("connection refused")


def sending(begun: list[Any]) -> Sending:
    def act(store: Store) -> Done:
        begun.append(store)
        return Done("done")

    return Sending(act)


def test_an_act_is_begun_once_the_database_answered_or_given_up_and_never_both() -> None:
    begun: list[Any] = []
    refused = sending(begun)
    with pytest.raises(DatabaseUnreachable):
        refused(cast("Store", Answering(False)))
    assert refused.give_up()
    late = sending(begun)
    assert late.give_up()
    with pytest.raises(TimeoutError):
        late(cast("Store", Answering(True)))
    assert begun == []
    done = sending(begun)
    assert done(cast("Store", Answering(True))).sentence == "done"
    assert (len(begun), done.give_up()) == (1, False)
