"""The settings of one process: environment and `watchkeeper.toml`, checked once, frozen, refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.errors import Unusable
from bot.settings import environment, file
from bot.settings.environment import Environment, secrets_in_url
from bot.settings.sections import Configuration
from core.policy import Policy, policy

NAMES_A_SECRET = re.compile(r"token|key|secret|pass|credential|auth", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. `env` comes from the environment, `file` from the configuration file."""

    env: Environment
    file: Configuration
    config_path: Path | None

    @property
    def database_url(self) -> str:
        """The database's URL with its async driver. May hold a password."""
        return self.env.database.url

    @property
    def policy(self) -> Policy:
        """The policy table in force."""
        return policy(entry.rule() for entry in self.file.policy)

    def path(self, given: str) -> Path:
        """A path in the file: one that is not absolute begins at the file's own folder."""
        folder = self.config_path.parent if self.config_path else Path()
        return folder / Path(given).expanduser()

    def secrets(self) -> list[str]:
        """Every secret value that is known, longest first, for the redactor."""
        env = self.env
        held = (
            env.slack_bot_token,
            env.slack_app_token,
            env.slack_signing_secret,
            env.anthropic_api_key,
            env.openai_api_key,
            env.webhook_token,
        )
        found = {secret.get_secret_value() for secret in held if secret}
        urls = [env.slack_api_url, env.anthropic_base_url, env.openai_base_url, env.database.url]
        urls += [self.file.tools.prometheus.url, self.file.tools.logs.url]
        urls += [env.redis_url.get_secret_value() if env.redis_url else None]
        urls += [server.url for server in self.file.mcp]
        found.update(password for url in urls if url for password in secrets_in_url(url))
        for server in self.file.mcp:
            found.update(value for key, value in server.env.items() if NAMES_A_SECRET.search(key))
        return sorted(found - {""}, key=lambda secret: (-len(secret), secret))


def load(environ: Mapping[str, str], cwd: Path) -> Settings:
    """The settings of a process that starts here; raises Unusable with one line for people."""
    env = environment.read(environ, cwd)
    path = file.find(env.config, cwd)
    configuration = file.read(path) if path else Configuration()
    _refuse_doubles(configuration, path)
    return Settings(env, configuration, path)


def _refuse_doubles(configuration: Configuration, path: Path | None) -> None:
    seen: set[str] = set()
    for number, server in enumerate(configuration.mcp, start=1):
        if server.name in seen:
            raise Unusable(
                f'{path.name if path else file.FILE_NAME}, [[mcp]] {number}: name "{server.name}" is taken '
                f"by an earlier entry; choose another"
            )
        seen.add(server.name)


def require_slack(settings: Settings) -> None:
    """Refuse settings with which no event from Slack could arrive."""
    env = settings.env
    if env.slack_bot_token is None:
        raise Unusable(
            "SLACK_BOT_TOKEN is not set; set it to the app's bot token (xoxb-…), see docs/slack.md"
        )
    if env.slack_app_token is None and env.slack_signing_secret is None:
        raise Unusable(
            "SLACK_APP_TOKEN is not set; set it (xapp-…) for Socket Mode, or SLACK_SIGNING_SECRET for HTTP"
        )


def require_sqlite(settings: Settings) -> None:
    """Refuse a database server for what runs as one process beside its file."""
    if settings.env.database.path is None:
        raise Unusable(
            "DATABASE_URL: this command keeps its records in SQLite; unset it or name a SQLite file"
        )


def require_model(settings: Settings) -> None:
    """Refuse settings without a key for the model."""
    if settings.env.anthropic_api_key is None:
        raise Unusable("ANTHROPIC_API_KEY is not set; set it to a key of the Anthropic API")
