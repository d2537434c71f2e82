"""Every call comes back as a result that says what is known and no more, whatever the tool does."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence

import pytest

from bot.ports import ToolCall, Tools
from bot.tools.provider import CallContext, MayGoOn, ToolOutput
from bot.tools.registry import ToolBox
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Chart, Outcome, ToolClass, ToolOverride, ToolSpec

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "how": {"type": "string"},
        "level": {"enum": ["low", "high"]},
        "count": {"type": "integer"},
    },
    "required": ["how"],
}


class Zoo:
    """Three tools of the three classes; what a call does is said in its input."""

    name = "zoo"

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def start(self) -> None:
        """Nothing to connect."""

    async def ready(self, deadline: float) -> str | None:
        """Always there."""
        return None

    def specs(self) -> Sequence[ToolSpec]:
        """Names say the class."""
        return [
            ToolSpec("look", "Looks.", SCHEMA, ToolClass.READ_ONLY, interruptible=True, timeout_s=0.3),
            ToolSpec("flag", "Sets.", SCHEMA, ToolClass.IDEMPOTENT, timeout_s=0.3),
            ToolSpec("push", "Pushes.", SCHEMA, ToolClass.SIDE_EFFECT, timeout_s=0.3),
        ]

    async def execute(self, tool: str, arguments: dict[str, Json], context: CallContext) -> ToolOutput:
        """Behave as asked."""
        self.seen.append(context.call_id)
        context.progress("half of it")
        match arguments["how"]:
            case "raise":
                raise ValueError("first line\nsecond \x1b[31mline password=hunter2")
            case "wait":
                await asyncio.sleep(60)
            case "short":
                await asyncio.sleep(0.15)
            case "silent":
                await stopped_silently()
            case "deaf":
                await deaf()
            case "answer":
                return await answered_when_stopped()
            case "secret":
                chart = Chart("password=hunter2", b"\x89PNG")
                return ToolOutput("a\x00b password=hunter2", query="token=abcdefgh1", charts=(chart,))
        return ToolOutput("done", is_error=arguments["how"] == "error", query="q", time_range="r")

    async def close(self) -> None:
        """Nothing to give back."""


async def stopped_silently() -> None:
    """A tool that was asked to stop and cannot tell whether it did."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise MayGoOn("zoo") from None


async def deaf() -> None:
    """A tool that goes on for a while, whatever is asked."""
    end = asyncio.get_running_loop().time() + 0.5
    while (left := end - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue


async def answered_when_stopped() -> ToolOutput:
    """A tool that gives what it has when it is asked to stop."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return ToolOutput("two of three pages")
    return ToolOutput("all")


@pytest.fixture
async def box() -> AsyncIterator[ToolBox]:
    """The zoo in a tool box whose grace is short."""
    found = ToolBox([Zoo()], Redactor([]), grace_s=0.2)
    await found.start()
    yield found
    await found.close()


async def run(box: Tools, tool: str, how: str, hurry_after: float | None = None, **more: Json) -> CallResult:
    """One call; the turn is in a hurry after so many seconds."""
    hurry = asyncio.Event()
    if hurry_after is not None:
        asyncio.get_running_loop().call_later(hurry_after, hurry.set)
    return await box.run(ToolCall("call_1", tool, {"how": how, **more}), hurry)


async def test_a_result_carries_text_query_and_range(box: ToolBox) -> None:
    assert await run(box, "look", "well") == CallResult(Outcome.OK, "done", "q", "r")


async def test_a_tools_own_error_is_an_error(box: ToolBox) -> None:
    result = await run(box, "look", "error")
    assert (result.outcome, result.text, result.is_error) == (Outcome.ERROR, "done", True)


async def test_an_exception_is_one_line_without_a_traceback_or_a_secret(box: ToolBox) -> None:
    result = await run(box, "look", "raise")
    assert result.outcome is Outcome.ERROR
    assert result.text == "look failed: ValueError: first line second line password=[redacted:password]"


async def test_everything_that_comes_out_is_redacted_and_clean(box: ToolBox) -> None:
    result = await run(box, "look", "secret")
    assert result.text == "ab password=[redacted:password]"
    assert result.query == "token=[redacted:secret]"
    assert result.charts[0].title == "password=[redacted:password]"


async def test_an_unknown_tool_names_the_nearest(box: ToolBox) -> None:
    result = await run(box, "loook", "well")
    assert (result.outcome, result.text) == (Outcome.ERROR, "there is no tool 'loook'; did you mean look?")
    assert "there are: look, flag, push" in (await run(box, "zzzzzz", "well")).text


async def test_an_input_that_does_not_fit_says_what_would_be_right(box: ToolBox) -> None:
    result = await run(box, "push", "well", level="middle", count="3")
    assert result.outcome is Outcome.ERROR
    assert "push was not called: " in result.text
    assert "level: 'middle' is not one of ['low', 'high']" in result.text
    assert "count: '3' is not of type 'integer'" in result.text
    assert 'It takes: how (string, required), level (one of "low", "high"), count (integer).' in result.text


@pytest.mark.parametrize("value", ["\ud800", float("nan")])
async def test_an_input_that_cannot_be_sent_is_refused(box: ToolBox, value: Json) -> None:
    assert "cannot be sent as JSON" in (await run(box, "look", "well", more=value)).text


async def test_a_hurry_stops_a_tool_that_only_reads(box: ToolBox) -> None:
    began = time.monotonic()
    result = await run(box, "look", "wait", hurry_after=0.05)
    assert result.outcome is Outcome.STOPPED
    assert re.fullmatch(r"stopped after 0\.\d s\nWhat it had so far:\nhalf of it", result.text)
    assert time.monotonic() - began < 0.25


async def test_what_it_answers_when_it_is_stopped_is_what_it_had_so_far(box: ToolBox) -> None:
    result = await run(box, "look", "answer", hurry_after=0.05)
    assert result.outcome is Outcome.STOPPED
    assert result.text.endswith("What it had so far:\nhalf of it\ntwo of three pages")


@pytest.mark.parametrize("how", ["silent", "deaf"])
async def test_a_tool_that_does_not_confirm_may_have_gone_on(box: ToolBox, how: str) -> None:
    result = await run(box, "look", how, hurry_after=0.05)
    assert result.outcome is Outcome.ASKED_TO_STOP
    assert re.match(r"asked to stop after 0\.\d s, may have gone on\nWhat it had so far:\nhalf", result.text)


@pytest.mark.parametrize("tool", ["flag", "push"])
async def test_a_hurry_leaves_tools_that_write_alone(box: ToolBox, tool: str) -> None:
    assert (await run(box, tool, "short", hurry_after=0.02)).outcome is Outcome.OK


async def test_a_call_that_a_hurry_precedes_is_not_sent(box: ToolBox) -> None:
    hurry = asyncio.Event()
    hurry.set()
    result = await box.run(ToolCall("call_1", "look", {"how": "well"}), hurry)
    assert result.outcome is Outcome.NOT_EXECUTED
    assert (await box.run(ToolCall("call_2", "push", {"how": "well"}), hurry)).outcome is Outcome.OK


@pytest.mark.parametrize("how", ["wait", "silent", "deaf", "answer"])
@pytest.mark.parametrize("tool", ["look", "push"])
async def test_the_time_limit_holds_for_every_tool_and_every_behaviour(
    box: ToolBox, tool: str, how: str
) -> None:
    began = time.monotonic()
    result = await run(box, tool, how)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.text.startswith(
        "no answer within 0.3 s, may still be running\nWhat it had so far:\nhalf of it"
    )
    assert time.monotonic() - began < 0.8


async def test_the_death_of_the_turn_ends_the_call(box: ToolBox) -> None:
    task = asyncio.create_task(run(box, "push", "wait"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("tool ")]


async def test_overrides_change_class_limits_and_size() -> None:
    overrides = {
        "look": ToolOverride(timeout_s=0.05, max_bytes=300),
        "push": ToolOverride(tool_class=ToolClass.READ_ONLY, interruptible=True),
        "flag": ToolOverride(interruptible=True, timeout_s=9),
    }
    box = ToolBox([Zoo()], Redactor([]), overrides, grace_s=0.1)
    look, flag, push = box.specs()
    assert (look.timeout_s, look.max_bytes) == (0.05, 300)
    assert (push.tool_class, push.interruptible) == (ToolClass.READ_ONLY, True)
    assert (flag.interruptible, flag.timeout_s) == (False, 9)
    assert (await run(box, "look", "wait")).text.startswith("no answer within 0.05 s")
    assert (await run(box, "push", "wait", hurry_after=0.05)).outcome is Outcome.STOPPED
    await box.close()


async def test_of_two_tools_of_one_name_the_first_stays() -> None:
    first, second = Zoo(), Zoo()
    box = ToolBox([first, second], Redactor([]))
    assert len(box.specs()) == 3
    await run(box, "look", "well")
    assert (first.seen, second.seen) == (["call_1"], [])
