"""What the reading commands print of real records, for programs in the contract's form and for people."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.settings import load
from storage import schema
from storage.engine import Database
from storage.statements import now
from storage.tables import calls, conversations, inbox, outbox, requests, settlements, transcript, turns
from tests.bot.terminal import Command, refused

LONG = f"{'so ' * 30}slow"
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


def _write(folder: Path, *transactions: Callable[[AsyncConnection], Awaitable[None]]) -> None:
    async def write() -> None:
        url = load({}, folder).database_url
        await schema.upgrade(url)
        database = await Database.open(url)
        for transaction in transactions:
            await database.write(transaction)
        await database.close()

    asyncio.run(write())


@pytest.fixture
def records(tmp_path: Path) -> None:
    """Two conversations, each with one turn that was stopped."""
    _write(
        tmp_path,
        lambda tx: _conversation(tx, HERE, 1_700_000_000.0),
        lambda tx: _conversation(tx, ELSEWHERE, 1_700_000_100.0),
    )


async def _says(tx: AsyncConnection) -> None:
    """Three posts: one was taken, one was given up, one waits."""
    for number, (kind, text, outcome) in enumerate(
        (
            ("chart", f"\n{LONG}\nand more", {"done_at": 1_700_000_070.0, "picture": b"\x89PNG"}),
            ("answer", f"It is the \x1b[31mindex.\n\n    restore it\n{LONG}",
             {"done_at": 1_700_000_071.0, "given_up": "chat.postMessage:\nis_archived"}),
            ("note", "not yet", {}),
        )
    ):  # fmt: skip
        await tx.execute(
            insert(outbox).values(
                id=f"post-{number}", conversation_id=HERE, turn_id="turn-C1", kind=kind,
                once=f"once-{number}", text=text, queued_at=1_700_000_060.0, **outcome,
            )
        )  # fmt: skip


async def _runs(tx: AsyncConnection) -> None:
    """The turn elsewhere runs still, its call since 90 seconds."""
    started_at = await now(tx) - 90
    await tx.execute(delete(settlements).where(settlements.c.turn_id == "turn-C2"))
    await tx.execute(
        update(conversations).where(conversations.c.id == ELSEWHERE).values(active_turn="turn-C2")
    )
    await tx.execute(update(turns).where(turns.c.id == "turn-C2").values(goal=f"{LONG}\x1b[31m"))
    await tx.execute(
        update(calls)
        .where(calls.c.conversation_id == ELSEWHERE)
        .values(state="started", closed=False, outcome=None, started_at=started_at)
    )


async def _wait(tx: AsyncConnection) -> None:
    """The message here was never read."""
    await tx.execute(
        update(inbox).where(inbox.c.conversation_id == HERE).values(fate="waiting", turn_id=None)
    )


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
    assert sorted(call) == ["age_s", "attempts", "class", "id", "state", "tool"]
    assert (call["tool"], call["class"], call["attempts"]) == ("probe__logs", "read_only", 1)


@pytest.mark.usefixtures("records")
def test_what_people_wrote_cannot_act_on_the_terminal(watchkeeper: Command) -> None:
    printed = watchkeeper(f"show {HERE}").stdout
    assert "\x1b" not in printed
    assert "slow?" in printed
    assert "probe__logs" in printed


@pytest.mark.usefixtures("records")
def test_the_newest_settle_records_are_printed_newest_last(watchkeeper: Command) -> None:
    for limit, left in ((1, [ELSEWHERE]), (2, [HERE, ELSEWHERE]), (3, [HERE, ELSEWHERE])):
        printed = watchkeeper(f"settles --limit {limit} --json").stdout.splitlines()
        assert [json.loads(line)["conversation_id"] for line in printed] == left


@pytest.mark.usefixtures("records")
def test_what_was_said_is_told_to_programs_with_what_became_of_it(
    watchkeeper: Command, tmp_path: Path
) -> None:
    _write(tmp_path, _says)
    chart, answer, note = json.loads(watchkeeper(f"show {HERE} --json").stdout)["posts"]
    assert chart == {
        "kind": "chart",
        "turn_id": "turn-C1",
        "text": f"\n{LONG}\nand more",
        "queued_at": "2023-11-14T22:14:20.000Z",
        "posted_at": "2023-11-14T22:14:30.000Z",
        "given_up": None,
    }
    assert (answer["posted_at"], answer["given_up"]) == (None, "chat.postMessage:\nis_archived")
    assert (note["posted_at"], note["given_up"]) == (None, None)


@pytest.mark.usefixtures("records")
def test_what_was_said_is_told_to_people_with_the_whole_of_what_was_never_seen(
    watchkeeper: Command, tmp_path: Path
) -> None:
    _write(tmp_path, _says)
    printed = watchkeeper(f"show {HERE}").stdout
    assert "\x1b" not in printed
    assert re.sub(r"(?<=\S) {2,}", "  ", printed[printed.index("said ") :]).splitlines() == [
        "said  when  text",
        f"chart  2023-11-14T22:14:30.000Z  {LONG[:59]}…",
        "answer  2023-11-14T22:14:20.000Z  GIVEN UP: chat.postMessage: is_archived",
        "    It is the  [31mindex.",
        "",
        "        restore it",
        f"    {LONG}",
        "note  waits since 2023-11-14T22:14:20.000Z  not yet",
    ]


@pytest.mark.usefixtures("records")
def test_where_nothing_was_said_there_is_no_such_part(watchkeeper: Command) -> None:
    assert "said" not in watchkeeper(f"show {HERE}").stdout


@pytest.mark.usefixtures("records")
def test_a_running_turn_is_told_with_its_worker_and_how_long_each_call_has_run(
    watchkeeper: Command, tmp_path: Path
) -> None:
    ended = watchkeeper(f"show {ELSEWHERE}").stdout
    assert "running" not in ended
    _write(tmp_path, _runs)
    assert re.search(
        r"turn-C2 +running since 2023-11-14T22:15:00\.000Z on w +"
        r"1 +probe__logs +read_only +started, 9\d s ago +1",
        watchkeeper(f"show {ELSEWHERE}").stdout,
    )


@pytest.mark.usefixtures("records")
def test_show_alone_lists_what_runs_or_waits(watchkeeper: Command, tmp_path: Path) -> None:
    _write(tmp_path, _runs, _wait)
    printed = [json.loads(line) for line in watchkeeper("show --json").stdout.splitlines()]
    waiting, running = printed
    assert waiting == {
        "conversation_id": HERE,
        "state": "waits for a worker",
        "since": "2023-11-14T22:13:20.000Z",
        "worker": None,
        "goal": "why\n\x1b[31mslow?",
    }
    assert running == {
        "conversation_id": ELSEWHERE,
        "state": "running",
        "since": "2023-11-14T22:15:00.000Z",
        "worker": "w",
        "goal": f"{LONG}\x1b[31m",
    }
    people = [re.split(" {2,}", line) for line in watchkeeper("show").stdout.splitlines()]
    assert people == [
        ["conversation", "state", "since", "worker", "goal"],
        [HERE, "waits for a worker", "2023-11-14T22:13:20.000Z", "-", "why", "[31mslow?"],
        [ELSEWHERE, "running", "2023-11-14T22:15:00.000Z", "w", f"{LONG[:59]}…"],
    ]


@pytest.mark.usefixtures("records")
def test_show_alone_says_that_nothing_runs_or_waits(watchkeeper: Command) -> None:
    for line, words in (("show", "nothing runs or waits\n"), ("show --json", "")):
        ran = watchkeeper(line)
        assert (ran.returncode, ran.stdout) == (0, words)


@pytest.mark.usefixtures("records")
def test_whoever_asks_for_an_unknown_conversation_is_told_where_the_known_ones_are(
    watchkeeper: Command,
) -> None:
    told = refused(watchkeeper("show nope"), 1)
    assert "there is no conversation nope" in told
    assert "`watchkeeper show`" in told
    assert "`watchkeeper settles`" in told
