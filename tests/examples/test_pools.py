"""The published examples of pools: vcluster.yaml documents and NodePools. Each is read and shown as it came but for
what docs/pool-documents.md lists, or refused in the words that are documented.

They are other projects' files and stand beside the repository, not in it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from stockyard.domain.models.pools.node_pools import read_node_pool
from stockyard.domain.models.pools.read_vcluster import read_vcluster
from stockyard.domain.pools.manifests import pool_manifest, vcluster_document
from stockyard.edge.http.yaml_body import parse
from stockyard.errors import InvalidInput, MalformedBody
from stockyard.operations.manifests.apply import apply_manifests, plan_manifests
from stockyard.operations.manifests.desired import read_desired
from tests.unit.operations.conftest import World, make_world

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "examples"
VCLUSTERS = sorted((FOLDER / "vcluster").glob("vclusteryaml-*.yaml"))
NODE_POOLS = sorted((FOLDER / "karpenter").glob("nodepool-*.yaml"))
ALTERNATIVES = "vclusteryaml-008"
"""It lists the ways to write a property one after the other, several with the same name."""
BUDGETS = [{"nodes": "10%"}]

pytestmark = pytest.mark.skipif(
    not VCLUSTERS or not NODE_POOLS, reason="the published examples are not beside this repository"
)


@pytest.fixture
def world() -> World:
    return make_world()


def normal_vcluster(document: dict[str, Any]) -> dict[str, Any]:
    """The normalizations of docs/pool-documents.md, written down once more."""
    auto_nodes = copy.deepcopy(document["privateNodes"]["autoNodes"])
    shared_requirements: list[dict[str, Any]] = []
    if isinstance(auto_nodes, dict):
        shared_requirements = [
            {"property": name, "operator": "In", "values": [value]}
            for name, value in auto_nodes.pop("properties", {}).items()
        ]
        auto_nodes = [auto_nodes]
    for entry in auto_nodes:
        shared_properties = entry.pop("properties", {})
        for pool in (*entry.get("static", ()), *entry.get("dynamic", ())):
            selectors = [normal_selector(selector) for selector in pool.pop("nodeTypeSelector", [])]
            if selectors + shared_requirements:
                pool["nodeTypeSelector"] = selectors + shared_requirements
            if shared_properties:
                pool["properties"] = shared_properties
            pool.setdefault("terminationGracePeriod", "30s")
        for pool in entry.get("dynamic", ()):
            disruption = pool.setdefault("disruption", {})
            disruption.setdefault("consolidateAfter", "30s")
            disruption.setdefault("consolidationPolicy", "WhenEmptyOrUnderutilized")
            disruption.setdefault("budgets", BUDGETS)
            pool.setdefault("expireAfter", "720h")
    return {"privateNodes": {"enabled": True, "autoNodes": auto_nodes}}


def normal_selector(selector: dict[str, Any]) -> dict[str, Any]:
    values = selector.get("values") or ([selector["value"]] if "value" in selector else [])
    operator = selector.get("operator", "In").replace("NotExists", "DoesNotExist")
    return {"property": selector["property"], "operator": operator, **({"values": values} if values else {})}


def normal_node_pool(document: dict[str, Any]) -> dict[str, Any]:
    manifest = copy.deepcopy(document)
    spec = manifest["spec"]
    spec["template"]["spec"].setdefault("expireAfter", "720h")
    if "limits" in spec:
        spec["limits"] = {name: str(amount) for name, amount in spec["limits"].items()}
    disruption = spec.setdefault("disruption", {})
    disruption.setdefault("consolidateAfter", "0s")
    disruption.setdefault("consolidationPolicy", "WhenEmptyOrUnderutilized")
    disruption.setdefault("budgets", BUDGETS)
    return manifest


@pytest.mark.parametrize("path", [path for path in VCLUSTERS if path.stem != ALTERNATIVES], ids=lambda path: path.stem)
def test_a_vcluster_yaml_is_shown_as_it_came(path: Path) -> None:
    (document,) = parse(path.read_bytes(), 32)
    read = read_vcluster(document)
    assert read.pools
    assert vcluster_document(read.pools) == normal_vcluster(document)
    for pool in read.pools:
        assert read_vcluster(pool_manifest(pool)).pools == (pool,)


def test_names_that_come_twice_are_refused_and_each_alternative_is_read() -> None:
    (path,) = [path for path in VCLUSTERS if path.stem == ALTERNATIVES]
    with pytest.raises(MalformedBody, match="a name twice in one object"):
        parse(path.read_bytes(), 32)
    paragraphs = path.read_text(encoding="utf-8").split("\n      # ")
    head, tail = paragraphs[0], paragraphs[-1][paragraphs[-1].index("\n    static:") :]
    operators = []
    for paragraph in paragraphs[1:]:
        text = f"{head}\n      # {paragraph.removesuffix(tail)}{tail}"
        (document,) = parse(text.encode(), 32)
        with pytest.raises(InvalidInput) as refused:
            read_vcluster(document)
        assert [(fault.pointer, fault.detail) for fault in refused.value.errors] == [
            ("/privateNodes/autoNodes/static/0/quantity", "this field is required")
        ]
        document["privateNodes"]["autoNodes"]["static"][0]["quantity"] = 1
        ((entry,),) = [pool.requirements for pool in read_vcluster(document).pools]
        operators.append((entry["operator"], len(entry.get("values", ()))))
    assert operators == [("In", 1), ("In", 3), ("NotIn", 3), ("Exists", 0), ("DoesNotExist", 0)]


@pytest.mark.parametrize("path", NODE_POOLS, ids=lambda path: path.stem)
def test_a_node_pool_is_shown_as_it_came(path: Path) -> None:
    (document,) = parse(path.read_bytes(), 32)
    pool = read_node_pool(document).pools[0]
    assert pool_manifest(pool) == normal_node_pool(document)
    assert read_node_pool(pool_manifest(pool)).pools[0] == pool


@pytest.mark.parametrize(
    "path", [path for path in (*VCLUSTERS, *NODE_POOLS) if path.stem != ALTERNATIVES], ids=lambda path: path.stem
)
def test_an_example_applies_and_then_changes_nothing(world: World, path: Path) -> None:
    """The example's provider may come later."""
    world.create("demo")
    documents = parse(path.read_bytes(), 32)

    def desired() -> Any:
        return read_desired(world.services, documents, "user:ann", admin=True)

    plan = plan_manifests(world.services, desired())
    results = apply_manifests(world.services, desired(), "user:ann", "req-1")
    assert [entry["name"] for entry in plan["creates"] if entry["kind"] == "pool"] == [
        result["name"] for result in results if result["action"] == "created"
    ]
    again = apply_manifests(world.services, desired(), "user:ann", "req-2")
    assert [result["action"] for result in again] == ["unchanged"] * len(results)


def test_the_published_refusals() -> None:
    cases = json.loads((FOLDER / "vcluster" / "golden-autonodes-validation.json").read_text(encoding="utf-8"))["cases"]
    for case in cases:
        words = case.get("error") or case.get("error_prefix")
        if words is None:
            assert "NotExists" in case["note"], "the documentation has it, so it is accepted here"
            read_vcluster(case["in"])
            continue
        with pytest.raises(InvalidInput) as refused:
            read_vcluster(case["in"])
        (fault,) = refused.value.errors
        assert fault.detail == words if "error" in case else fault.detail.startswith(words)
