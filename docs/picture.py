"""Draws docs/pictures/steered.png: `python -m docs.picture`. Needs Debian's `chromium`.

A test run: the real program between the test Slack, a scripted model and the bundled incident. The messages
are those that the test Slack received, block by block; only their look is made here, after Slack's.
"""

from __future__ import annotations

import asyncio
import base64
import html
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.incident.app import incident_app
from bot.incident.deploys import make_repository
from bot.incident.incident import Incident
from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.servers.slack.messages import Message
from tests.stories.room import Room, eventually

PICTURE = Path(__file__).parent / "pictures" / "steered.png"
WIDTH, HEIGHT = 1320, 1290
TOOLS = """
[tools.prometheus]
url = "{base}/prometheus"
[tools.logs]
url = "{base}"
[tools.deploys]
repository = "{repository}"
"""
LATENCY = 'http_request_duration_seconds_bucket{service="checkout"}'
P99 = f"histogram_quantile(0.99, sum by (le) (rate({LATENCY}[5m])))"
ANSWER = """**Verdict**: a bad deploy, checkout 2.31.0; confidence high.

**Evidence**
- c1: p99 of checkout rose from 0.8 s to above 4 s within the last hour
- c2: slow requests begin minutes after the deploy, each with about a hundred database queries
- c4: checkout 2.31.0 was deployed a quarter of an hour ago; stock 3.7.2 half an hour earlier

**Not checked**: whether the queries come from the new summary prices.

**Next steps**: roll checkout back to the version before.

**Steers**: Ben asked for the deploys, so they were read next."""


@dataclass(frozen=True)
class Shot:
    """A message as it looked at one moment."""

    who: str
    blocks: Sequence[Any]
    reactions: Sequence[str]


@asynccontextmanager
async def incident(folder: Path) -> AsyncIterator[str]:
    """The bundled incident over HTTP; gives the configuration that points the tools at it."""
    told = Incident("bad_deploy", 7, time.time() - 90)
    repository = folder / "shop"
    await asyncio.to_thread(make_repository, told.story, repository)
    runner = web.AppRunner(incident_app(told))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield TOOLS.format(base=f"http://127.0.0.1:{runner.addresses[0][1]}", repository=repository)
    finally:
        await runner.cleanup()


async def played(folder: Path) -> tuple[list[Shot], list[Shot]]:
    """The thread while the analysis is steered, and once it is answered."""
    async with incident(folder) as tools, Room(folder, more=tools) as room:
        gate = room.model.gate("thinking")
        room.model.script(
            reply(
                text("Scope first, and what changed."),
                call("prometheus_range", {"query": P99, "start": "-1h", "unit": "seconds"}),
                call("logs_query", {"query": '{service="checkout"} |= "request slow"', "start": "-30m"}),
                call("prometheus_alerts", {}),
            ),
            reply(text("Next the databases, "), gate, text("one by one.")),
            reply(text("You are right, the deploys."), call("deploys_list", {"start": "-2h"})),
            reply(text(ANSWER)),
        )
        await room.start()
        thread = await room.slack.say("Ana", "#inc", "checkout p99 is above 2 s, why?", mention=True)
        await gate.reached(timeout=40)
        await asyncio.sleep(1)  # the card has caught up
        working = [shot(room, message) for message in room.slack.thread("#inc", thread)]
        steer = await room.slack.say("Ben", "#inc", "what about the deploy before it?", thread=thread)

        async def taken() -> bool:
            return bool(room.slack.reactions(steer))

        await eventually(taken)
        working.append(shot(room, room.slack.message("#inc", steer)))
        await room.until_settled("steered", "completed")
        await asyncio.sleep(1)
        return working, [shot(room, message) for message in room.slack.thread("#inc", thread)]


def shot(room: Room, message: Message) -> Shot:
    """How a message looks now."""
    if message.user == room.slack.bot_user_id:
        who = "Watchkeeper"
    else:
        who = room.slack.workspace.user(str(message.user)).name
    blocks = message.blocks or [{"type": "section", "text": {"type": "mrkdwn", "text": message.text}}]
    return Shot(who, [with_chart(room, one) for one in blocks], list(message.reactions))


def with_chart(room: Room, block: Any) -> Any:
    """An image block with its picture's bytes, as they were uploaded."""
    if block["type"] != "image":
        return block
    return {**block, "png": room.slack.files[block["slack_file"]["id"]].content or b""}


# --- drawing ------------------------------------------------------------------------------------------------

STYLE = """
body { margin: 0; padding: 22px 28px; background: #fff; color: #1d1c1d; width: 1264px;
       font: 15px/1.45 Lato, "Noto Sans", "DejaVu Sans", sans-serif; }
.columns { display: flex; gap: 28px; align-items: flex-start; } .column { flex: 1; min-width: 0; }
h1 { font-size: 15px; margin: 0 0 10px; color: #616061; font-weight: 600; }
.thread { border: 1px solid #ddd; border-radius: 10px; padding: 14px 16px; }
.message { margin: 0 0 14px; } .message:last-child { margin-bottom: 2px; }
.who { font-weight: 700; }
.app { font-size: 10px; background: #e8e8e8; border-radius: 3px; padding: 1px 4px; }
.context { color: #616061; font-size: 13px; } .mention { color: #1264a3; background: #e8f5fa; }
.task { border: 1px solid #e3e3e3; border-radius: 8px; padding: 6px 10px; margin: 5px 0; }
.detail { color: #616061; font-size: 13px; } pre, code { font-family: "DejaVu Sans Mono", monospace; }
code { font-size: 12px; background: #f4f4f4; border: 1px solid #e3e3e3; padding: 0 3px; }
.button { display: inline-block; border: 1px solid #c9c9c9; border-radius: 6px; padding: 3px 12px;
          margin: 6px 0; font-weight: 700; font-size: 13px; }
.danger { color: #fff; background: #d3205a; border-color: #d3205a; }
img { display: block; max-width: 300px; border: 1px solid #ddd; border-radius: 8px; margin: 4px 0; }
.reaction { border: 1px solid #ddd; border-radius: 12px; padding: 1px 8px; font-size: 12px; }
.foot { color: #616061; font-size: 13px; margin-top: 14px; }
"""
MARKS = (
    (r"```\n?(.*?)```", r"<pre>\1</pre>"),
    (r"`([^`\n]+)`", r"<code>\1</code>"),
    (r"(?<!\w)\*([^*\n]+)\*(?!\w)", r"<b>\1</b>"),
    (r"(?<!\w)_([^_\n]+)_(?!\w)", r"<i>\1</i>"),
    (r"&lt;!date\^\d+\^[^|]*\|([^&]*)&gt;", r"\1"),
    (r"&lt;@(\w+)&gt;", r'<span class="mention">@\1</span>'),
    (r"\n", "<br>"),
)
SIGNS = {"complete": "✔", "in_progress": "◔", "error": "✖", "pending": "○"}


def mrkdwn(words: str) -> str:
    """Slack's marks as HTML; its texts come with & < > escaped already."""
    drawn = html.escape(html.unescape(words), quote=False)
    for pattern, instead in MARKS:
        drawn = re.sub(pattern, instead, drawn, flags=re.DOTALL)
    return drawn


def rich(element: Any) -> str:
    """A rich text element."""
    match element.get("type"):
        case "text":
            words = html.escape(element["text"]).replace("\n", "<br>")
            style = element.get("style", {})
            for name, tag in (("bold", "b"), ("italic", "i"), ("code", "code")):
                words = f"<{tag}>{words}</{tag}>" if style.get(name) else words
            return words
        case "user":
            return '<span class="mention">@watchkeeper</span>'
        case "link":
            return f'<a href="#">{html.escape(element.get("text") or element["url"])}</a>'
        case "rich_text_list":
            return "<ul>" + "".join(f"<li>{rich(item)}</li>" for item in element["elements"]) + "</ul>"
        case _:
            return "".join(rich(inner) for inner in element.get("elements", []))


def block(one: Any) -> str:
    """One block; an unknown kind is drawn as its name, so that it is seen to be missing."""
    match one["type"]:
        case "section":
            return f"<div>{mrkdwn(one['text']['text'])}</div>"
        case "markdown":
            return f"<div>{mrkdwn(one['text'].replace('**', '*'))}</div>"
        case "context":
            return (
                f'<div class="context">{" ".join(mrkdwn(e.get("text", "")) for e in one["elements"])}</div>'
            )
        case "rich_text":
            return f"<div>{rich(one)}</div>"
        case "plan":
            tasks = "".join(block({"type": "task_card", **task}) for task in one.get("tasks", []))
            return f"<div><b>{html.escape(one['title'])}</b>{tasks}</div>"
        case "task_card":
            sign = SIGNS.get(one.get("status", ""), "○")
            more = "".join(rich(one[part]) for part in ("details", "output") if part in one)
            return (
                f'<div class="task">{sign} {html.escape(one["title"])}<div class="detail">{more}</div></div>'
            )
        case "actions":
            return "".join(
                f'<span class="button {e.get("style", "")}">{html.escape(e["text"]["text"])}</span>'
                for e in one["elements"]
            )
        case "divider":
            return "<hr>"
        case "image":
            return f'<img src="data:image/png;base64,{base64.b64encode(one["png"]).decode()}">'
        case kind:
            return f"<div>[{html.escape(kind)}]</div>"


def drawn(shots: Sequence[Shot]) -> str:
    """A thread."""
    parts = []
    for one in shots:
        app = ' <span class="app">APP</span>' if one.who == "Watchkeeper" else ""
        marks = "".join(f'<span class="reaction">:{name}: 1</span> ' for name in one.reactions)
        body = "".join(block(each) for each in one.blocks)
        parts.append(f'<div class="message"><span class="who">{one.who}</span>{app}{body}{marks}</div>')
    return f'<div class="thread">{"".join(parts)}</div>'


def page(working: Sequence[Shot], answered: Sequence[Shot]) -> str:
    """Both moments side by side, and what this picture is."""
    return f"""<!doctype html><meta charset="utf-8"><style>{STYLE}</style><div class="columns">
<div class="column"><h1>While it works: Ben steers</h1>{drawn(working)}</div>
<div class="column"><h1>Moments later: answered</h1>{drawn(answered)}</div></div>
<div class="foot">Drawn from the messages of a test run (test Slack, scripted model, bundled incident). Not a
screenshot of Slack.</div>"""


def screenshot(source: str, target: Path) -> None:
    """Let chromium draw the page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("chromium is needed: apt-get install -y --no-install-recommends chromium")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(source, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        shape = [f"--user-data-dir={folder}/profile", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
        command = [browser, *flags, *shape, f"--screenshot={target}", file.as_uri()]
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> None:
    """Play, draw, shoot."""
    with tempfile.TemporaryDirectory() as folder:
        working, answered = asyncio.run(played(Path(folder)))
    PICTURE.parent.mkdir(exist_ok=True)
    screenshot(page(working, answered), PICTURE)


if __name__ == "__main__":
    main()
