"""Tries come ever more rarely, up to a limit, and never all at once."""

from __future__ import annotations

import pytest

from bot.errors import Closed, OutcomeUnknown, Rejected, Temporary, Unreachable
from bot.flow.pauses import FIRST_PAUSE_S, LONGEST_PAUSE_S, SPREAD, Outage, is_outage, pause_s


@pytest.mark.parametrize("tries, middle_s", [(0, 0.5), (1, 1.0), (3, 4.0), (6, 30.0), (1_000_000, 30.0)])
def test_the_pause_doubles_up_to_a_limit(tries: int, middle_s: float) -> None:
    pauses = [pause_s(tries) for _ in range(200)]
    assert min(pauses) >= middle_s * (1 - SPREAD)
    assert max(pauses) <= middle_s * (1 + SPREAD)
    assert len(set(pauses)) > 100


def test_the_time_that_the_platform_asked_for_is_kept() -> None:
    assert pause_s(0, Temporary("busy", 7.0)) == 7.0
    assert pause_s(50, Temporary("busy", 7.0)) == 7.0


def test_a_platform_that_asks_for_no_time_at_all_is_not_stormed() -> None:
    assert pause_s(0, Temporary("busy", 0.0)) >= FIRST_PAUSE_S * (1 - SPREAD)
    assert pause_s(10, Temporary("busy", 0.0)) >= LONGEST_PAUSE_S * (1 - SPREAD)


@pytest.mark.parametrize(
    "error, shared",
    [
        (Unreachable("HTTP 503"), True),
        (OutcomeUnknown("no answer in time"), True),
        (Rejected("token_revoked", "token_revoked"), True),
        (Temporary("ratelimited", 1.0), False),
        (Closed("is_archived", "is_archived"), False),
        (ValueError(), False),
    ],
)
def test_an_outage_is_what_others_that_wait_have_too(error: Exception, shared: bool) -> None:
    assert is_outage(error) is shared


def test_an_outage_is_over_once() -> None:
    outage = Outage()
    assert not outage.is_over()
    outage.met(Unreachable("HTTP 503"))
    outage.met(Closed("is_archived", "is_archived"))
    assert outage.is_over()
    assert not outage.is_over()
