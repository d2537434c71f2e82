"""The grammar of a stream, event by event; what the test server cannot say stands here."""

from typing import Any

import pytest

from bot.model.stream import Broken, ErrorEvent, Reading
from core.generation import StopReason
from core.history import Call, Opaque, Text

START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5}}}
STOP = {"type": "message_stop"}


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def stop(reason: str | None, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def read(*events: Any) -> Reading:
    reading = Reading()
    for event in events:
        reading.take(event)
    return reading


HELLO = (begin(0, type="text", text="He"), delta(0, "text_delta", text="llo"), end(0))


def test_fragments_are_joined_in_order() -> None:
    message, reason, invalid = read(START, *HELLO, stop("end_turn"), STOP).result()
    assert (message.blocks, reason, invalid) == ((Text("Hello"),), StopReason.END, ())


def test_a_call_without_fragments_has_the_input_it_began_with() -> None:
    block = begin(0, type="tool_use", id="a", name="logs", input={"app": "shop"})
    message, reason, _ = read(START, block, end(0), stop("tool_use")).result()
    assert (message.blocks, reason) == ((Call("a", "logs", {"app": "shop"}),), StopReason.CALLS)


@pytest.mark.parametrize(
    "raw, why",
    [
        ('{"app": "sh', "not valid JSON"),
        ("[1]", "not a JSON object but an array"),
        ('"x"', "but a string"),
        ("null", "but null"),
        ('{"x": NaN}', "NaN is not JSON"),
        ('{"x": 1e999}', "out of range"),
        ('{"x":' + "[" * 100_000, "nested too deep|not valid JSON"),
        ('{"a": 1}{"a": 1}', "not valid JSON"),
    ],
)
def test_an_input_that_is_no_json_object_is_never_run(raw: str, why: str) -> None:
    block = begin(0, type="tool_use", id="a", name="logs", input={})
    fragments = [delta(0, "input_json_delta", partial_json=part) for part in (raw[:3], raw[3:])]
    message, reason, (invalid,) = read(START, block, *fragments, end(0), stop("tool_use")).result()
    assert (message.blocks, reason) == ((Call("a", "logs", {}),), StopReason.CALLS)
    assert invalid.call_id == "a"
    assert any(part in invalid.why for part in why.split("|"))


def test_a_doubled_id_names_the_call_that_is_invalid_and_no_other() -> None:
    events: list[Any] = [START]
    for index, raw in enumerate(['{"n": 1}', "{", '{"n": 3}']):
        events += [begin(index, type="tool_use", id="a", name="logs", input={})]
        events += [delta(index, "input_json_delta", partial_json=raw), end(index)]
    message, _, (invalid,) = read(*events, stop("tool_use")).result()
    assert [dict(call.input) for call in message.calls if call.id == invalid.call_id] == [{}]


def test_at_the_token_limit_the_unfinished_call_was_never_issued() -> None:
    events = (
        START,
        *HELLO,
        begin(1, type="tool_use", id="a", name="logs", input={}),
        delta(1, "input_json_delta", partial_json="{}"),
        end(1),
        begin(2, type="tool_use", id="b", name="logs", input={}),
        delta(2, "input_json_delta", partial_json='{"app'),
    )
    for ending in ((stop("max_tokens"), STOP), (end(2), stop("max_tokens"), STOP)):
        message, reason, invalid = read(*events, *ending).result()
        assert [call.id for call in message.calls] == ["a"]
        assert [(i.call_id, i.why) for i in invalid] == [("a", "cut at the token limit")]
        assert reason is StopReason.LENGTH


def test_unknown_events_and_deltas_are_ignored() -> None:
    odd = ({"type": "weather"}, {"type": "ping"}, delta(0, "mood_delta", mood="calm"))
    message, _, _ = read(START, HELLO[0], *odd, *HELLO[1:], stop("end_turn")).result()
    assert message.text == "Hello"


def test_an_unknown_block_is_kept_whole() -> None:
    block = {"type": "hologram", "shape": [1, 2]}
    message, _, _ = read(START, begin(0, **block), end(0), *_moved(HELLO, 1), stop("end_turn")).result()
    assert message.blocks == (Opaque("anthropic", block), Text("Hello"))


def _moved(events: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return tuple({**event, "index": index} for event in events)


def test_a_servers_call_keeps_its_input() -> None:
    block = begin(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={})
    given = delta(0, "input_json_delta", partial_json='{"query": "x"}')
    (kept,) = read(START, block, given, end(0), stop("pause_turn")).result()[0].blocks
    assert isinstance(kept, Opaque)
    assert kept.data["input"] == {"query": "x"}


def test_thinking_without_its_signature_is_dropped_whole() -> None:
    thought = (begin(0, type="thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"), end(0))
    assert read(START, *thought, *_moved(HELLO, 1), stop("end_turn")).result()[0].blocks == (Text("Hello"),)


def test_halves_of_a_sign_in_two_deltas_are_joined() -> None:
    parts = [delta(0, "text_delta", text=half) for half in ("\ud83d", "\ude00")]
    message, _, _ = read(START, begin(0, type="text", text=""), *parts, end(0), stop("end_turn")).result()
    assert message.text == "😀"


@pytest.mark.parametrize(
    "events",
    [
        (START, *HELLO, START),
        (START, *HELLO, HELLO[0]),
        (START, HELLO[0], HELLO[0]),
        (START, delta(0, "text_delta", text="x")),
        (START, end(0)),
        (START, HELLO[0], delta(0, "text_delta")),
        (START, HELLO[0], delta(0, "text_delta", text=5)),
        ("text",),
        ([],),
        ({},),
        ({"type": "message_start"},),
        (START, begin(0)),
    ],
)
def test_what_breaks_the_grammar_is_a_broken_stream(events: tuple[Any, ...]) -> None:
    with pytest.raises(Broken):
        read(*events)


@pytest.mark.parametrize("count", range(6))
def test_nothing_of_a_stream_without_a_stop_reason_was_said(count: int) -> None:
    reading = read(*(START, *HELLO, stop(None))[:count])
    with pytest.raises(Broken):
        reading.result()


def test_a_block_left_open_is_a_broken_stream() -> None:
    with pytest.raises(Broken):
        read(START, *HELLO[:2], stop("end_turn"), STOP).result()


def test_an_error_event_ends_it() -> None:
    with pytest.raises(ErrorEvent, match="Overloaded"):
        read(START, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def test_later_counts_replace_earlier_ones() -> None:
    reading = read(START, *HELLO, stop("end_turn", output_tokens=7), stop(None, output_tokens=9))
    assert reading.usage == {"input_tokens": 5, "output_tokens": 9}
    assert reading.is_complete


@pytest.mark.parametrize(
    "reason, has_call, told",
    [
        ("end_turn", False, StopReason.END),
        ("end_turn", True, StopReason.CALLS),
        ("tool_use", False, StopReason.END),
        ("stop_sequence", False, StopReason.END),
        ("pause_turn", False, StopReason.PAUSE),
        ("refusal", True, StopReason.REFUSAL),
        ("model_context_window_exceeded", False, StopReason.CONTEXT_FULL),
        ("compaction", False, StopReason.UNKNOWN),
    ],
)
def test_stop_reasons_are_told_in_neutral_words(reason: str, has_call: bool, told: StopReason) -> None:
    call = (begin(1, type="tool_use", id="a", name="logs", input={}), end(1)) if has_call else ()
    _, found, invalid = read(START, *HELLO, *call, stop(reason), STOP).result()
    assert found is told
    assert [i.why for i in invalid] == (["the model declined to go on"] if reason == "refusal" else [])


def test_it_says_what_it_does_and_never_what_it_says() -> None:
    reading = read(START)
    assert reading.doing == "thinking"
    reading.take(HELLO[0])
    assert reading.doing == "writing"
    reading.take(HELLO[2])
    reading.take(begin(1, type="tool_use", id="a", name="logs", input={}))
    assert reading.doing == "preparing a call of logs"
