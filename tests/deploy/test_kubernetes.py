"""The manifests obey Kubernetes' own schemas, strictly, and agree with each other and with the program."""

from __future__ import annotations

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from bot.compose import service
from bot.errors import Unusable
from bot.settings import load
from bot.settings.environment import VARIABLES, read
from bot.settings.sections import Configuration
from bot.web import server
from tests.architecture.sources import ROOT
from tests.deploy import manifests
from tests.deploy.dockerfile import stages
from tests.deploy.manifests import FILES, FOLDER, container, manifest, pod

VERSIONS = ("1.31", "1.34", kubernetes_validate.latest_version())
"""The oldest that these manifests are for, one between, and the newest whose schemas are at hand."""

KEEPERS = 2
"""Cards and answers: each gets its last words after the drain (`_Service._end`)."""
TOOL_SERVERS_S = 5
"""A tool server ends within the MCP library's patience of 2 + 2 s; see bot/tools/guard.py."""

FINAL = stages()[-1]
KINDS = [path.stem for path in FILES]


# --- the schemas --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", KINDS)
def test_a_manifest_is_valid(name: str, version: str) -> None:
    kubernetes_validate.validate(manifest(name), version, strict=True)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all objects in a manifest whose keys are fixed by the schema."""
    free = {
        "labels",
        "annotations",
        "matchLabels",
        "data",
        "stringData",
        "limits",
        "requests",
        "nodeSelector",
    }
    found: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        found.append(path)
        for key, below in value.items():
            found += [] if key in free else places(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += places(below, (*path, index))
    return found


@pytest.mark.parametrize("name", KINDS)
def test_a_key_that_does_not_exist_is_refused_wherever_it_stands(name: str) -> None:
    # Of a list's entries that look alike, one is enough.
    alike = {tuple(step for step in path if isinstance(step, str)): path for path in places(manifest(name))}
    for path in alike.values():
        wrong = copy.deepcopy(manifest(name))
        place = wrong
        for step in path:
            place = place[step]
        place["replicsa"] = 1
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_a_value_of_the_wrong_type_is_refused() -> None:
    wrong = manifest("deployment")
    wrong["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = "90s"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.yaml").write_text("spec:\n  replicas: 3\n  replicas: 1\n")
    with pytest.raises(yaml.YAMLError, match="doubled"):
        manifests.read(tmp_path / "twice.yaml")


# --- ending -------------------------------------------------------------------------------------------------


def configured() -> Configuration:
    return Configuration.model_validate(tomllib.loads(manifest("configmap")["data"]["watchkeeper.toml"]))


def test_a_pod_is_given_the_time_that_a_drain_takes_and_little_more() -> None:
    after = KEEPERS * service.LAST_WORDS_S + server.SHUTDOWN_S + TOOL_SERVERS_S
    needed = configured().worker.drain_timeout_s + after
    assert needed + 5 <= pod()["terminationGracePeriodSeconds"] <= needed + 30


def test_the_service_sends_events_also_to_what_is_not_ready_so_nothing_sleeps_before_a_drain() -> None:
    assert manifest("service")["spec"]["publishNotReadyAddresses"] is True
    assert "lifecycle" not in container()


def test_a_rolling_update_starts_the_new_before_it_ends_the_old() -> None:
    strategy = manifest("deployment")["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def test_a_disruption_takes_one_at_a_time_and_nodes_drain_also_while_none_is_ready() -> None:
    budget = manifest("poddisruptionbudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert manifest("deployment")["spec"]["replicas"] > 1


# --- probes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "probe, path",
    [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")],
)
def test_a_probe_asks_what_it_is_for(probe: str, path: str) -> None:
    """`test_image.py` asks the running program these paths."""
    asked = container()[probe]["httpGet"]
    assert asked == {"path": path, "port": "http"}


def test_prometheus_is_told_where_the_numbers_are() -> None:
    annotations = manifest("deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": FINAL.last("EXPOSE"),
        "prometheus.io/path": "/metrics",
    }


# --- rights -------------------------------------------------------------------------------------------------


def test_the_pod_is_what_the_restricted_standard_allows() -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    labels = manifest("namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(pod())
    assert all(set(volume) - {"name"} <= {"configMap", "emptyDir"} for volume in pod()["volumes"])


def test_the_pod_runs_as_the_user_of_the_image() -> None:
    user, group = map(int, FINAL.last("USER").split(":"))
    context = pod()["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (user, group, group)


def test_no_key_to_the_cluster_is_given_to_a_program_that_needs_none() -> None:
    assert manifest("serviceaccount")["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["serviceAccountName"] == manifest("serviceaccount")["metadata"]["name"]


def test_only_tmp_is_writable_and_it_is_where_the_image_puts_its_caches() -> None:
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    writable = [mount for mount in container()["volumeMounts"] if not mount.get("readOnly")]
    assert [mount["mountPath"] for mount in writable] == ["/tmp"]
    assert "emptyDir" in volumes[writable[0]["name"]]


# --- environment --------------------------------------------------------------------------------------------


def given() -> dict[str, Any]:
    return {entry["name"]: entry for entry in container()["env"]}


def test_every_variable_is_one_that_the_program_reads_and_only_secrets_come_from_the_secret() -> None:
    known = {variable.name: variable for variable in VARIABLES}
    assert set(given()) <= set(known)
    for name, entry in given().items():
        assert ("valueFrom" in entry) == known[name].secret, name


def test_what_the_example_secret_may_hold_is_what_the_pod_asks_for() -> None:
    example = (FOLDER / "secret.example.yaml").read_text()
    offered = set(re.findall(r"^  (?:# )?([A-Z_]+): replace me$", example, re.MULTILINE))
    asked = {
        name
        for name, entry in given().items()
        if entry.get("valueFrom", {}).get("secretKeyRef", {}).get("name")
        == manifest("secret.example")["metadata"]["name"]
    }
    assert offered == asked == {name for name, entry in given().items() if "valueFrom" in entry}


def test_a_pod_does_not_start_without_what_it_cannot_do_without() -> None:
    """Without DATABASE_URL each process would look for a SQLite file of its own."""
    needed = {
        name
        for name, entry in given().items()
        if "valueFrom" in entry and not entry["valueFrom"]["secretKeyRef"].get("optional")
    }
    assert needed == {"DATABASE_URL", "SLACK_BOT_TOKEN", "ANTHROPIC_API_KEY"}


@pytest.mark.parametrize("name", sorted(manifest("secret.example")["stringData"]))
def test_a_placeholder_that_was_forgotten_ends_the_start(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unusable, match=f"^{name}: "):
        read({name: manifest("secret.example")["stringData"][name]}, tmp_path)


def test_the_configuration_is_mounted_where_it_is_looked_for_and_can_be_read(tmp_path: Path) -> None:
    path = Path(given()["WATCHKEEPER_CONFIG"]["value"])
    [mount] = [one for one in container()["volumeMounts"] if one["mountPath"] == str(path.parent)]
    [volume] = [one for one in pod()["volumes"] if one["name"] == mount["name"]]
    assert volume["configMap"]["name"] == manifest("configmap")["metadata"]["name"]
    (tmp_path / path.name).write_text(manifest("configmap")["data"][path.name])
    load({"WATCHKEEPER_CONFIG": str(tmp_path / path.name)}, tmp_path)


def test_it_listens_at_every_address_on_the_port_that_everything_else_names() -> None:
    [port] = container()["ports"]
    assert given()["WATCHKEEPER_HOST"]["value"] == "0.0.0.0"
    assert given()["WATCHKEEPER_PORT"]["value"] == str(port["containerPort"]) == FINAL.last("EXPOSE")
    assert manifest("service")["spec"]["ports"][0]["targetPort"] == port["name"]
    [incoming] = manifest("networkpolicy")["spec"]["ingress"]
    assert incoming["ports"] == [{"protocol": "TCP", "port": port["name"]}]


def test_the_services_name_does_not_overwrite_the_port(tmp_path: Path) -> None:
    """Kubernetes would set NAME_PORT for every Service, and ours is called like the program."""
    name = manifest("service")["metadata"]["name"].upper() + "_PORT"
    with pytest.raises(Unusable, match="WATCHKEEPER_PORT"):
        read({name: "tcp://10.0.0.7:8080"}, tmp_path)
    assert pod()["enableServiceLinks"] is False


# --- one deployment -----------------------------------------------------------------------------------------


def test_everything_that_selects_selects_the_pods() -> None:
    spec = manifest("deployment")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert manifest("service")["spec"]["selector"] == labels
    assert manifest("poddisruptionbudget")["spec"]["selector"]["matchLabels"] == labels
    assert manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"] == labels
    assert all(one["labelSelector"]["matchLabels"] == labels for one in pod()["topologySpreadConstraints"])


def test_everything_lies_in_the_namespace() -> None:
    name = manifest("namespace")["metadata"]["name"]
    assert {manifest(kind)["metadata"].get("namespace", name) for kind in KINDS} == {name}


def test_the_image_is_the_one_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert container()["image"] == f"{project['name']}:{project['version']}"
    assert "command" not in container()


def test_what_may_go_out_is_names_the_database_the_bell_and_https() -> None:
    rules = manifest("networkpolicy")["spec"]["egress"]
    ports = [sorted((one["protocol"], one["port"]) for one in rule["ports"]) for rule in rules]
    assert ports == [[("TCP", 53), ("UDP", 53)], [("TCP", 5432), ("TCP", 6379)], [("TCP", 443)]]
    assert manifest("networkpolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_kustomize_takes_every_file_but_the_example_of_a_secret() -> None:
    """Its own schema is not among those at hand; what it names is."""
    listed = manifests.read(FOLDER / "kustomization.yaml")
    assert set(listed) == {"apiVersion", "kind", "images", "resources"}
    assert sorted(listed["resources"]) == [path.name for path in FILES if path.name != "secret.example.yaml"]


def test_the_tag_to_change_stands_in_one_place_and_is_this_version() -> None:
    [image] = manifests.read(FOLDER / "kustomization.yaml")["images"]
    assert image.keys() == {"name", "newName", "newTag"}
    name, _, tag = container()["image"].partition(":")
    assert (image["name"], image["newTag"]) == (name, tag)
