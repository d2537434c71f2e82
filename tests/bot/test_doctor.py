"""The doctor asks the real things, each on its wire, and says of each what works or how to mend it."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from bot.commands.doctor import examine
from bot.commands.findings import Finding, State
from bot.settings import load
from bot.web.server import Server
from storage import schema
from tests.servers import valkey
from tests.servers.anthropic.reply import invalid_key, reply
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.loki import LokiServer
from tests.servers.slack import SlackServer

PROBE = Path(__file__).parents[1] / "servers" / "mcp_probe.py"


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
async def anthropic() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def prometheus() -> AsyncIterator[str]:
    """The one answer of Prometheus that is asked for."""

    async def buildinfo(_: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": {"version": "2.53.3"}})

    app = web.Application()
    app.router.add_get("/api/v1/status/buildinfo", buildinfo)
    server = await Server.start(app, host="127.0.0.1", port=0)
    yield f"http://127.0.0.1:{server.address[1]}"
    await server.close()


@pytest.fixture
async def loki() -> AsyncIterator[LokiServer]:
    async with LokiServer() as server:
        server.push({"app": "shop"}, (time.time() - 60, "hello"))
        yield server


def make_runbooks_and_repository(folder: Path) -> None:
    (folder / "runbooks").mkdir()
    (folder / "runbooks" / "pool.md").write_text("# Pool")
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", "init", "-q", str(folder / "app")], check=True)
    subprocess.run(
        ["git", "-C", str(folder / "app"), *who, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True
    )


async def found(folder: Path, toml: str = "", **environ: str) -> dict[str, Finding]:
    (folder / "watchkeeper.toml").write_text(toml)
    findings = await examine(load(environ, folder), limit_s=50)  # a busy machine is no finding
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: finding for finding in findings}


async def test_everything_that_works_is_said_to_work(
    tmp_path: Path, slack: SlackServer, anthropic: AnthropicServer, prometheus: str, loki: LokiServer
) -> None:
    anthropic.script(reply("Yes."))
    await schema.upgrade(load({}, tmp_path).database_url)
    make_runbooks_and_repository(tmp_path)
    command = [sys.executable, str(PROBE), "--log", str(tmp_path / "probe.log")]
    findings = await found(
        tmp_path,
        f'[tools.prometheus]\nurl = "{prometheus}"\n[tools.logs]\nurl = "{loki.url}"\n'
        f'[tools.http]\nhosts = ["127.0.0.1:9", "localhost:9"]\nnetworks = ["127.0.0.0/8", "::1/128"]\n'
        f'[tools.runbooks]\nfolder = "runbooks"\n[tools.deploys]\nrepository = "app"\n'
        f'[[mcp]]\nname = "probe"\ncommand = {command}\n',
        SLACK_API_URL=slack.api_url,
        SLACK_BOT_TOKEN=slack.bot_token,
        SLACK_APP_TOKEN=slack.app_token,
        ANTHROPIC_API_KEY="sk-test",
        ANTHROPIC_BASE_URL=anthropic.url,
    )
    assert {name: finding.state for name, finding in findings.items()} == dict.fromkeys(
        (
            "settings",
            "database",
            "Slack bot token",
            "Slack events",
            "model",
            "Prometheus",
            "logs",
            "HTTP probe",
            "runbooks",
            "deploys",
            "tool server probe",
        ),
        State.OK,
    ), findings
    assert findings["Prometheus"].words == "version 2.53.3"
    assert findings["Slack events"].words == "over Socket Mode"
    assert findings["tool server probe"].words.endswith(" tools")


async def test_a_missing_scope_is_named(tmp_path: Path, slack: SlackServer) -> None:
    slack.scopes.discard("reactions:write")
    findings = await found(tmp_path, SLACK_API_URL=slack.api_url, SLACK_BOT_TOKEN=slack.bot_token)
    assert findings["Slack bot token"] == Finding.failed(
        "Slack bot token", "scopes are missing: reactions:write; add them and install the app again"
    )


async def test_rejected_tokens_are_told_with_slacks_own_word(tmp_path: Path, slack: SlackServer) -> None:
    findings = await found(
        tmp_path,
        SLACK_API_URL=slack.api_url,
        SLACK_BOT_TOKEN="xoxb-nobody",
        SLACK_APP_TOKEN="xapp-nobody",
    )
    for name in ("Slack bot token", "Slack events"):
        assert findings[name].state is State.FAILED
        assert "invalid_auth" in findings[name].words


async def test_a_bot_without_a_way_for_events_to_come_is_told(tmp_path: Path, slack: SlackServer) -> None:
    findings = await found(tmp_path, SLACK_API_URL=slack.api_url, SLACK_BOT_TOKEN=slack.bot_token)
    assert findings["Slack events"].state is State.FAILED
    assert "SLACK_APP_TOKEN or SLACK_SIGNING_SECRET" in findings["Slack events"].words


async def test_a_signing_secret_is_a_way_for_events_to_come(tmp_path: Path) -> None:
    assert (await found(tmp_path, SLACK_SIGNING_SECRET="0123"))["Slack events"].state is State.OK


async def test_a_rejected_model_key_is_told(tmp_path: Path, anthropic: AnthropicServer) -> None:
    anthropic.script(invalid_key())
    findings = await found(tmp_path, ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=anthropic.url)
    assert findings["model"].state is State.FAILED
    assert "ANTHROPIC_API_KEY" in findings["model"].words


async def test_the_models_question_is_marked_as_no_step(tmp_path: Path, anthropic: AnthropicServer) -> None:
    anthropic.script(reply("Yes."))
    await found(tmp_path, ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=anthropic.url)
    (asked,) = anthropic.requests
    assert asked.headers["x-watchkeeper-purpose"] == "doctor"


async def test_something_that_is_no_prometheus_is_told_apart(
    tmp_path: Path, anthropic: AnthropicServer
) -> None:
    findings = await found(tmp_path, f'[tools.prometheus]\nurl = "{anthropic.url}"\n')
    assert findings["Prometheus"].state is State.FAILED
    assert "check url in [tools.prometheus]" in findings["Prometheus"].words


async def test_a_loki_that_wants_a_tenant_is_told_with_the_key_to_set(
    tmp_path: Path, loki: LokiServer
) -> None:
    loki.org = "shop"
    toml = f'[tools.logs]\nurl = "{loki.url}"\n'
    finding = (await found(tmp_path, toml))["logs"]
    assert finding.state is State.FAILED
    assert finding.words == "HTTP 401: no org id; check url and org in [tools.logs]"
    assert (await found(tmp_path, toml + 'org = "shop"\n'))["logs"] == Finding.ok(
        "logs", "1 labels in the last hours"
    )


async def test_a_name_that_may_not_be_probed_is_told_with_the_key_to_set(tmp_path: Path) -> None:
    finding = (await found(tmp_path, '[tools.http]\nhosts = ["localhost:9"]\n'))["HTTP probe"]
    assert finding.state is State.FAILED
    assert "which is loopback; correct hosts in [tools.http], or add a private network" in finding.words


async def test_folders_that_are_not_there_are_told_with_the_key_to_set(tmp_path: Path) -> None:
    toml = '[tools.runbooks]\nfolder = "nothing"\n[tools.deploys]\nrepository = "nothing"\n'
    findings = await found(tmp_path, toml)
    assert findings["runbooks"].state is findings["deploys"].state is State.FAILED
    assert findings["runbooks"].words.endswith("set folder in [tools.runbooks] to a folder of Markdown")
    assert findings["deploys"].words.endswith("is no Git repository; check repository in [tools.deploys]")
    (tmp_path / "nothing").mkdir()
    assert "holds no Markdown" in (await found(tmp_path, toml))["runbooks"].words


async def test_what_gives_no_answer_is_given_up_and_holds_nothing_up(tmp_path: Path) -> None:
    over = asyncio.Event()

    async def never(_: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", never)
    server = await Server.start(app, host="127.0.0.1", port=0)
    (tmp_path / "watchkeeper.toml").write_text(
        f'[tools.prometheus]\nurl = "http://127.0.0.1:{server.address[1]}"\n'
    )
    findings = {f.name: f for f in await examine(load({}, tmp_path), limit_s=0.3)}
    over.set()
    await server.close()
    assert findings["Prometheus"].words.startswith("no answer within 0.3 s")
    assert findings["settings"].state is State.OK


async def test_a_redis_that_works_is_said_to_work(tmp_path: Path) -> None:
    url = valkey.shared().fresh_url()
    where = f"127.0.0.1:{valkey.shared().port}"
    assert (await found(tmp_path, REDIS_URL=url))["Redis"] == Finding.ok("Redis", f"{where}, carries bells")


async def test_without_a_redis_nothing_is_said_of_one(tmp_path: Path) -> None:
    assert "Redis" not in await found(tmp_path)


@pytest.mark.parametrize(
    "url, words",
    [
        (
            "redis://:hunter2hunter2@127.0.0.1:1",
            "cannot be reached at 127.0.0.1:1 (Connection refused); check that it runs, and REDIS_URL",
        ),
        (
            "redis://:hunter2hunter2@host?nonsense=1",
            "REDIS_URL: is not a URL that can be used; write it like redis://host:6379/0",
        ),
    ],
)
async def test_a_redis_that_cannot_be_used_is_named_with_the_mend(
    tmp_path: Path, url: str, words: str
) -> None:
    assert (await found(tmp_path, REDIS_URL=url))["Redis"] == Finding.failed("Redis", words)
