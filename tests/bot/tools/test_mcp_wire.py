"""Against a server of a few lines that speaks the bare protocol, and does what the SDK's servers do not."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.ports import ToolCall
from bot.tools.mcp import McpProvider
from bot.tools.mcp_transport import McpEntry
from bot.tools.registry import ToolBox
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolOverride

pytestmark = pytest.mark.xdist_group("mcp")

SERVER = r"""
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}

names = ["answers_cancel", "refuses_cancel", "grow", "nonsense", "no_result", "protocol_error"]
open_calls = {}
print("a banner that is no JSON", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params, number = message.get("method"), message.get("params", {}), message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": params["protocolVersion"], "serverInfo":
            {"name": "bare", "version": "1"}, "capabilities": {"tools": {"listChanged": True}}})
    elif method == "tools/list":
        half = len(names) // 2
        page = names[half:] if params.get("cursor") else names[:half]
        more = {} if params.get("cursor") else {"nextCursor": "2"}
        send(id=number, result={"tools": [tool(name) for name in page], **more})
    elif method == "notifications/cancelled":
        if open_calls.get(params["requestId"]) == "answers_cancel":
            send(id=params["requestId"], result={"content": [{"type": "text", "text": "two of three"}]})
        else:
            send(id=params["requestId"], error={"code": -32800, "message": "Request cancelled"})
    elif method == "tools/call":
        name = open_calls[number] = params["name"]
        if name == "grow":
            names.append("grown")
            send(method="notifications/tools/list_changed")
            send(id=number, result={"content": [{"type": "text", "text": "grew"}]})
        elif name == "nonsense":
            print("{not json", flush=True)
            send(id=number, result={"content": [{"type": "text", "text": "after nonsense"}]})
        elif name == "no_result":
            send(id=number, result={"surprise": 1})
        elif name == "protocol_error":
            send(id=number, error={"code": -32603, "message": "it broke, password=hunter2"})
"""


HURRIED = {f"bare__{tool}": ToolOverride(interruptible=True) for tool in ("answers_cancel", "refuses_cancel")}


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[ToolBox]:
    """The bare server, connected."""
    (tmp_path / "server.py").write_text(SERVER)
    redactor = Redactor([])
    command = (sys.executable, "-S", str(tmp_path / "server.py"))
    found = ToolBox([McpProvider(McpEntry("bare", command), redactor)], redactor, HURRIED)
    await found.start()
    assert await found.ready() == []
    yield found
    await found.close()


async def run(box: ToolBox, tool: str, hurry_after: float | None = None, **arguments: Json) -> CallResult:
    hurry = asyncio.Event()
    if hurry_after is not None:
        asyncio.get_running_loop().call_later(hurry_after, hurry.set)
    return await box.run(ToolCall("call_1", f"bare__{tool}", arguments), hurry)


async def test_an_answer_to_the_cancelling_confirms_it_and_is_what_it_had_so_far(box: ToolBox) -> None:
    result = await run(box, "answers_cancel", hurry_after=0.1)
    assert result.outcome is Outcome.STOPPED
    assert result.text.endswith("What it had so far:\ntwo of three")
    assert (await run(box, "refuses_cancel", hurry_after=0.1)).outcome is Outcome.STOPPED


async def test_a_changed_list_of_tools_is_fetched_anew_page_by_page(box: ToolBox) -> None:
    assert len(box.specs()) == 6
    assert (await run(box, "grow")).text == "grew"
    async with asyncio.timeout(5):
        while "bare__grown" not in [spec.name for spec in box.specs()]:
            await asyncio.sleep(0.01)
    assert len(box.specs()) == 7


async def test_what_a_server_answers_wrongly_is_an_error_and_the_connection_lives_on(box: ToolBox) -> None:
    assert (await run(box, "no_result")).text == (
        "bare__no_result answered something that is not a tool result; it only reads, so nothing was changed"
    )
    assert (await run(box, "protocol_error")).text == (
        "bare__protocol_error was refused by its server: it broke, password=[redacted:password]"
    )
    assert (await run(box, "nonsense")).text == "after nonsense"
