"""Every call of the Web API that was sent is counted once, as what became of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.errors import Permanent, Temporary
from bot.measures import SLACK_OUTCOMES
from bot.slack.api import OUTCOMES, SlackApi
from bot.slack.connect import Connection
from tests.servers.slack import SlackServer


@pytest.fixture
def counted(connection: Connection) -> list[tuple[str, str]]:
    counted: list[tuple[str, str]] = []
    connection.api.called = lambda method, outcome: counted.append((method, outcome))
    return counted


async def post(api: SlackApi) -> None:
    await api.call("chat.postMessage", channel="C0INC00001", text="hello")


async def test_a_call_that_slack_took_is_counted_so(
    connection: Connection, counted: list[tuple[str, str]]
) -> None:
    await post(connection.api)
    assert counted == [("chat.postMessage", "ok")]


@pytest.mark.parametrize(
    "goes_wrong, outcome",
    [
        (lambda slack: slack.rate_limit("chat.postMessage", retry_after=30), "rate_limited"),
        (lambda slack: slack.fail("chat.postMessage", "service_unavailable"), "unavailable"),
        (lambda slack: slack.lose_reply("chat.postMessage"), "unknown"),
        (lambda slack: slack.fail("chat.postMessage", "channel_not_found"), "refused"),
        (lambda slack: slack.fail("chat.postMessage", "token_revoked"), "rejected"),
    ],
)
async def test_a_call_that_failed_is_counted_by_what_it_means(
    slack: SlackServer,
    connection: Connection,
    counted: list[tuple[str, str]],
    goes_wrong: Callable[[SlackServer], object],
    outcome: str,
) -> None:
    goes_wrong(slack)
    with pytest.raises((Temporary, Permanent)):
        await post(connection.api)
    assert counted == [("chat.postMessage", outcome)]


async def test_a_call_that_was_not_sent_is_not_counted(
    slack: SlackServer, connection: Connection, counted: list[tuple[str, str]]
) -> None:
    slack.rate_limit("chat.postMessage", retry_after=30)
    for _ in range(2):
        with pytest.raises(Temporary):
            await connection.api.send("chat.postMessage", channel="C0INC00001", text="hello")
    assert len(counted) == 1


def test_every_outcome_has_its_series_from_the_start() -> None:
    assert {outcome for _, outcome in OUTCOMES} | {"ok"} == set(SLACK_OUTCOMES)
