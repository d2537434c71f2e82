"""What `watchkeeper doctor` looks at, as one list. A check says what it found; failures it may also raise."""

from __future__ import annotations

import os

from pydantic import SecretStr

from bot.commands.findings import Check, Finding
from bot.commands.tool_checks import tool_checks
from bot.errors import Permanent, Temporary, Unusable
from bot.settings import Settings
from core.generation import GenerationFailed, ModelRequest
from core.history import Text, user
from core.redaction import Redactor

# Adapters are imported inside the checks: each loads a large library, and they load while others wait.


def checks() -> list[tuple[str, Check]]:
    """Names and checks in the order of the report."""
    return [
        ("settings", _settings),
        ("database", _database),
        ("Redis", _redis),
        ("Slack bot token", _slack_bot),
        ("Slack events", _slack_events),
        ("model", _model),
        *tool_checks(),
        ("tool servers", _tool_servers),
    ]


async def _settings(settings: Settings) -> list[Finding]:
    where = str(settings.config_path) if settings.config_path else "no configuration file, all defaults"
    return [Finding.ok("settings", where)]


async def _database(settings: Settings) -> list[Finding]:
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415

    from storage import schema  # noqa: PLC0415
    from storage.engine import Database  # noqa: PLC0415
    from storage.errors import DatabaseUnusable  # noqa: PLC0415

    name, address = "database", settings.env.database
    if address.path is not None and not address.path.exists():
        folder = next(parent for parent in address.path.parents if parent.exists())
        if not os.access(folder, os.W_OK) or (folder != address.path.parent and not address.is_default):
            return [Finding.failed(name, f"{address.path} cannot be made; set DATABASE_URL to another place")]
        return [Finding.ok(name, f"{address} does not exist yet, the first start makes it")]
    if address.path is not None and not os.access(address.path, os.W_OK):
        return [Finding.failed(name, f"{address.path} may not be written; give this user the right to")]
    try:
        database = await Database.open(settings.database_url, read_only=True)
    except DatabaseUnusable as error:
        return [Finding.failed(name, str(error))]
    try:
        current = await schema.is_current(database)
    except DBAPIError as error:
        return [Finding.failed(name, f"{address} cannot be read ({error.orig}); set DATABASE_URL to another")]
    finally:
        await database.close()
    if not current:
        return [Finding.ok(name, f"{address}, not at the current schema yet: `serve` brings it there")]
    return [Finding.ok(name, f"{address}, at the current schema")]


async def _redis(settings: Settings) -> list[Finding]:
    from bot.compose.shared import redis_address  # noqa: PLC0415

    if settings.env.redis_url is None:  # one process needs none
        return []
    from storage.redis_address import NOT_USABLE  # noqa: PLC0415
    from storage.wake import prove  # noqa: PLC0415

    try:
        address = redis_address(settings)
    except Unusable as error:
        return [Finding.failed("Redis", str(error))]
    assert address is not None
    try:
        await prove(address)
    except NOT_USABLE as error:
        return [Finding.failed("Redis", address.why(error))]
    return [Finding.ok("Redis", f"{address}, carries bells")]


async def _slack_bot(settings: Settings) -> list[Finding]:
    from bot.slack.api import SlackApi, web_client  # noqa: PLC0415
    from bot.slack.connect import Connection  # noqa: PLC0415
    from bot.slack.methods import scopes  # noqa: PLC0415

    name, token = "Slack bot token", settings.env.slack_bot_token
    if token is None:
        return [Finding.off(name, "set SLACK_BOT_TOKEN")]
    api = SlackApi(web_client(token.get_secret_value(), settings.env.slack_api_url))
    try:
        us = await Connection(api).connect()
    except Permanent as error:
        return [Finding.failed(name, f"{error}; set SLACK_BOT_TOKEN to the token of an installed app")]
    except Temporary as error:
        return [Finding.failed(name, f"{error}; check the network and SLACK_API_URL")]
    finally:
        await api.close()
    if us.scopes and (missing := scopes() - us.scopes):
        words = f"scopes are missing: {', '.join(sorted(missing))}; add them and install the app again"
        return [Finding.failed(name, words)]
    return [Finding.ok(name, f"workspace {us.team_name or us.team}, all scopes that are needed")]


async def _slack_events(settings: Settings) -> list[Finding]:
    name, token = "Slack events", settings.env.slack_app_token
    if token is not None:
        return [await _socket_mode(name, token, settings.env.slack_api_url)]
    if settings.env.slack_signing_secret is not None:
        return [Finding.ok(name, "over HTTP at /slack/events, signed")]
    if settings.env.slack_bot_token is not None:
        return [
            Finding.failed(name, "no way for events to come; set SLACK_APP_TOKEN or SLACK_SIGNING_SECRET")
        ]
    return [Finding.off(name, "set SLACK_APP_TOKEN, or SLACK_SIGNING_SECRET for HTTP")]


async def _socket_mode(name: str, token: SecretStr, api_url: str | None) -> Finding:
    import aiohttp  # noqa: PLC0415
    from slack_sdk.errors import SlackClientError  # noqa: PLC0415

    from bot.slack.api import web_client  # noqa: PLC0415
    from bot.slack.refusals import refusal  # noqa: PLC0415

    method = "apps.connections.open"
    client = web_client(token.get_secret_value(), api_url)
    try:
        await client.api_call(method)
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
        failed = refusal(method, error, creates=False)
        if isinstance(failed, Temporary):
            return Finding.failed(name, f"{failed}; check the network and SLACK_API_URL")
        mend = "set SLACK_APP_TOKEN to an app-level token with the scope connections:write"
        return Finding.failed(name, f"{failed}; {mend}")
    finally:
        if client.session is not None:
            await client.session.close()
    return Finding.ok(name, "over Socket Mode")


async def _model(settings: Settings) -> list[Finding]:
    from bot.model.anthropic import AnthropicModel  # noqa: PLC0415

    env, chosen = settings.env, settings.file.model
    if env.anthropic_api_key is None:
        return [Finding.off("model", "set ANTHROPIC_API_KEY")]
    model = AnthropicModel(
        chosen.name,
        api_key=env.anthropic_api_key.get_secret_value(),
        base_url=env.anthropic_base_url,
        max_tokens=16,
        idle_timeout_s=chosen.idle_timeout_s,
    )
    request = ModelRequest("Answer with one word.", (), (user(Text("Are you there?")),), purpose="doctor")
    try:
        outcome = await model.open(request).run()
    finally:
        await model.close()
    if isinstance(outcome, GenerationFailed):
        return [Finding.failed("model", f"{outcome.cause}; check ANTHROPIC_API_KEY and model.name")]
    return [Finding.ok("model", f"{chosen.name} answers")]


async def _tool_servers(settings: Settings) -> list[Finding]:
    from bot.tools.mcp import McpProvider  # noqa: PLC0415
    from bot.tools.mcp_transport import McpEntry  # noqa: PLC0415
    from bot.tools.registry import ToolBox  # noqa: PLC0415

    if not settings.file.mcp:
        return [Finding.off("tool servers", "add an [[mcp]] entry")]
    redactor = Redactor(settings.secrets())
    providers = [
        McpProvider(McpEntry(e.name, e.command or (), e.url or "", e.timeout_s, e.env), redactor)
        for e in settings.file.mcp
    ]
    box = ToolBox(providers, redactor, settings.file.tools.overrides(), ready_limit_s=8.0)
    await box.start()
    try:
        report = await box.report()
        count = {provider.name: len(provider.specs()) for provider in providers}
    finally:
        await box.close()
    return [
        Finding.ok(f"tool server {name}", f"{count.get(name, 0)} tools")
        if fault is None
        else Finding.failed(f"tool server {name}", f"{fault}; check its [[mcp]] entry")
        for name, fault in report
    ]
