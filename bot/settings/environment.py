"""The environment variables of contract §1, read here and nowhere else; an empty one counts as unset."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from bot.errors import Unusable
from bot.settings import database
from bot.settings.database import DatabaseAddress

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Variable:
    """One row of the table: what a variable means, and what holds without it."""

    name: str
    meaning: str
    default: str
    secret: bool = False


VARIABLES: tuple[Variable, ...] = (
    Variable("SLACK_BOT_TOKEN", "Bot token (`xoxb-…`).", "Slack is off", secret=True),
    Variable(
        "SLACK_APP_TOKEN", "App-level token (`xapp-…`): events come over Socket Mode.", "none", secret=True
    ),
    Variable(
        "SLACK_SIGNING_SECRET",
        "Without an app token: events come over HTTP at `POST /slack/events`.",
        "none",
        secret=True,
    ),
    Variable("SLACK_API_URL", "Base URL of the Slack Web API, used for both tokens.", "Slack's own"),
    Variable("ANTHROPIC_API_KEY", "Key of the Anthropic API.", "none", secret=True),
    Variable("ANTHROPIC_BASE_URL", "Base URL of the Anthropic API.", "Anthropic's own"),
    Variable("OPENAI_API_KEY", "Key of an OpenAI-compatible API (not used yet).", "none", secret=True),
    Variable("OPENAI_BASE_URL", "Base URL of an OpenAI-compatible API (not used yet).", "OpenAI's own"),
    Variable(
        "DATABASE_URL",
        "`sqlite:///path` or `postgresql://…`.",
        "a SQLite file in `.watchkeeper/`",
        secret=True,
    ),
    Variable(
        "REDIS_URL",
        "`redis://…` (Redis or Valkey): wake-ups and the rate budget that several processes share.",
        "in-process; several processes then poll",
        secret=True,
    ),
    Variable("WATCHKEEPER_CONFIG", "Path of the configuration file.", "`watchkeeper.toml` if present"),
    Variable(
        "WATCHKEEPER_HOST", "Address for health, metrics, events over HTTP and the console.", "`127.0.0.1`"
    ),
    Variable("WATCHKEEPER_PORT", "Port for health, metrics, events over HTTP and the console.", "`8080`"),
    Variable("WATCHKEEPER_WEBHOOK_TOKEN", "Bearer token of webhooks (not used yet).", "none", secret=True),
)


@dataclass(frozen=True, slots=True)
class Environment:
    """What the environment says, checked. Secrets show as stars; take them with `get_secret_value()`."""

    slack_bot_token: SecretStr | None
    slack_app_token: SecretStr | None
    slack_signing_secret: SecretStr | None
    slack_api_url: str | None
    anthropic_api_key: SecretStr | None
    anthropic_base_url: str | None
    openai_api_key: SecretStr | None
    openai_base_url: str | None
    database: DatabaseAddress
    redis_url: SecretStr | None
    config: str | None
    host: str
    port: int
    webhook_token: SecretStr | None


def read(environ: Mapping[str, str], cwd: Path) -> Environment:
    """The checked environment; raises Unusable with a line that names the variable."""

    def get(name: str, check: Callable[[str], T]) -> T | None:
        text = environ.get(name, "")
        if not text:
            return None
        try:
            return check(text)
        except ValueError as fault:
            raise Unusable(f"{name}: {fault}") from None

    return Environment(
        slack_bot_token=get("SLACK_BOT_TOKEN", _bot_token),
        slack_app_token=get("SLACK_APP_TOKEN", _app_token),
        slack_signing_secret=get("SLACK_SIGNING_SECRET", _secret),
        slack_api_url=get("SLACK_API_URL", _http_url),
        anthropic_api_key=get("ANTHROPIC_API_KEY", _secret),
        anthropic_base_url=get("ANTHROPIC_BASE_URL", _http_url),
        openai_api_key=get("OPENAI_API_KEY", _secret),
        openai_base_url=get("OPENAI_BASE_URL", _http_url),
        database=get("DATABASE_URL", lambda text: database.parse(_one_line(text), cwd))
        or database.default(cwd),
        redis_url=get("REDIS_URL", _redis_url),
        config=get("WATCHKEEPER_CONFIG", _one_line),
        host=get("WATCHKEEPER_HOST", _host) or "127.0.0.1",
        port=get("WATCHKEEPER_PORT", _port) or 8080,
        webhook_token=get("WATCHKEEPER_WEBHOOK_TOKEN", _secret),
    )


def secrets_in_url(url: str) -> list[str]:
    """The password in a URL, as written and decoded."""
    password = urlsplit(url).password or ""
    return [password, unquote(password)]


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds a line break or control character; write it on one line")
    return text


def _secret(text: str) -> SecretStr:
    if re.search(r"\s", text) or not text.isascii() or not text.isprintable():
        raise ValueError("holds white space or characters that no key has; copy it again, without quotes")
    return SecretStr(text)


def _bot_token(text: str) -> SecretStr:
    return _token(text, "xoxb-", "the bot token of the app's page OAuth & Permissions")


def _app_token(text: str) -> SecretStr:
    return _token(text, "xapp-", "the app-level token of the app's page Basic Information")


def _token(text: str, prefix: str, right: str) -> SecretStr:
    if not text.startswith(prefix) or text == prefix:
        raise ValueError(f"does not start with {prefix}; set {right}")
    return _secret(text)


def _http_url(text: str) -> str:
    _checked_url(text, {"http", "https"}, "write it like https://host/path")
    return text


def _redis_url(text: str) -> SecretStr:
    _checked_url(text, {"redis", "rediss"}, "write it like redis://host:6379/0")
    return SecretStr(text)


def _checked_url(text: str, schemes: set[str], mend: str) -> None:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", text) or not text.isprintable():
        raise ValueError(f"is not a URL that can be used; {mend}")


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._:%-]+", text):
        raise ValueError("is not an address; write a name or an IP address such as 127.0.0.1, without a port")
    if re.fullmatch(r"[^:]+:\d+", text):
        raise ValueError("holds a port; set that as WATCHKEEPER_PORT")
    return text


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65_535:
        raise ValueError(f"{text[:20]!r} is no port; write a number from 1 to 65535")
    return int(text)
