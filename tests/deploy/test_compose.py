"""The compose file: no copy of the specification's schema is at hand, so its keys and facts are held here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bot.compose import service
from bot.settings.environment import VARIABLES, read
from bot.settings.sections import Configuration
from bot.web import server
from tests.architecture.sources import ROOT
from tests.deploy.dockerfile import stages
from tests.deploy.manifests import pod
from tests.deploy.manifests import read as read_strictly

FILE = ROOT / "deploy" / "compose.yaml"
COMPOSE: dict[str, Any] = read_strictly(FILE)
EXAMPLE = (ROOT / "deploy" / ".env.example").read_text()
OFFERED = re.findall(r"^([A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE)

KEYS = {
    "": {"name", "services", "networks", "volumes"},
    "service": {
        "build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image", "networks",
        "ports", "read_only", "restart", "scale", "security_opt", "shm_size", "stop_grace_period", "tmpfs",
        "user", "volumes",
    },
    "healthcheck": {"test", "interval", "timeout", "retries", "start_period"},
    "depends_on": {"condition"},
}  # fmt: skip
"""The keys of the compose specification that are used: https://github.com/compose-spec/compose-spec"""


def wrong_keys(compose: dict[str, Any]) -> set[str]:
    """Keys that stand where the specification has none of that name."""
    services: list[dict[str, Any]] = list(compose["services"].values())
    found = set(compose) - KEYS[""]
    for one in services:
        found |= set(one) - KEYS["service"]
        found |= set(one.get("healthcheck", {})) - KEYS["healthcheck"]
        found |= {key for on in one.get("depends_on", {}).values() for key in set(on) - KEYS["depends_on"]}
    return found


def test_every_key_is_one_of_the_specification() -> None:
    assert wrong_keys(COMPOSE) == set()


@pytest.mark.parametrize("wrong", ["stop_grace_periods", "health_check", "env-file"])
def test_a_wrong_key_is_refused(wrong: str) -> None:
    services = {**COMPOSE["services"], "more": {wrong: 1}}
    assert wrong_keys({**COMPOSE, "services": services}) == {wrong}


def test_what_is_referred_to_is_there() -> None:
    services = COMPOSE["services"]
    for name, one in services.items():
        assert set(one.get("depends_on", {})) <= set(services), name
        assert set(one["networks"]) <= set(COMPOSE["networks"]), name
        assert {volume.split(":")[0] for volume in one.get("volumes", [])} <= set(COMPOSE["volumes"]), name
    assert (FILE.parent / services["watchkeeper"]["build"] / "Dockerfile").exists()


def test_two_processes_run_and_each_has_a_port_on_this_machine_only() -> None:
    ours = COMPOSE["services"]["watchkeeper"]
    [port] = ours["ports"]
    first, last, inside = re.fullmatch(r"127\.0\.0\.1:(\d+)-(\d+):(\d+)", port).groups()  # type: ignore[union-attr]
    assert int(last) - int(first) + 1 == ours["scale"] == 2
    assert inside == stages()[-1].last("EXPOSE")


def seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+)s", text)
    assert found, text
    return float(found[1])


def test_a_stop_waits_as_long_as_a_drain_takes_and_as_long_as_kubernetes_would() -> None:
    grace = seconds(COMPOSE["services"]["watchkeeper"]["stop_grace_period"])
    assert grace == pod()["terminationGracePeriodSeconds"]
    assert grace > Configuration().worker.drain_timeout_s + 2 * service.LAST_WORDS_S + server.SHUTDOWN_S


def test_the_command_in_the_readme_waits_as_long() -> None:
    [found] = re.findall(r"--stop-timeout (\d+)", (ROOT / "README.md").read_text())
    assert int(found) == pod()["terminationGracePeriodSeconds"]


def test_every_service_is_looked_after_and_started_again() -> None:
    for name, one in COMPOSE["services"].items():
        assert one["restart"] == "unless-stopped", name
        assert "healthcheck" in one or (name == "watchkeeper" and stages()[-1].all("HEALTHCHECK")), name


def test_postgres_is_waited_for_and_the_bell_is_not() -> None:
    on = COMPOSE["services"]["watchkeeper"]["depends_on"]
    assert {name: entry["condition"] for name, entry in on.items()} == {
        "postgres": "service_healthy",
        "valkey": "service_started",
    }


def test_ours_is_confined_as_in_kubernetes() -> None:
    ours = COMPOSE["services"]["watchkeeper"]
    assert ours["read_only"] is True
    assert ours["cap_drop"] == ["ALL"]
    assert ours["security_opt"] == ["no-new-privileges:true"]
    assert ours["user"] == stages()[-1].last("USER")
    assert [mount.split(":")[0] for mount in ours["tmpfs"]] == ["/tmp"]


def test_neither_database_nor_bell_can_be_reached_from_outside() -> None:
    assert COMPOSE["networks"]["inside"]["internal"] is True
    for name in ("postgres", "valkey"):
        assert COMPOSE["services"][name]["networks"] == ["inside"]
        assert "ports" not in COMPOSE["services"][name]


def test_the_records_outlive_the_containers_and_lie_where_this_postgres_keeps_them() -> None:
    """From 18 on the image keeps each major version in a folder of its own below this one."""
    postgres = COMPOSE["services"]["postgres"]
    assert int(postgres["image"].split(":")[1]) >= 18
    assert postgres["volumes"] == ["postgres:/var/lib/postgresql"]


# --- secrets ------------------------------------------------------------------------------------------------

NAMED = re.compile(r"\$\{([A-Z_]+)(:\?|:-)([^}]*)\}")


def test_no_secret_stands_in_the_file_and_the_example_is_empty() -> None:
    assert {value for _, value in OFFERED} == {""}
    assert {name for name, _, _ in NAMED.findall(FILE.read_text())} == {name for name, _ in OFFERED}
    secret = {variable.name for variable in VARIABLES if variable.secret} | {"POSTGRES_PASSWORD"}
    for one in COMPOSE["services"].values():
        for name, value in one.get("environment", {}).items():
            literal = NAMED.sub("", value)
            if "://" in literal:
                assert not urlsplit(literal).password, name
            else:
                assert name not in secret or not literal, name


def test_what_cannot_be_done_without_is_asked_for_before_anything_starts() -> None:
    asked = {name for name, how, _ in NAMED.findall(FILE.read_text()) if how == ":?"}
    assert asked == {"POSTGRES_PASSWORD", "SLACK_BOT_TOKEN", "ANTHROPIC_API_KEY"}


def test_what_compose_sets_is_what_the_program_reads(tmp_path: Path) -> None:
    filled = {
        "POSTGRES_PASSWORD": "0a1b",
        "SLACK_BOT_TOKEN": "xoxb-1",
        "SLACK_APP_TOKEN": "xapp-1",
        "ANTHROPIC_API_KEY": "key",
    }
    given = {
        name: NAMED.sub(lambda match: filled.get(match[1], ""), value)
        for name, value in COMPOSE["services"]["watchkeeper"]["environment"].items()
    }
    assert set(given) <= {variable.name for variable in VARIABLES}
    env = read(given, tmp_path)
    assert str(env.database) == "Postgres at postgres/watchkeeper"
    assert env.host == "0.0.0.0"
    assert env.slack_signing_secret is None


def test_each_service_is_given_its_own_secrets_only() -> None:
    assert set(COMPOSE["services"]["postgres"]["environment"]) == {
        "POSTGRES_USER",
        "POSTGRES_DB",
        "POSTGRES_PASSWORD",
    }
    assert "environment" not in COMPOSE["services"]["valkey"]
    assert all("env_file" not in one for one in COMPOSE["services"].values())


def test_filled_in_copies_of_the_examples_are_ignored_by_git() -> None:
    ignored = (ROOT / "deploy" / ".gitignore").read_text().splitlines()
    assert {".env", "kubernetes/secret.yaml"} <= set(ignored)


def test_the_image_is_the_one_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert COMPOSE["services"]["watchkeeper"]["image"] == f"{project['name']}:{project['version']}"
