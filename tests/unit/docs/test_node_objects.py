"""Statements of docs/objects.md and docs/events about nodes are true of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stockyard.domain.models.manifests.read_manifests import read_manifests
from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.manifests import PoolsDocument
from stockyard.domain.pools.records import Pool
from stockyard.domain.records import Outbox
from stockyard.edge.http.yaml_body import parse
from stockyard.errors import VendorRefused
from stockyard.lifecycle.nodes.drift import _NOT_OF_THE_TEMPLATE, ALL_REASONS, TEMPLATE
from stockyard.operations.listing import every
from stockyard.operations.manifests.apply import apply_manifests
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.manifests.documents import sorted_out
from stockyard.operations.node_claims.change import change_claim
from stockyard.ports import Remove
from tests.harness.sent import waiting
from tests.unit.operations.conftest import World, world  # noqa: F401 - the fixture
from tests.unit.operations.nodes import Nodes

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/objects.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs/events/NodeClaim.json").read_text(encoding="utf-8"))
SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}


def events(nodes: Nodes) -> list[dict[str, Any]]:
    """Details of the claims' events that wait to be sent."""
    payloads = waiting(nodes.services.store, "event")
    return [payload["detail"] for payload in payloads if payload["detail_type"] == "NodeClaim"]


def check(detail: object) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(detail)))


def test_every_event_of_a_claim_matches_its_schema(world: World) -> None:  # noqa: F811
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.provider("lab", SMALL)
    sent: list[dict[str, Any]] = []

    def run() -> None:
        sent.extend(events(nodes))
        nodes.relay()
        sent.extend(events(nodes))
        for item in list(every(nodes.services.store, Outbox)):
            nodes.services.store.commit(Remove(Outbox, item.id))

    good, bad = nodes.claim("good"), nodes.claim("bad")
    nodes.schedule()
    change_claim(nodes.services, good.id, nodes.now(good).version, {"labels": {"a": "b"}}, "user:ann", "r")
    nodes.errors["launch"] = [VendorRefused("no")] * 9
    run()
    nodes.errors.clear()
    for claim in (good, bad):
        nodes.delete(claim)
    run()
    assert {"Pending", "Deleting", None} <= {detail["phase"]["after"] for detail in sent}
    assert {"Accepted", "Scheduled", "Changed", "DeletionRequested"} <= {detail["reason"] for detail in sent}
    assert {(detail["subject"], detail["name"]) for detail in sent} == {(good.id, "good"), (bad.id, "bad")}
    for detail in sent:
        check(detail)


def test_the_schema_refuses_what_is_never_sent(world: World) -> None:  # noqa: F811
    nodes = Nodes.of(world.registry, world.services, world.clock)
    nodes.claim("one")
    detail = events(nodes)[0]
    check(detail)
    for wrong in ({"phase": {"before": None, "after": "ready"}}, {"subject": "clu_1"}, {"more": 1}, {"sequence": 0}):
        with pytest.raises(jsonschema.ValidationError):
            check({**detail, **wrong})


def test_every_kind_and_field_of_a_block_is_in_the_document() -> None:
    for kind, model in ((name, provider_kinds.kind(name).block()) for name in provider_kinds.names()):
        (row,) = re.findall(rf"^\| `{kind}` \| (.*) \|$", TEXT, re.MULTILINE)
        properties = model.model_json_schema(by_alias=True)["properties"]
        fields = set(properties) - {"neutronEnabled", "netris", "netBox"}
        assert [name for name in sorted(fields) if name not in row] == [], kind


def test_every_reason_of_drift_and_what_is_no_template_is_in_the_document() -> None:
    rows = dict(re.findall(r"^\| `(\w+(?:Changed|Moved|Drifted))` \| (.*) \|$", TEXT, re.MULTILINE))
    assert tuple(rows) == ALL_REASONS
    hidden = {"nodeTypes", "capacityTypes", "instanceTypes", "machineTypes", "sizes", "nodeEnvironmentTemplate"}
    assert [name for name in sorted(_NOT_OF_THE_TEMPLATE - hidden) if f"`{name}`" not in rows[TEMPLATE]] == []


@pytest.mark.parametrize(
    ("file", "name", "kind"),
    [("lab", "lab", "simulated"), ("ec2-nodes", "amazon", "ec2"), ("cudo-nodes", "gpus", "cudo")],
)
def test_an_example_is_a_manifest(file: str, name: str, kind: str) -> None:
    (document,) = parse((ROOT / f"examples/{file}.yaml").read_bytes(), 32)
    (read,) = read_manifests([document])
    assert isinstance(read, ProviderDocument)
    assert (read.name, read.kind) == (name, kind)


def test_the_example_of_a_file_for_karpenter_is_applied_but_for_what_is_not_ours(world: World) -> None:  # noqa: F811
    sent = sorted_out(parse((ROOT / "examples/karpenter.yaml").read_bytes(), 32))
    (pools,) = read_manifests(sent.documents, paths=sent.paths)
    assert isinstance(pools, PoolsDocument)
    assert [pool.name for pool in pools.pools] == ["general"]
    left_out = [(0, "kind"), (1, "kind"), (2, "metadata", "namespace")]
    assert [path for path, _ in sent.warnings] == left_out
    world.create("demo")
    nodes = Nodes.of(world.registry, world.services, world.clock)
    desired = read_desired(nodes.services, list(sent.documents), "user:ann", admin=False)
    (result,) = apply_manifests(nodes.services, desired, "user:ann", "req-1")
    (pool,) = every(nodes.services.store, Pool)
    assert (result["action"], pool.name, pool.limits) == ("created", "general", {"nodes": "10"})
