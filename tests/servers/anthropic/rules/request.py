"""The shape of a request, apart from its history."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.models import card_of
from tests.servers.anthropic.tokens import tokens_in

MIN_BUDGET = 1024
COUNT_KEYS = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "cache_control", "output_config"}
    | {"speed", "user_profile_id", "workspace_id"}
)
KEYS = COUNT_KEYS | frozenset(
    {"max_tokens", "stream", "stop_sequences", "temperature", "top_k", "top_p", "metadata", "service_tier"}
    | {"container", "diagnostics", "inference_geo"}
)
BETA_KEYS = frozenset(["context_management", "mcp_servers", "output_format", "fallbacks", "betas"])


def only_known_keys(ask: Ask) -> Iterator[Fault]:
    known = (COUNT_KEYS if ask.counting else KEYS) | (BETA_KEYS if ask.beta else frozenset())
    for key in ask.body:
        if key not in known:
            yield Fault("unknown_key", f"{key}: Extra inputs are not permitted")


def the_model_is_named(ask: Ask) -> Iterator[Fault]:
    model = ask.body.get("model")
    if model is None:
        yield Fault("model", "model: Field required")
    elif not isinstance(model, str) or not model:
        yield Fault("model", "model: Input should be a valid string")
    elif card_of(model) is None:
        yield Fault("unknown_model", f"model: {model}", status=404, error="not_found_error")


def max_tokens_is_positive(ask: Ask) -> Iterator[Fault]:
    wanted = ask.body.get("max_tokens")
    if ask.counting:
        return
    if wanted is None:
        yield Fault("max_tokens", "max_tokens: Field required")
    elif not is_integer(wanted):
        yield Fault("max_tokens", "max_tokens: Input should be a valid integer")
    elif wanted < 1:
        yield Fault("max_tokens", "max_tokens: Input should be greater than or equal to 1")


def messages_are_messages(ask: Ask) -> Iterator[Fault]:
    messages = ask.body.get("messages")
    if messages is None:
        yield Fault("messages", "messages: Field required")
    elif not isinstance(messages, list):
        yield Fault("messages", "messages: Input should be a valid list")
    elif not messages:
        yield Fault("messages", "messages: at least one message is required")
    else:
        for number, message in enumerate(messages):
            yield from faults_of_message(f"messages.{number}", message)


def faults_of_message(path: str, message: Any) -> Iterator[Fault]:
    if not isinstance(message, Mapping):
        yield Fault("messages", f"{path}: Input should be an object")
        return
    if message.get("role") not in ("user", "assistant"):
        yield Fault("messages", f"{path}.role: Input should be 'user' or 'assistant'")
    for key in message.keys() - {"role", "content"}:
        yield Fault("extra_field", f"{path}.{key}: Extra inputs are not permitted")
    content = message.get("content")
    if "content" not in message:
        yield Fault("messages", f"{path}.content: Field required")
    elif not isinstance(content, str | list):
        yield Fault("messages", f"{path}.content: Input should be a valid list")
    elif isinstance(content, list):
        for index, block in enumerate(content):
            if not isinstance(block, Mapping):
                yield Fault("messages", f"{path}.content.{index}: Input should be an object")
            elif not isinstance(block.get("type"), str):
                yield Fault("messages", f"{path}.content.{index}.type: Field required")


def the_system_prompt_is_text(ask: Ask) -> Iterator[Fault]:
    system = ask.body.get("system", "")
    if isinstance(system, str):
        return
    if not isinstance(system, list):
        yield Fault("system", "system: Input should be a valid list")
        return
    for number, block in enumerate(system):
        if not isinstance(block, Mapping) or block.get("type") != "text":
            yield Fault("system", f"system.{number}.type: Input should be 'text'")
        elif not isinstance(block.get("text"), str):
            yield Fault("system", f"system.{number}.text: Field required")


def sampling_is_in_range(ask: Ask) -> Iterator[Fault]:
    for key in ("temperature", "top_p"):
        value = ask.body.get(key)
        if value is not None and not (is_number(value) and 0 <= value <= 1):
            yield Fault("sampling", f"{key}: Input should be less than or equal to 1")
    stops = ask.body.get("stop_sequences", [])
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        yield Fault("sampling", "stop_sequences: Input should be a valid list")


def stream_is_a_flag(ask: Ask) -> Iterator[Fault]:
    if not isinstance(ask.body.get("stream", False), bool):
        yield Fault("stream", "stream: Input should be a valid boolean")
    if not isinstance(ask.body.get("thinking", {}), Mapping):
        yield Fault("thinking", "thinking: Input should be an object")


def thinking_is_of_a_kind_the_model_takes(ask: Ask) -> Iterator[Fault]:
    kind = ask.thinking
    if kind == "disabled" or kind in ask.card.thinking:
        return
    if kind == "enabled":
        words = (
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" '
            'and "output_config.effort" to control thinking behavior.'
        )
    elif kind == "adaptive":
        words = "adaptive thinking is not supported on this model"
    else:
        words = f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags"
    yield Fault("thinking", words)


def the_thinking_budget_fits(ask: Ask) -> Iterator[Fault]:
    if ask.thinking != "enabled":
        return
    budget = ask.body["thinking"].get("budget_tokens")
    if budget is None:
        yield Fault("thinking", "thinking.enabled.budget_tokens: Field required")
    elif not is_integer(budget) or budget < MIN_BUDGET:
        words = f"Input should be greater than or equal to {MIN_BUDGET}"
        yield Fault("thinking", f"thinking.enabled.budget_tokens: {words}")
    elif not ask.counting and ask.body["max_tokens"] <= budget:
        yield Fault("thinking", "`max_tokens` must be greater than `thinking.budget_tokens`.")


def sampling_fits_the_model(ask: Ask) -> Iterator[Fault]:
    """Models after 4.6 take no sampling parameters but a temperature of 1; so does thinking."""
    temperature = ask.body.get("temperature", 1)
    if not ask.card.sampling:
        refused = [key for key in ("top_p", "top_k") if ask.body.get(key) is not None]
        for key in (["temperature"] if temperature != 1 else []) + refused:
            yield Fault("sampling", f"`{key}` is deprecated for this model.")
    elif ask.thinking != "disabled" and temperature != 1:
        words = "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."
        yield Fault("sampling", words)


def the_output_fits_the_model(ask: Ask) -> Iterator[Fault]:
    if not ask.counting and ask.body["max_tokens"] > ask.card.max_output:
        yield Fault(
            "max_tokens",
            f"max_tokens: {ask.body['max_tokens']} > {ask.card.max_output}, "
            f"which is the maximum allowed number of output tokens for {ask.body['model']}",
        )


def the_prompt_fits_the_window(ask: Ask) -> Iterator[Fault]:
    window = ask.context.max_tokens_window or ask.card.window
    tokens = ask.context.tokens
    if tokens is None:
        tokens = sum(tokens_in(ask.body.get(key)) for key in ("tools", "system", "messages"))
    if tokens > window:
        yield Fault("over_long", f"prompt is too long: {tokens} tokens > {window} maximum")


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
