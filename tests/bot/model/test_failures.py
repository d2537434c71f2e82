"""When the provider wants to be asked again, and how a failure is put into one line."""

import time
from email.utils import formatdate

import pytest

from bot.model.failures import failure_of, is_temporary, one_line, retry_after_s


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_the_time_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_a_date_to_come_back_at_is_read() -> None:
    told = retry_after_s({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert told is not None
    assert 50 < told <= 60


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529, 599])
def test_these_are_worth_another_try(status: int) -> None:
    assert is_temporary(status)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_these_are_not(status: int) -> None:
    assert not is_temporary(status)


def test_a_fault_of_ours_is_told_and_not_repeated() -> None:
    failure = failure_of(RuntimeError("a\nb" + "c" * 900), model="m", idle_timeout_s=60)
    assert failure.temporary is False
    assert failure.cause.startswith("the model request failed: RuntimeError: a bc")
    assert len(failure.cause) <= 240


def test_a_line_has_no_breaks() -> None:
    assert one_line(" a\n\tb ") == "a b"
