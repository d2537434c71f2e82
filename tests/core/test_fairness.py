"""People go before automation, and nobody waits for ever."""

from __future__ import annotations

import math

import pytest

from core.arrivals import PEOPLE_SOURCES, Source
from core.fairness import HANDICAP_S


def test_every_source_has_its_place() -> None:
    assert set(HANDICAP_S) == set(Source)


@pytest.mark.parametrize("source", PEOPLE_SOURCES)
@pytest.mark.parametrize("machine", [Source.ALERT, Source.SCHEDULE])
def test_people_go_before_what_a_machine_asked_for_at_the_same_time(source: Source, machine: Source) -> None:
    assert HANDICAP_S[source] < HANDICAP_S[machine]


def test_nobody_waits_for_ever() -> None:
    assert all(math.isfinite(seconds) for seconds in HANDICAP_S.values())
