"""docs/operations.md says what is so: every alarm has its chapter, numbers and names are the program's."""

from __future__ import annotations

import re
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from bot.cli import watchkeeper
from storage.postgres_engine import POOL_SIZE
from tests.architecture.sources import ROOT
from tests.deploy.manifests import manifest, pod
from tests.deploy.test_kubernetes import VERSIONS

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
ALERTS: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]


def anchor(heading: str) -> str:
    """The address of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def chapters(page: str = PAGE) -> dict[str, str]:
    """What stands below each heading, by its anchor."""
    pieces = re.split(r"^#+ (.+)$", page, flags=re.MULTILINE)
    return {anchor(heading): text for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)}


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_an_alarm_has_its_chapter_which_names_it(rule: dict[str, Any]) -> None:
    file, _, place = rule["annotations"]["runbook"].partition("#")
    assert file == "docs/operations.md"
    assert chapters()[place].strip().startswith(f"`{rule['alert']}`")


def test_no_chapter_is_left_of_an_alarm_that_is_gone() -> None:
    assert set(re.findall(r"`(Watchkeeper\w+)`", PAGE)) == {rule["alert"] for rule in ALERTS}


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGE):
        file, _, place = target.partition("#")
        page = (ROOT / "docs" / file).read_text(encoding="utf-8") if file else PAGE
        assert not place or place in chapters(page), target


def test_every_path_that_is_named_exists() -> None:
    named = set(re.findall(r"\b(?:deploy|storage|tests)/[\w./-]*\w", PAGE))
    made = {
        "deploy/.env",
        "deploy/kubernetes/secret.yaml",
        "deploy/watchkeeper",
    }  # by the reader, and not a path
    assert {path for path in named - made if not (ROOT / path).exists()} == set()


def test_every_number_for_prometheus_that_is_named_is_one() -> None:
    known = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(watchkeeper_\w+)`", PAGE):
        assert f"| `{name}` |" in known


def test_every_command_that_is_named_is_one() -> None:
    named = set(re.findall(r"(?:`|-- )watchkeeper (\w+)", PAGE))
    assert named >= {"serve", "doctor", "settles", "show"}
    assert named <= set(watchkeeper.commands)


def test_connections_are_counted_as_the_program_opens_them() -> None:
    assert f"| {POOL_SIZE + 1} in each process: a pool of {POOL_SIZE}, and one that looks out |" in PAGE
    assert f"{POOL_SIZE + 1} × (`replicas` + 1)" in PAGE


def test_memory_is_what_was_measured() -> None:
    measured = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    [before] = re.findall(r"\| memory before the first analysis \| (\d+ MiB)", measured)
    [after] = re.findall(r"\| memory after it \| (\d+ MiB)", measured)
    assert f"{before} after the start, {after} after the first analysis" in PAGE


def test_the_grace_period_is_the_one_of_the_manifests() -> None:
    assert f"The manifests give {pod()['terminationGracePeriodSeconds']} s in all" in PAGE


def test_the_versions_are_those_that_the_manifests_are_held_to() -> None:
    short = [".".join(version.split(".")[:2]) for version in VERSIONS]
    assert f"Kubernetes {short[0]}, {short[1]} and {short[2]}" in re.sub(r"\s+", " ", PAGE)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_sketched_ingress_is_valid_and_leads_to_the_service(version: str) -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    ingress = yaml.safe_load(block)
    kubernetes_validate.validate(ingress, version, strict=True)
    [path] = ingress["spec"]["rules"][0]["http"]["paths"]
    service = manifest("service")
    assert ingress["metadata"]["namespace"] == service["metadata"]["namespace"]
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]
    assert path["backend"]["service"]["port"]["name"] in {one["name"] for one in service["spec"]["ports"]}
    assert (path["path"], path["pathType"]) == ("/slack/events", "Exact")
