"""What the reading commands print of real records, for programs in the contract's form and for people."""

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.settings import load
from storage import schema
from storage.engine import Database
from storage.tables import calls, conversations, inbox, requests, settlements, transcript, turns
from tests.bot.terminal import Command

HERE, ELSEWHERE = "slack:T1:C1:1.1", "slack:T1:C2:2.2"
SETTLE_KEYS = [
    "turn_id",
    "conversation_id",
    "platform",
    "workspace",
    "channel",
    "thread",
    "reason",
    "final_event_id",
    "cut_by",
    "started_at",
    "settled_at",
    "card_released_at",
    "answer_posted_at",
    "card_given_up",
    "answer_given_up",
    "resumes_turn_id",
    "steps",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cost_usd",
    "worker",
]


async def _conversation(tx: AsyncConnection, name: str, at: float) -> None:
    platform, workspace, channel, thread = name.split(":")
    turn = f"turn-{channel}"
    where = {"platform": platform, "workspace": workspace, "channel": channel, "thread": thread}
    await tx.execute(insert(conversations).values(id=name, created_at=at, **where))
    await tx.execute(
        insert(inbox).values(
            conversation_id=name, key=f"{name}:m1", origin=f"{name}:m1", source="mention", author_id="U1",
            role="member", marker="none", addressed="bot", text="why\n\x1b[31mslow?", sent_at=at,
            received_at=at, effect="start", rule="people_idle", fate="read", turn_id=turn,
        )
    )  # fmt: skip
    await tx.execute(
        insert(turns).values(
            id=turn, conversation_id=name, number=1, token=1, worker="w", analysis=turn, goal="why?",
            started_at=at, active_at=at, read_up_to=1, seen=0, steps=2,
        )
    )  # fmt: skip
    await tx.execute(
        insert(transcript).values(
            conversation_id=name, position=1, id=f"event-{channel}", turn_id=turn, role="assistant",
            blocks=[], at=at,
        )
    )  # fmt: skip
    await tx.execute(
        insert(calls).values(
            conversation_id=name, id="call-1", number=1, turn_id=turn, position=1, step=1, tool="probe__logs",
            tool_class="read_only", input={}, state="done", closed=True, attempts=1, limit_s=30, outcome="ok",
        )
    )  # fmt: skip
    await tx.execute(
        insert(requests).values(
            conversation_id=name, turn_id=turn, at=at, model="m", purpose="step", input_tokens=10,
            output_tokens=5, cache_read_tokens=100, cache_write_tokens=0,
            cost_usd=0.25 if name == HERE else None, exact=True,
        )
    )  # fmt: skip
    await tx.execute(
        insert(settlements).values(
            turn_id=turn, conversation_id=name, reason="stopped", cut_by="U2", settled_at=at + 60, worker="w"
        )
    )


@pytest.fixture
def records(tmp_path: Path) -> None:
    """Two conversations, each with one turn that was stopped."""

    async def fill() -> None:
        url = load({}, tmp_path).database_url
        await schema.upgrade(url)
        database = await Database.open(url)
        await database.write(_conversation, HERE, 1_700_000_000.0)
        await database.write(_conversation, ELSEWHERE, 1_700_000_100.0)
        await database.close()

    asyncio.run(fill())


@pytest.mark.usefixtures("records")
def test_settle_records_are_json_lines_with_the_contracts_keys_newest_last(watchkeeper: Command) -> None:
    printed = [json.loads(line) for line in watchkeeper("settles --json").stdout.splitlines()]
    assert [sorted(record) for record in printed] == [sorted(SETTLE_KEYS)] * 2
    assert [record["conversation_id"] for record in printed] == [HERE, ELSEWHERE]
    assert printed[0]["settled_at"].startswith("2023-11-14T22:14:20")
    assert (printed[0]["reason"], printed[0]["cut_by"], printed[0]["cost_usd"]) == ("stopped", "U2", 0.25)
    assert (printed[1]["cost_usd"], printed[1]["final_event_id"]) == (None, None)


@pytest.mark.usefixtures("records")
def test_settle_records_of_one_conversation_leave_the_others_out(watchkeeper: Command) -> None:
    printed = watchkeeper(f"settles --conversation {ELSEWHERE} --json").stdout.splitlines()
    assert [json.loads(line)["conversation_id"] for line in printed] == [ELSEWHERE]
    assert watchkeeper("settles --conversation x").stdout == "no turn of x has ended yet\n"


@pytest.mark.usefixtures("records")
def test_settle_records_for_people_are_a_table(watchkeeper: Command) -> None:
    head, here, elsewhere = watchkeeper("settles").stdout.splitlines()
    assert head.startswith("settled")
    assert here.split()[1:] == ["stopped", HERE, "turn-C1", "2", "1", "110", "5", "$0.2500", "U2", "-"]
    assert "cost unknown" in elsewhere


@pytest.mark.usefixtures("records")
def test_a_conversation_is_shown_as_json_in_the_contracts_form(watchkeeper: Command) -> None:
    shown = json.loads(watchkeeper(f"show {HERE} --json").stdout)
    assert shown["conversation_id"] == HERE
    assert shown["cost_usd"] == 0.25
    assert shown["messages"] == [
        {
            "id": f"{HERE}:m1",
            "source": "mention",
            "role": "member",
            "marker": "none",
            "effect": "start",
            "rule": "people_idle",
            "fate": "read",
            "turn_id": "turn-C1",
            "text": "why\n\x1b[31mslow?",
        }
    ]
    (turn,) = shown["turns"]
    assert (turn["turn_id"], turn["reason"]) == ("turn-C1", "stopped")
    (call,) = turn["steps"][0]["calls"]
    assert sorted(call) == ["attempts", "class", "id", "state", "tool"]
    assert (call["tool"], call["class"], call["attempts"]) == ("probe__logs", "read_only", 1)


@pytest.mark.usefixtures("records")
def test_what_people_wrote_cannot_act_on_the_terminal(watchkeeper: Command) -> None:
    printed = watchkeeper(f"show {HERE}").stdout
    assert "\x1b" not in printed
    assert "slow?" in printed
    assert "probe__logs" in printed
