"""The published examples of node providers and node claims, each alone in a fresh tenant.

They are other projects' files and stand beside the repository, not in it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from local.memory import (
    FixedClock,
    MemoryDeployer,
    MemoryIdentity,
    MemoryProver,
    MemorySecrets,
    MemoryWorkflows,
)
from local.memory_store import MemoryRegistry
from stockyard.domain.manifests import claim_manifest, provider_manifest
from stockyard.domain.node_types import formula_cost, read_resources
from stockyard.edge.yaml_body import parse
from stockyard.operations.apply_manifests import apply_manifests, plan_manifests
from stockyard.operations.claims import find_claim
from stockyard.operations.manifest_wishes import read_wishes
from stockyard.operations.node_types import list_types
from stockyard.operations.services import Services
from stockyard.operations.visible_providers import find_provider

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "examples" / "vcluster"
FILES = sorted(path for pattern in ("nodeprovider-*.yaml", "nodeclaim-*.yaml") for path in FOLDER.glob(pattern))

pytestmark = pytest.mark.skipif(not FILES, reason="the published examples are not beside this repository")


@pytest.fixture
def services() -> Services:
    """A tenant that has nothing."""
    return Services(
        store=MemoryRegistry().store("fresh"),
        clock=FixedClock(),
        identity=MemoryIdentity(),
        secrets=MemorySecrets(),
        workflows=MemoryWorkflows(),
        deployer=MemoryDeployer(),
        prover=MemoryProver(),
        providers={},
        verifiers={},
        prices=None,  # type: ignore[arg-type] # nothing here has a price
        installation="i",
    )


def normal(document: dict[str, Any]) -> dict[str, Any]:
    """The normalizations of docs/objects.md, written down once more."""
    found = copy.deepcopy(document)
    found.pop("status", None)
    spec = found["spec"]
    if found["kind"] == "NodeClaim":
        spec.setdefault("controlPlane", False)
        return found
    if "kubeVirt" in spec:
        spec["kubeVirt"].setdefault("namespaceStrategy", "Provider")
    if "terraform" in spec:
        block = spec["terraform"]
        for template in (one.get("nodeTemplate") for one in (block, *block.get("nodeTypes", ()))):
            if template is not None:
                template.setdefault("timeout", "60m")
                if "git" in template:
                    template["git"].setdefault("fetchInterval", "5m")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_applies_and_is_shown_as_it_came(services: Services, path: Path) -> None:
    documents = parse(path.read_bytes(), 32)

    def wishes() -> Any:
        return read_wishes(services, documents, "user:ann", admin=True)

    assert len(plan_manifests(services, wishes())["creates"]) == len(documents) == 1
    (result,) = apply_manifests(services, wishes(), "user:ann", "req-1")
    assert result["action"] == "created"
    if result["kind"] == "NodeProvider":
        provider = find_provider(services, documents[0]["metadata"]["name"])
        shown = provider_manifest(provider)
        declared = documents[0]["spec"][provider.kind].get("nodeTypes", [])
        listed, _ = list_types(services, limit=200)
        assert sorted(one["type"] for one in listed) == sorted(one["name"] for one in declared)
        assert {(one["phase"], one["reason"]) for one in listed} <= {("Pending", "ProviderNotAvailable")}
        assert bool(result["warnings"]) == (not declared)
    else:
        claim = find_claim(services, documents[0]["metadata"]["name"])
        shown = claim_manifest(claim)
        assert claim.phase == "Pending"
    assert shown == normal(documents[0])
    (again,) = apply_manifests(services, wishes(), "user:ann", "req-2")
    assert again["action"] == "unchanged"


def test_there_are_examples_of_each_kind() -> None:
    given = {name for path in FILES for name in parse(path.read_bytes(), 32)[0]["spec"]}
    assert {"terraform", "kubeVirt", "bcm", "metal3", "vClusterRef"} <= given


def test_the_published_costs() -> None:
    for case in json.loads((FOLDER / "golden-cost.json").read_text(encoding="utf-8")):
        assert formula_cost(read_resources(case["resources"])) == case["cost"]
