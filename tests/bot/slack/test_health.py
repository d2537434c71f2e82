"""Whether Slack takes calls from us is told by what became of the last ones."""

from __future__ import annotations

import asyncio

import pytest

from bot.errors import Closed, OutcomeUnknown, Rejected, Temporary, Unreachable
from bot.slack.chat import SlackChat
from bot.slack.connect import Connection
from bot.slack.health import AWAY_AFTER, Health
from core.arrivals import Thread
from tests.servers.slack import SlackServer


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


REVOKED = Rejected("chat.update: token_revoked", "token_revoked")


def test_at_first_nothing_is_wrong() -> None:
    assert Health().reason == ""


def test_a_rejected_token_is_named_with_its_mend_until_slack_takes_a_call() -> None:
    health = Health()
    health.failed("chat.update", REVOKED)
    assert "SLACK_BOT_TOKEN (token_revoked)" in health.reason
    assert "restart" in health.reason
    health.worked("auth.test")
    assert health.reason == ""


def test_while_the_token_is_rejected_one_call_finds_out_and_the_others_are_refused_here() -> None:
    health = Health(clock := Clock())
    health.failed("chat.update", REVOKED)
    with pytest.raises(Rejected):
        health.ask()
    clock.now += 1.01
    health.ask()
    with pytest.raises(Rejected):
        health.ask()


def test_it_is_found_out_ever_more_rarely_but_never_never() -> None:
    health, asked = Health(clock := Clock()), 0
    health.failed("chat.update", REVOKED)
    while clock.now < 600:
        clock.now += 0.5
        try:
            health.ask()
        except Rejected:
            continue
        asked += 1
        health.failed("chat.update", REVOKED)
    assert 20 <= asked <= 30


def test_a_refusal_of_a_place_says_that_the_token_works() -> None:
    health = Health()
    health.failed("chat.update", REVOKED)
    health.failed("chat.update", Closed("chat.update: is_inactive", "is_inactive"))
    assert health.reason == ""


def test_slack_is_out_of_reach_after_some_lost_calls_in_a_row() -> None:
    health = Health()
    for _ in range(AWAY_AFTER - 1):
        health.failed("chat.update", Unreachable("chat.update: HTTP 503"))
    assert health.reason == ""
    health.failed("chat.postMessage", OutcomeUnknown("chat.postMessage: no answer in time"))
    assert health.reason == "Slack is out of reach: chat.postMessage: no answer in time"
    health.failed("chat.update", Temporary("chat.update: ratelimited", 1.0))
    assert health.reason == ""


def test_a_missing_right_is_named_until_that_method_works_and_stops_no_other() -> None:
    health = Health()
    health.failed("chat.update", Rejected("chat.update: missing_scope (chat:write)", "missing_scope"))
    health.worked("users.info")
    health.ask()
    assert health.reason.startswith("chat.update: missing_scope (chat:write): add the scope")
    health.worked("chat.update")
    assert health.reason == ""


async def test_many_that_wait_do_not_call_a_dead_installation_again_and_again(
    slack: SlackServer, chat: SlackChat, thread: Thread
) -> None:
    slack.revoke()
    for _ in range(10):
        with pytest.raises(Rejected):
            await chat.find(thread, 0)
    assert len(slack.calls_of("conversations.replies")) == 1


async def test_it_is_found_out_that_slack_takes_calls_again_though_nothing_is_to_be_said(
    slack: SlackServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connection.connect()
    slack.fail("users.info", "token_revoked")
    with pytest.raises(Rejected):
        await connection.api.call("users.info", user="U0ANA00001")
    assert connection.api.health.reason
    monkeypatch.setattr("bot.slack.connect.ASK_EVERY_S", 0.3)
    asking = asyncio.create_task(connection.keep_asking())
    await slack.wait_for(lambda _: not connection.api.health.reason, timeout=5)
    asking.cancel()
