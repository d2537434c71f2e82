"""What `watchkeeper doctor` looks at of the built-in tools. A failure says the mend."""

from __future__ import annotations

import asyncio

from bot.commands.findings import Check, Finding
from bot.settings import Settings

# Adapters are imported inside the checks: each loads a library, and they load while others wait.


def tool_checks() -> list[tuple[str, Check]]:
    """Names and checks in the order of the report."""
    return [
        ("Prometheus", _prometheus),
        ("logs", _logs),
        ("HTTP probe", _http),
        ("runbooks", _runbooks),
        ("deploys", _deploys),
    ]


async def _prometheus(settings: Settings) -> list[Finding]:
    import aiohttp  # noqa: PLC0415

    name, url = "Prometheus", settings.file.tools.prometheus.url
    if url is None:
        return [Finding.off(name, "set url in [tools.prometheus]")]
    try:
        async with (
            aiohttp.ClientSession(raise_for_status=True) as session,
            session.get(f"{url.rstrip('/')}/api/v1/status/buildinfo") as answer,
        ):
            version = (await answer.json(content_type=None))["data"]["version"]
    except aiohttp.ClientResponseError as error:
        return [Finding.failed(name, f"answered {error.status}; check url in [tools.prometheus]")]
    except (aiohttp.ClientError, OSError):
        return [Finding.failed(name, "cannot be reached; check url in [tools.prometheus]")]
    except (ValueError, KeyError, TypeError):
        return [Finding.failed(name, "that is no Prometheus; check url in [tools.prometheus]")]
    return [Finding.ok(name, f"version {version}")]


async def _logs(settings: Settings) -> list[Finding]:
    from bot.tools.logs_api import LogsApi, Refused  # noqa: PLC0415

    name, section = "logs", settings.file.tools.logs
    if section.url is None:
        return [Finding.off(name, "set url in [tools.logs]")]
    api = LogsApi(section.url, section.org, connect_s=None)  # the doctor has its own limit, and loads much
    try:
        labels = await api.labels({})
    except Refused as refused:
        return [Finding.failed(name, f"{refused.fact}; check url and org in [tools.logs]")]
    finally:
        await api.close()
    return [Finding.ok(name, f"{len(labels)} labels in the last hours")]


async def _http(settings: Settings) -> list[Finding]:
    from bot.tools.http_address import Allowed, NotAllowed  # noqa: PLC0415
    from bot.tools.http_fetch import resolved  # noqa: PLC0415

    name, section = "HTTP probe", settings.file.tools.http
    if not section.hosts:
        return [Finding.off(name, "set hosts in [tools.http]")]
    allowed, faults = Allowed(section.hosts, section.networks), []
    for host in section.hosts:
        try:
            target = allowed.target(f"http://{host}/")
            if target.address is None:
                allowed.addresses(target, await resolved(target.host, target.port))
        except NotAllowed as refusal:
            faults.append(str(refusal).partition(" and is not probed")[0])
        except OSError:
            faults.append(f"{host} does not resolve")
    if faults:
        mend = "correct hosts in [tools.http], or add a private network to networks"
        return [Finding.failed(name, f"{', '.join(faults)}; {mend}")]
    return [Finding.ok(name, f"{len(section.hosts)} hosts")]


async def _runbooks(settings: Settings) -> list[Finding]:
    from bot.tools.runbooks_folder import Folder, Unreadable  # noqa: PLC0415

    name, folder = "runbooks", settings.file.tools.runbooks.folder
    if folder is None:
        return [Finding.off(name, "set folder in [tools.runbooks]")]
    try:
        names = await asyncio.to_thread(Folder(settings.path(folder)).names)
    except Unreadable as fault:
        return [Finding.failed(name, f"{fault}; set folder in [tools.runbooks] to a folder of Markdown")]
    if not names:
        return [Finding.failed(name, f"{settings.path(folder)} holds no Markdown; put runbooks (*.md) there")]
    return [Finding.ok(name, f"{len(names)} runbooks")]


async def _deploys(settings: Settings) -> list[Finding]:
    from bot.tools.git import Git, GitFailed  # noqa: PLC0415

    name, repository = "deploys", settings.file.tools.deploys.repository
    if repository is None:
        return [Finding.off(name, "set repository in [tools.deploys]")]
    try:
        commit = await Git(settings.path(repository)).commit("HEAD")
    except GitFailed as failed:
        return [Finding.failed(name, f"{failed.fact}; check repository in [tools.deploys]")]
    return [Finding.ok(name, f"the newest commit is {commit[:12]}")]
