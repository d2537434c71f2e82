"""`python -m tests.servers.slack --port N`: a workspace to play with by hand."""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from tests.servers.slack.server import SlackServer


async def serve(port: int, events_url: str | None) -> None:
    async with SlackServer(port=port, rate_scale=1.0) as slack:
        slack.http_events_url = events_url
        print(f"SLACK_API_URL={slack.api_url}")
        print(f"SLACK_BOT_TOKEN={slack.bot_token}")
        print(f"SLACK_APP_TOKEN={slack.app_token}")
        print(f"SLACK_SIGNING_SECRET={slack.signing_secret}")
        print(
            "Type: NAME #channel text   (or: NAME #channel THREAD_TS text); @bot mentions the bot", flush=True
        )
        await converse(slack)


async def converse(slack: SlackServer) -> None:
    """Each line on standard input is said in the workspace; without any, the server just stays."""
    while line := await asyncio.to_thread(_line):
        who, _, rest = line.strip().partition(" ")
        where, _, text = rest.partition(" ")
        first, _, after = text.partition(" ")
        thread = first if first.replace(".", "").isdigit() and "." in first else None
        try:
            ts = await slack.say(who, where, after if thread else text, thread=thread)
            print(ts)
            await asyncio.sleep(1)
            print(slack.dump(), flush=True)
        except (LookupError, AssertionError) as mistake:
            print(mistake)
    await asyncio.Event().wait()


def _line() -> str:
    try:
        return input() + "\n"
    except EOFError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.servers.slack", description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--events-url", help="post events there instead of Socket Mode")
    asked = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(asked.port, asked.events_url))


if __name__ == "__main__":
    main()
