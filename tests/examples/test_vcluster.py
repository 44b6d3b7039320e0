"""The published examples of node providers and node claims, each alone in a fresh tenant.

They are other projects' files and stand beside the repository, not in it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from local.testing.memory_store import MemoryRegistry
from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.manifests import claim_manifest, provider_manifest
from stockyard.domain.nodes.node_types import formula_cost, read_resources
from stockyard.edge.http.yaml_body import parse
from stockyard.operations.engine.find import find_claim
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_providers.types import list_types
from stockyard.operations.node_providers.visible import find_provider
from stockyard.operations.services import Services
from tests.harness.worlds.ports import memory_services

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "examples" / "vcluster"
FILES = sorted(path for pattern in ("nodeprovider-*.yaml", "nodeclaim-*.yaml") for path in FOLDER.glob(pattern))

pytestmark = pytest.mark.skipif(not FILES, reason="the published examples are not beside this repository")


@pytest.fixture
def services() -> Services:
    """A tenant that has nothing."""
    return memory_services(MemoryRegistry())


def normal(document: dict[str, Any]) -> dict[str, Any]:
    """The normalizations of docs/objects.md, written down once more."""
    manifest = copy.deepcopy(document)
    manifest.pop("status", None)
    spec = manifest["spec"]
    if manifest["kind"] == "NodeClaim":
        spec.setdefault("controlPlane", False)
        return manifest
    if "kubeVirt" in spec:
        spec["kubeVirt"].setdefault("namespaceStrategy", "Provider")
    if "terraform" in spec:
        block = spec["terraform"]
        for template in (part.get("nodeTemplate") for part in (block, *block.get("nodeTypes", ()))):
            if template is not None:
                template.setdefault("timeout", "60m")
                if "git" in template:
                    template["git"].setdefault("fetchInterval", "5m")
    return manifest


@pytest.mark.parametrize("path", [path for path in FILES if "bcm:" not in path.read_text()], ids=lambda path: path.stem)
def test_an_example_applies_and_is_shown_as_it_came(services: Services, path: Path) -> None:
    documents = parse(path.read_bytes(), 32)
    spec = documents[0]["spec"]
    if any(kind in spec and provider_kinds.kind(kind).built for kind in provider_kinds.names()):
        pytest.skip("a document of a kind that is built needs its account: its tests are those of the kind")

    def desired() -> Any:
        return read_desired(services, documents, "user:ann", admin=True)

    assert len(plan_manifests(services, desired())["creates"]) == len(documents) == 1
    (result,) = apply_manifests(services, desired(), "user:ann", "req-1")
    assert result["action"] == "created"
    if result["kind"] == "NodeProvider":
        provider = find_provider(services, documents[0]["metadata"]["name"])
        manifest_shown = provider_manifest(provider)
        declared = documents[0]["spec"][provider.kind].get("nodeTypes", [])
        listed, _ = list_types(services, limit=200)
        assert sorted(type_view["type"] for type_view in listed) == sorted(type_view["name"] for type_view in declared)
        assert {(type_view["phase"], type_view["reason"]) for type_view in listed} <= {
            ("Pending", "ProviderNotAvailable")
        }
        assert "are not built yet" in result["warnings"][0]["detail"]
    else:
        claim = find_claim(services, documents[0]["metadata"]["name"])
        manifest_shown = claim_manifest(claim)
        assert claim.phase == "Pending"
    assert manifest_shown == normal(documents[0])
    (again,) = apply_manifests(services, desired(), "user:ann", "req-2")
    assert again["action"] == "unchanged"


def test_there_are_examples_of_each_kind() -> None:
    fields_used = {name for path in FILES for name in parse(path.read_bytes(), 32)[0]["spec"]}
    assert {"terraform", "kubeVirt", "bcm", "metal3", "vClusterRef"} <= fields_used


def test_the_published_costs() -> None:
    for case in json.loads((FOLDER / "golden-cost.json").read_text(encoding="utf-8")):
        assert formula_cost(read_resources(case["resources"])) == case["cost"]
