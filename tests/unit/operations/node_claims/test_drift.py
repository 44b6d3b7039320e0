"""Claims are marked as drifted when their provider changes, and no longer when the change is undone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Event, NodeClaim, NodeProvider
from stockyard.operations.listing import every
from stockyard.operations.node_claims import drift as compare_drift
from stockyard.operations.node_claims.drift import compare, compare_providers
from stockyard.operations.node_providers.providers import change_provider
from stockyard.operations.scheduler.wake import Scheduler
from tests.harness.sent import waiting
from tests.harness.sweeping import Reaper
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {
    "name": "small",
    "resources": {"cpu": "2", "memory": "4Gi"},
    "properties": {"tier": "gold,silver"},
}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def there(nodes: Nodes, *names: str, **fields: Any) -> list[NodeClaim]:
    claims = [nodes.claim(name, **fields) for name in names]
    nodes.schedule()
    nodes.relay()
    return [nodes.now(claim) for claim in claims]


def change(nodes: Nodes, provider: NodeProvider, **fields: Any) -> NodeProvider:
    current = nodes.services.store.get(NodeProvider, provider.id)
    assert current is not None
    spec = {"simulated": {"nodeTypes": [{**SMALL, **fields}]}}
    return change_provider(nodes.services, provider.id, current.version, {"spec": spec}, "user:ann", "r")


def drift_condition(nodes: Nodes, claim: NodeClaim) -> tuple[str, str]:
    (condition,) = [condition for condition in nodes.now(claim).conditions if condition.type == "NotDrifted"]
    return condition.status, condition.reason


def sweep(nodes: Nodes) -> list[str]:
    done: list[str] = Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run()["done"]
    return done


def test_launch_records_labels_and_fingerprint(nodes: Nodes) -> None:
    nodes.provider("lab", SMALL, properties={"team": "red"})
    (claim,) = there(nodes, "one", requirements=({"key": "tier", "operator": "In", "values": ["silver"]},))
    assert claim.node_labels == {
        "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "lab.small",
        "team": "red",
        "tier": "silver",
        "topology.kubernetes.io/zone": "global",
        "vcluster.com/node-type": "lab.small",
    }
    assert claim.drift_hash
    assert drift_condition(nodes, claim) == ("True", "AsLaunched")


def test_changed_type_is_drift_until_change_is_undone(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    nodes.provider("other", {**SMALL, "cost": 9})
    first, second = there(nodes, "one", "two", provider_ref="lab")
    (elsewhere,) = there(nodes, "elsewhere", provider_ref="other")
    assert compare_providers(nodes.services, [provider.id]) == 0
    change(nodes, provider, resources={"cpu": "4", "memory": "4Gi"})
    assert compare_providers(nodes.services, [provider.id]) == 2
    assert compare_providers(nodes.services, [provider.id]) == 0, "what was said is not written again"
    assert drift_condition(nodes, first) == drift_condition(nodes, second) == ("False", "TypeChanged")
    assert drift_condition(nodes, elsewhere) == ("True", "AsLaunched")
    change(nodes, provider)
    assert compare_providers(nodes.services, [provider.id]) == 2
    assert drift_condition(nodes, first) == ("True", "AsLaunched")
    reasons = [event.reason for event in every(nodes.services.store, Event) if event.subject == first.id]
    assert sorted(reasons)[:2] == ["Accepted", "AsLaunched"]
    assert reasons.count("Drifted") == reasons.count("AsLaunched") == 1
    assert compare_providers(nodes.services, ["npr_gone"]) == 0


def test_scheduler_compares_provider_of_stream(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    change(nodes, provider, properties={"tier": "bronze"})
    scheduler = Scheduler(nodes.registry, lambda _: nodes.services)
    assert scheduler.compare([("acme", provider.id)]) == 1
    assert drift_condition(nodes, claim) == ("False", "PropertiesChanged")


def test_compare_lists_claims_once_for_several_providers(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    providers = [nodes.provider(f"lab-{number}", SMALL) for number in range(3)]
    claims = [there(nodes, f"node-{provider.name}", provider_ref=provider.name)[0] for provider in providers]
    for provider in providers[:2]:
        change(nodes, provider, properties={"tier": "bronze"})
    looks = []

    def counted(store: Any, kind: type[Any], *more: Any, **options: Any) -> Any:
        looks.append(kind)
        return every(store, kind, *more, **options)

    monkeypatch.setattr(compare_drift, "every", counted)
    scheduler = Scheduler(nodes.registry, lambda _: nodes.services)
    assert scheduler.compare([("acme", provider.id) for provider in providers]) == 2
    assert looks == [NodeClaim]
    drifted, unchanged = ("False", "PropertiesChanged"), ("True", "AsLaunched")
    assert [drift_condition(nodes, claim) for claim in claims] == [drifted, drifted, unchanged]


def test_sweep_finds_missed_drift(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    change(nodes, provider, properties={"tier": "bronze"})
    assert sweep(nodes) == [f"drifted {claim.id}"]
    assert sweep(nodes) == []
    change(nodes, provider)
    assert sweep(nodes) == [f"undrifted {claim.id}"]


def test_compare_includes_launched_and_skips_waiting_and_deleted_claims(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL, block={"joinSeconds": "never"})
    waiting = nodes.claim("waits", resources={"cpu": "64"})
    launched = nodes.claim("launched")
    nodes.schedule()
    payload = next(message["input"] for message in _starts(nodes))
    nodes.run("provision_node", payload, most=12)
    assert nodes.now(launched).drift_hash
    assert nodes.now(launched).phase == "Pending"
    change(nodes, provider, overhead={"kubeReserved": {"cpu": "1"}})
    assert compare_providers(nodes.services, [provider.id]) == 1
    assert drift_condition(nodes, launched) == ("False", "TypeChanged")
    nodes.delete(launched)
    change(nodes, provider)
    assert compare_providers(nodes.services, [provider.id]) == 0
    assert not [condition for condition in nodes.now(waiting).conditions if condition.type == "NotDrifted"]


def _starts(nodes: Nodes) -> list[Any]:
    return [message for message in waiting(nodes.services.store, "workflow") if message["workflow"] == "provision-node"]


def test_offering_withdrawn_before_launch_is_drift(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    claim = nodes.claim("one")
    nodes.schedule()
    change(nodes, provider, zones=["elsewhere"])
    nodes.relay()
    assert drift_condition(nodes, claim) == ("True", "AsLaunched")
    assert compare_providers(nodes.services, [provider.id]) == 1
    assert drift_condition(nodes, claim) == ("False", "TypeChanged")
    change(nodes, provider)
    assert compare_providers(nodes.services, [provider.id]) == 1
    assert drift_condition(nodes, claim) == ("True", "AsLaunched")


def test_compare_is_bounded_and_sweep_continues(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = nodes.provider("lab", SMALL)
    claims = there(nodes, "one", "two", "three")
    monkeypatch.setattr(compare_drift, "MOST", 2)
    change(nodes, provider, properties={})
    assert compare_providers(nodes.services, [provider.id]) == 2
    assert len(sweep(nodes)) == 1
    assert {drift_condition(nodes, claim) for claim in claims} == {("False", "PropertiesChanged")}


def test_compare_ignores_outdated_provider(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    changed = change(nodes, provider, properties={"tier": "bronze"})
    change(nodes, provider)
    assert compare(nodes.services, changed, claim) is None
    assert drift_condition(nodes, claim) == ("True", "AsLaunched")


def test_compare_skips_claim_changed_meanwhile(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    changed = change(nodes, provider, properties={"tier": "bronze"})
    nodes.delete(claim)
    assert compare(nodes.services, changed, claim) is None
    assert drift_condition(nodes, claim) == ("True", "AsLaunched")


def test_compare_skips_claim_without_fingerprint(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    changed = change(nodes, provider, properties={"tier": "bronze"})
    assert compare(nodes.services, changed, replace(claim, drift_hash="")) is None
