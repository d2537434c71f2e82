"""A setting is used as it is written, or refused in one line that names it, the fault and the mend."""

from pathlib import Path

import pytest

from bot.errors import Unusable
from bot.settings import Settings, load, require_model, require_slack
from core.arrivals import AuthorRole, Source
from core.policy import Effect, Situation, decide
from core.tools import ToolClass, ToolOverride


def given(folder: Path, toml: str = "", **environ: str) -> Settings:
    if toml:
        (folder / "watchkeeper.toml").write_text(toml, encoding="utf-8")
    return load(environ, folder)


def refusal(folder: Path, toml: str = "", **environ: str) -> str:
    with pytest.raises(Unusable) as caught:
        given(folder, toml, **environ)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_nothing_has_to_be_set(tmp_path: Path) -> None:
    settings = given(tmp_path)
    assert settings.database_url == f"sqlite+aiosqlite:///{tmp_path}/.watchkeeper/watchkeeper.db"
    assert (settings.env.host, settings.env.port) == ("127.0.0.1", 8080)
    assert settings.file.worker.lease_s == 15
    assert settings.secrets() == []


def test_the_contracts_example_file_is_read(tmp_path: Path) -> None:
    settings = given(
        tmp_path,
        """
        [model]
        name = "claude-x"
        [worker]
        poll_s = 0.5
        [slack]
        responders = ["U012AB3CD"]
        [[mcp]]
        name = "probe"
        command = ["python", "server.py"]
        env = { KEY = "value" }
        [tools.prometheus]
        url = "http://localhost:9090"
        [tools."probe__slow"]
        class = "read_only"
        interruptible = true
        timeout_s = 20
        max_bytes = 65536
        """,
    )
    assert settings.file.model.name == "claude-x"
    assert settings.file.worker.poll_s == 0.5
    assert settings.file.mcp[0].command == ("python", "server.py")
    assert settings.file.tools.prometheus.url == "http://localhost:9090"
    assert settings.file.tools.overrides() == {
        "probe__slow": ToolOverride(ToolClass.READ_ONLY, True, 20, 65_536)
    }


def test_configured_policy_rules_stand_before_the_built_in_ones(tmp_path: Path) -> None:
    settings = given(
        tmp_path, '[[policy]]\nsource = ["mention", "thread_reply"]\nrole = "guest"\neffect = "start"'
    )
    verdict = decide(settings.policy, Situation(Source.MENTION, AuthorRole.GUEST))
    assert (verdict.effect, verdict.rule) == (Effect.START, "configured[1]")


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    assert given(tmp_path, SLACK_BOT_TOKEN="", WATCHKEEPER_PORT="").env.port == 8080


@pytest.mark.parametrize(
    "url, driver_url",
    [
        ("sqlite:///records.db", "sqlite+aiosqlite:///{here}/records.db"),
        ("sqlite:////var/lib/w.db", "sqlite+aiosqlite:////var/lib/w.db"),
        ("postgresql://u:p@db:5432/w", "postgresql+asyncpg://u:p@db:5432/w"),
        ("postgresql://u:p@db/w?sslmode=require", "postgresql+asyncpg://u:p@db/w?sslmode=require"),
    ],
)
def test_the_program_chooses_the_databases_driver(tmp_path: Path, url: str, driver_url: str) -> None:
    assert given(tmp_path, DATABASE_URL=url).database_url == driver_url.format(here=tmp_path)


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("SLACK_BOT_TOKEN", "xapp-1-A", "does not start with xoxb-"),
        ("SLACK_BOT_TOKEN", "xoxb-", "does not start with xoxb-"),
        ("SLACK_BOT_TOKEN", "xoxb-1 2", "white space"),
        ("SLACK_BOT_TOKEN", "xoxb-12\n", "white space"),
        ("SLACK_APP_TOKEN", "xoxb-1", "does not start with xapp-"),
        ("SLACK_SIGNING_SECRET", "a b", "white space"),
        ("SLACK_API_URL", "slack.com/api", "not a URL"),
        ("SLACK_API_URL", "ftp://slack.com", "not a URL"),
        ("SLACK_API_URL", "http://host:port/", "not a URL"),
        ("ANTHROPIC_API_KEY", "“sk-ant”", "copy it again"),
        ("ANTHROPIC_BASE_URL", "localhost:8000", "not a URL"),
        ("OPENAI_API_KEY", "sk 1", "white space"),
        ("OPENAI_BASE_URL", "http://", "not a URL"),
        ("DATABASE_URL", "records.db", "not a URL"),
        ("DATABASE_URL", "mysql://u:hunter2@db/w", "not supported"),
        ("DATABASE_URL", "postgres://u:hunter2@db/w", "not supported"),
        ("DATABASE_URL", "postgresql+asyncpg://u:hunter2@db/w", "names a driver"),
        ("DATABASE_URL", "sqlite+aiosqlite:///w.db", "names a driver"),
        ("DATABASE_URL", "sqlite://", "names no file"),
        ("DATABASE_URL", "sqlite:///", "names no file"),
        ("DATABASE_URL", "sqlite://w.db", "names no file"),
        ("DATABASE_URL", "sqlite:///:memory:", "in memory"),
        ("DATABASE_URL", "sqlite:///w.db?mode=ro", "options"),
        ("DATABASE_URL", "sqlite:///folder/", "names a folder"),
        ("DATABASE_URL", "postgresql://u:hunter2@db:99999/w", "port"),
        ("DATABASE_URL", "postgresql://u:hunter2@[db/w", "not a URL"),
        ("DATABASE_URL", "postgresql://u:hunter2@db", "names no database"),
        (
            "DATABASE_URL",
            "postgresql://u:hunter2@db/w?sslmod=require",
            "option sslmod, which is not supported",
        ),
        ("DATABASE_URL", "postgresql://u:hunter2@db/w?sslmode=on", "write one of disable"),
        ("DATABASE_URL", "postgresql://u:hunter2@db/w?sslrootcert=/no/file", "does not exist"),
        ("REDIS_URL", "localhost:6379", "not a URL"),
        ("WATCHKEEPER_CONFIG", "nowhere.toml", "there is no file nowhere.toml"),
        ("WATCHKEEPER_CONFIG", ".", "cannot be read"),
        ("WATCHKEEPER_HOST", "http://0.0.0.0", "not an address"),
        ("WATCHKEEPER_HOST", "127.0.0.1:8080", "holds a port"),
        ("WATCHKEEPER_PORT", "http", "from 1 to 65535"),
        ("WATCHKEEPER_PORT", "0", "from 1 to 65535"),
        ("WATCHKEEPER_PORT", "65536", "from 1 to 65535"),
        ("WATCHKEEPER_PORT", "-1", "from 1 to 65535"),
        ("WATCHKEEPER_PORT", "8_080", "from 1 to 65535"),
        ("WATCHKEEPER_WEBHOOK_TOKEN", "a\tb", "white space"),
    ],
)
def test_a_variable_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    text = refusal(tmp_path, **{name: value})
    assert text.startswith(f"{name}: ") or (name == "WATCHKEEPER_CONFIG" and "cannot be read" in text)
    assert words in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "toml, line",
    [
        ("[worker]\npol_s = 1", 'watchkeeper.toml, [worker]: unknown key "pol_s"; did you mean "poll_s"?'),
        ("[wroker]", 'watchkeeper.toml: unknown table "wroker"; did you mean "worker"?'),
        ("[model]\nlease_s = 1", 'watchkeeper.toml, [model]: unknown key "lease_s"; it belongs in [worker]'),
        (
            "[card]\nzzz = 1",
            'watchkeeper.toml, [card]: unknown key "zzz"; known here: min_interval_s',
        ),
        ("[budget]\nzzz = 1", 'watchkeeper.toml, [budget]: unknown key "zzz"; this table has no keys yet'),
        (
            '[[mcp]]\nname = "a"\ncommand = ["x"]\n[[mcp]]\nnmae = "b"',
            'watchkeeper.toml, [[mcp]] 2: unknown key "nmae"; did you mean "name"?',
        ),
        (
            "[tools.probe__slow]\nmax_byte = 1",
            'watchkeeper.toml, [tools.probe__slow]: unknown key "max_byte"; did you mean "max_bytes"?',
        ),
        (
            "[tools.prometheus]\nurls = 1",
            'watchkeeper.toml, [tools.prometheus]: unknown key "urls"; did you mean "url"?',
        ),
        (
            '[tools.http]\nhosts = ["http://a/"]',
            'watchkeeper.toml, [tools.http]: hosts holds "http://a/", which is no bare host such as '
            "status.example.com or 10.0.0.5:8080",
        ),
        (
            '[tools.http]\nhosts = ["127.1:80"]',
            'watchkeeper.toml, [tools.http]: hosts holds "127.1:80", which is no bare host such as '
            "status.example.com or 10.0.0.5:8080",
        ),
        (
            '[tools.http]\nnetworks = ["10.0.0.1/8"]',
            'watchkeeper.toml, [tools.http]: networks holds "10.0.0.1/8", which is no network such as '
            "10.0.0.0/8",
        ),
        ('[worker]\npoll_s = "1"', 'watchkeeper.toml, [worker]: poll_s should be a number, not "1"'),
        ("[worker]\npoll_s = true", "watchkeeper.toml, [worker]: poll_s should be a number, not true"),
        ("[worker]\npoll_s = 0", "watchkeeper.toml, [worker]: poll_s should be greater than 0, not 0"),
        ("[worker]\ngather_s = -1", "watchkeeper.toml, [worker]: gather_s should be at least 0, not -1"),
        ("[worker]\nlease_s = nan", "watchkeeper.toml, [worker]: lease_s should be a finite number, not NaN"),
        (
            "[worker]\nmax_turns = 1.5",
            "watchkeeper.toml, [worker]: max_turns should be a whole number, not 1.5",
        ),
        ("[model]\nname = 3", "watchkeeper.toml, [model]: name should be a text in quotes, not 3"),
        ('[model]\nname = ""', 'watchkeeper.toml, [model]: name should be a text that is not empty, not ""'),
        (
            '[model]\nprovider = "openai"',
            'watchkeeper.toml, [model]: provider should be "anthropic", not "openai"',
        ),
        ("worker = 3", "watchkeeper.toml: worker should be a table: write [worker]"),
        ("[[worker]]", "watchkeeper.toml: worker should be a table: write [worker]"),
        ("[mcp]\nname = 1", "watchkeeper.toml: mcp should be a list of tables: write [[mcp]]"),
        ("[[mcp]]", 'watchkeeper.toml, [[mcp]] 1: the key "name" is missing'),
        (
            '[[mcp]]\nname = "a"',
            'watchkeeper.toml, [[mcp]] 1: needs exactly one of "command" (stdio) and "url" (streamable HTTP)',
        ),
        (
            '[[mcp]]\nname = "a"\ncommand = "python"',
            'watchkeeper.toml, [[mcp]] 1: command should be a list, such as ["one", "two"], not "python"',
        ),
        (
            '[[mcp]]\nname = "a"\ncommand = ["x", 1]',
            "watchkeeper.toml, [[mcp]] 1: command, entry 2 should be a text in quotes, not 1",
        ),
        (
            '[[mcp]]\nname = "a"\nurl = "localhost:1"',
            "watchkeeper.toml, [[mcp]] 1: url should be a URL such as https://host:9090",
        ),
        (
            '[[mcp]]\nname = "a"\ncommand = ["x"]\nenv = { TOKEN = 1234 }',
            "watchkeeper.toml, [[mcp]] 1: env, TOKEN should be a text in quotes, not this",
        ),
        (
            '[[mcp]]\nname = "a b"\ncommand = ["x"]',
            'watchkeeper.toml, [[mcp]] 1: name "a b" should be 1 to 32 letters, digits, "-" or "_", '
            'without "__"',
        ),
        (
            '[[mcp]]\nname = "a"\ncommand = ["x"]\n[[mcp]]\nname = "a"\ncommand = ["y"]',
            'watchkeeper.toml, [[mcp]] 2: name "a" is taken by an earlier entry; choose another',
        ),
        (
            '[tools.x]\nclass = "reader"',
            'watchkeeper.toml, [tools.x]: class should be one of "read_only", "idempotent" or "side_effect",'
            ' not "reader"',
        ),
        (
            '[tools.x]\nclass = "idempotent"\ninterruptible = true',
            'watchkeeper.toml, [tools.x]: interruptible = true needs class = "read_only", not "idempotent"',
        ),
        ("[tools]\nx = 3", "watchkeeper.toml, [tools]: x should be a table: write [tools.x]"),
        (
            '[slack]\nresponders = ["ana"]',
            'watchkeeper.toml, [slack]: responders holds "ana", '
            "which is not a Slack user id such as U012AB3CD",
        ),
        ('[[policy]]\nrole = "guest"', 'watchkeeper.toml, [[policy]] 1: the key "effect" is missing'),
        (
            '[[policy]]\neffect = "steer"\nmarker = "soon"',
            "watchkeeper.toml, [[policy]] 1: marker, entry 1 should be one of "
            '"now", "later" or "none", not "soon"',
        ),
        (
            '[[policy]]\neffect = "deny"\nrole = []',
            "watchkeeper.toml, [[policy]] 1: role should be a list that is not empty; "
            "leave the key out instead, not []",
        ),
        (
            '[[policy]]\neffect = "steer"\nrunning = false',
            'watchkeeper.toml, [[policy]] 1: effect "steer" needs a running turn, '
            "but the rule holds only when idle",
        ),
        (
            "[[automation]]\nzzz = 1",
            'watchkeeper.toml, [[automation]] 1: unknown key "zzz"; this table has no keys yet',
        ),
    ],
)
def test_a_wrong_key_or_value_is_refused_with_its_place_and_the_mend(
    tmp_path: Path, toml: str, line: str
) -> None:
    assert refusal(tmp_path, toml) == line


@pytest.mark.parametrize(
    "toml, place",
    [
        ("[worker\n", "line 1, column 8"),
        ("[worker]\npoll_s = \n", "line 2, column 10"),
        ('[worker]\npoll_s = """\nabc', "line 3, column 4"),
        ("[worker]\npoll_s = 1\npoll_s = 2", "line 3, column 11"),
    ],
)
def test_a_file_that_is_not_toml_is_refused_with_line_and_column(
    tmp_path: Path, toml: str, place: str
) -> None:
    assert refusal(tmp_path, toml).startswith(f"watchkeeper.toml, {place}: not valid TOML: ")


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "watchkeeper.toml").write_bytes(b"[model]\nname = '\xff'")
    assert refusal(tmp_path) == "watchkeeper.toml, line 2: not UTF-8; save the file as UTF-8"


def test_a_named_file_is_read_instead_of_the_default_one(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[worker]\nmax_turns = 3")
    settings = given(tmp_path, "[worker]\nmax_turns = 2", WATCHKEEPER_CONFIG="other.toml")
    assert settings.file.worker.max_turns == 3


def test_secrets_are_known_to_the_redactor_and_shown_nowhere(tmp_path: Path) -> None:
    settings = given(
        tmp_path,
        '[[mcp]]\nname = "a"\ncommand = ["x"]\nenv = { API_TOKEN = "mcp-secret", LEVEL = "verbose" }',
        SLACK_BOT_TOKEN="xoxb-slack-secret",
        ANTHROPIC_API_KEY="sk-ant-secret",
        DATABASE_URL="postgresql://u:p%40ss-secret@db/w",
        REDIS_URL="redis://:redis-secret@host",
    )
    assert set(settings.secrets()) == {
        "xoxb-slack-secret",
        "sk-ant-secret",
        "p%40ss-secret",
        "p@ss-secret",
        "redis-secret",
        "mcp-secret",
    }
    shown = repr(settings.env) + str(settings.env) + str(settings.env.database)
    assert not any(secret in shown for secret in settings.secrets())


@pytest.mark.parametrize(
    "environ, words",
    [
        ({}, "SLACK_BOT_TOKEN is not set"),
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "SLACK_APP_TOKEN is not set"),
    ],
)
def test_slack_needs_a_bot_token_and_a_way_for_events_to_come(
    tmp_path: Path, environ: dict[str, str], words: str
) -> None:
    with pytest.raises(Unusable, match=words):
        require_slack(given(tmp_path, **environ))


@pytest.mark.parametrize("way", [{"SLACK_APP_TOKEN": "xapp-1"}, {"SLACK_SIGNING_SECRET": "0123"}])
def test_either_way_for_events_will_do(tmp_path: Path, way: dict[str, str]) -> None:
    require_slack(given(tmp_path, SLACK_BOT_TOKEN="xoxb-1", **way))


def test_a_model_needs_its_key(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="ANTHROPIC_API_KEY is not set"):
        require_model(given(tmp_path))
