"""The Kubernetes manifests, read strictly: a key that stands twice is a fault, not the last one's victory."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from tests.architecture.sources import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")


class _Strict(yaml.SafeLoader):
    """Refuses doubled keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        doubled = {key for key in keys if keys.count(key) > 1}
        if doubled:
            raise yaml.constructor.ConstructorError(None, None, f"doubled: {doubled}", node.start_mark)
        return super().construct_mapping(node, deep)


def read(path: Path) -> Any:
    """The one document of a file."""
    [found] = yaml.load_all(path.read_text(encoding="utf-8"), _Strict)
    return found


def manifest(name: str) -> dict[str, Any]:
    """A manifest by the name of its file."""
    found: dict[str, Any] = read(FOLDER / f"{name}.yaml")
    return found


def pod() -> dict[str, Any]:
    """The pod that the Deployment makes."""
    found: dict[str, Any] = manifest("deployment")["spec"]["template"]["spec"]
    return found


def container() -> dict[str, Any]:
    """The pod's only container."""
    [found] = pod()["containers"]
    assert isinstance(found, dict)
    return found
