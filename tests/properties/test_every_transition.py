"""Schedules of every kind around changes of clocks, against a walk through each second.

A sample, the same each time; `make schedules-soak` tries all changes that all zones have from 1990 to 2040."""

from random import Random

import pytest

from tests.support.transition_trials import changes_of, differences, zone_of, zones_with_data_of_their_own

ODD_ZONES = [
    "Africa/Casablanca",  # four changes a year
    "America/Havana",  # midnight is jumped over
    "America/Scoresbysund",  # 23:00 is, and the next day begins
    "Antarctica/Casey",  # three hours
    "Antarctica/Troll",  # two hours
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",  # half an hour
    "Europe/Dublin",  # negative summer time
    "Pacific/Apia",  # a day that never was
    "Pacific/Kwajalein",
]
CHANGES_PER_ZONE, SCHEDULES_PER_CHANGE = 2, 2


@pytest.mark.parametrize("name", ODD_ZONES)
def test_every_question_is_answered_as_the_clock_on_the_wall_does(name: str) -> None:
    draw = Random(f"transitions of {name}")
    zone = zone_of(name)
    changes = changes_of(zone)
    for change in draw.sample(changes, min(CHANGES_PER_ZONE, len(changes))):
        assert list(differences(draw, name, zone, change, SCHEDULES_PER_CHANGE)) == []


def test_so_it_is_in_zones_picked_at_random() -> None:
    draw = Random("zones at random")
    zones = zones_with_data_of_their_own()
    assert len(zones) > 300
    tried = 0
    for name in draw.sample(sorted(zones), 14):
        changes = changes_of(zones[name])
        if changes:
            tried += 1
            assert list(differences(draw, name, zones[name], draw.choice(changes), SCHEDULES_PER_CHANGE)) == []
    assert tried > 7
