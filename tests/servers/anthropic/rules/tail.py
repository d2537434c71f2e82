"""How a request may begin and end."""

from collections.abc import Iterator

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.history import text_of
from tests.servers.anthropic.memory import is_thinking
from tests.servers.anthropic.rules.pairing import NO_PREFILL
from tests.servers.anthropic.rules.server_tools import unfinished_server_calls


def the_user_speaks_first(ask: Ask) -> Iterator[Fault]:
    if ask.messages[0]["role"] != "user":
        yield Fault("first_turn", 'messages: first message must use the "user" role')


def only_old_models_take_a_prefill(ask: Ask) -> Iterator[Fault]:
    """A paused message is no prefill: it comes back last and unchanged."""
    if ends_with_assistant(ask) and not ask.prefill and not is_paused(ask):
        yield Fault("prefill", NO_PREFILL)


def a_prefill_needs_thinking_for_its_thoughts(ask: Ask) -> Iterator[Fault]:
    if ends_with_assistant(ask) and ask.thinking == "disabled" and not is_paused(ask):
        for spot in ask.turns[-1].spots:
            if is_thinking(spot.block):
                yield Fault(
                    "thinking_disabled",
                    f"{spot.path}: When thinking is disabled, an `assistant` message in the final "
                    "position cannot contain `thinking`. To use thinking "
                    "blocks, enable `thinking` in your request.",
                )


def a_prefill_has_no_trailing_whitespace(ask: Ask) -> Iterator[Fault]:
    if ends_with_assistant(ask) and not is_paused(ask):
        text = text_of(ask.messages[-1]["content"])
        if text != text.rstrip():
            yield Fault(
                "trailing_whitespace", "messages: final assistant content cannot end with trailing whitespace"
            )


def ends_with_assistant(ask: Ask) -> bool:
    return bool(ask.messages[-1]["role"] == "assistant")


def is_paused(ask: Ask) -> bool:
    content = [spot.block for spot in ask.spots if spot.message == len(ask.messages) - 1]
    if ask.memory.origins(content):
        return ask.memory.paused(content)
    return ask.memory.paused(content) or bool(unfinished_server_calls(ask, len(ask.turns) - 1))
