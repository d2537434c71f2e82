"""A scripted demo investigator: `python -m tests.servers.anthropic --port 4010`.

It is no model. Once in each conversation it asks for the first few declared tools in parallel, then it
answers with a text that quotes the results. Point ANTHROPIC_BASE_URL at it; any key will do.
"""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from tests.servers.anthropic.blocks import call
from tests.servers.anthropic.model_request import ModelRequest
from tests.servers.anthropic.reply import Reply, reply
from tests.servers.anthropic.server import AnthropicServer

FEW = 3
SHOWN = 200


def investigate(request: ModelRequest) -> Reply:
    said = request.user_texts()
    question = said[-1] if said else "nothing"
    tools = [tool for tool in request.body.get("tools") or [] if tool.get("input_schema")][:FEW]
    if tools and not request.tool_results():
        calls = [call(str(tool["name"]), made_up(tool["input_schema"], question)) for tool in tools]
        return paced(reply("(scripted) I will look in a few places at once.", *calls))
    return paced(reply(conclusion(request, question)))


def conclusion(request: ModelRequest, question: str) -> str:
    names = request.calls()
    found = [
        f"• {names.get(call_id, call_id)}{' failed' if result.is_error else ''}: {result.text[:SHOWN]}"
        for call_id, result in request.tool_results().items()
    ]
    return "\n".join(
        [f"(scripted) You said: {question[:SHOWN]}", "What the tools gave:", *(found or ["• nothing"])]
    )


def paced(answer: Reply) -> Reply:
    return answer.chunked(12).paced(0.03)


def made_up(schema: Mapping[str, Any], question: str) -> dict[str, Any]:
    """An input that fits simple schemas: the required properties, with plain values."""
    properties = schema.get("properties") or {}
    return {name: value_for(properties.get(name) or {}, question) for name in schema.get("required") or []}


def value_for(schema: Mapping[str, Any], question: str) -> Any:
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "array":
            return [value_for(schema.get("items") or {}, question)]
        case "object":
            return made_up(schema, question)
        case _:
            return question[: schema.get("maxLength", SHOWN)] or "checkout"


async def serve(port: int) -> None:
    model = AnthropicServer()
    model.reply_with(investigate)
    await model.start(port)
    print(f"scripted investigator on {model.url}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await model.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    try:
        asyncio.run(serve(parser.parse_args().port))
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
