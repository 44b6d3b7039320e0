"""Nodes whose provider was changed say so, and say so no more when it is undone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Event, NodeClaim, NodeProvider, Outbox
from stockyard.operations import compare_drift
from stockyard.operations.compare_drift import compare, compare_providers
from stockyard.operations.every import every
from stockyard.operations.node_providers import change_provider
from stockyard.operations.reap import Reaper
from stockyard.operations.wake_scheduler import Scheduler
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
    made = [nodes.claim(name, **fields) for name in names]
    nodes.schedule()
    nodes.relay()
    return [nodes.now(claim) for claim in made]


def change(nodes: Nodes, provider: NodeProvider, **fields: Any) -> NodeProvider:
    current = nodes.services.store.get(NodeProvider, provider.id)
    assert current is not None
    spec = {"simulated": {"nodeTypes": [{**SMALL, **fields}]}}
    return change_provider(nodes.services, provider.id, current.version, {"spec": spec}, "user:ann", "r")


def said(nodes: Nodes, claim: NodeClaim) -> tuple[str, str]:
    (found,) = [one for one in nodes.now(claim).conditions if one.type == "NotDrifted"]
    return found.status, found.reason


def sweep(nodes: Nodes) -> list[str]:
    done: list[str] = Reaper(nodes.registry, nodes.clock, lambda _: nodes.services).run()["done"]
    return done


def test_a_launch_fixes_labels_and_fingerprint(nodes: Nodes) -> None:
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
    assert said(nodes, claim) == ("True", "AsLaunched")


def test_a_changed_type_is_drift_until_it_is_undone(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    nodes.provider("other", {**SMALL, "cost": 9})
    one, two = there(nodes, "one", "two", provider_ref="lab")
    (elsewhere,) = there(nodes, "elsewhere", provider_ref="other")
    assert compare_providers(nodes.services, [provider.id]) == 0
    change(nodes, provider, resources={"cpu": "4", "memory": "4Gi"})
    assert compare_providers(nodes.services, [provider.id]) == 2
    assert compare_providers(nodes.services, [provider.id]) == 0, "what was said is not written again"
    assert said(nodes, one) == said(nodes, two) == ("False", "TypeChanged")
    assert said(nodes, elsewhere) == ("True", "AsLaunched")
    change(nodes, provider)
    assert compare_providers(nodes.services, [provider.id]) == 2
    assert said(nodes, one) == ("True", "AsLaunched")
    told = [one_.reason for one_ in every(nodes.services.store, Event) if one_.subject == one.id]
    assert sorted(told)[:2] == ["Accepted", "AsLaunched"]
    assert told.count("Drifted") == told.count("AsLaunched") == 1
    assert compare_providers(nodes.services, ["npr_gone"]) == 0


def test_the_stream_of_a_changed_provider_is_enough(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    change(nodes, provider, properties={"tier": "bronze"})
    scheduler = Scheduler(nodes.registry, lambda _: nodes.services)
    assert scheduler.compare([("acme", provider.id)]) == 1
    assert said(nodes, claim) == ("False", "PropertiesChanged")


def test_providers_that_change_together_are_compared_by_one_look_at_the_claims(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    providers = [nodes.provider(f"lab-{number}", SMALL) for number in range(3)]
    claims = [there(nodes, f"node-{one.name}", provider_ref=one.name)[0] for one in providers]
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
    drifted, same = ("False", "PropertiesChanged"), ("True", "AsLaunched")
    assert [said(nodes, claim) for claim in claims] == [drifted, drifted, same]


def test_the_sweep_finds_what_was_missed(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    change(nodes, provider, properties={"tier": "bronze"})
    assert sweep(nodes) == [f"drifted {claim.id}"]
    assert sweep(nodes) == []
    change(nodes, provider)
    assert sweep(nodes) == [f"undrifted {claim.id}"]


def test_claims_on_their_way_in_or_out_are_compared_or_left(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL, block={"joinSeconds": "never"})
    waiting = nodes.claim("waits", resources={"cpu": "64"})
    launched = nodes.claim("launched")
    nodes.schedule()
    given = next(item.payload["input"] for item in _starts(nodes))
    nodes.run("provision_node", given, most=12)
    assert nodes.now(launched).drift_hash
    assert nodes.now(launched).phase == "Pending"
    change(nodes, provider, overhead={"kubeReserved": {"cpu": "1"}})
    assert compare_providers(nodes.services, [provider.id]) == 1
    assert said(nodes, launched) == ("False", "TypeChanged")
    nodes.delete(launched)
    change(nodes, provider)
    assert compare_providers(nodes.services, [provider.id]) == 0
    assert not [one for one in nodes.now(waiting).conditions if one.type == "NotDrifted"]


def _starts(nodes: Nodes) -> list[Any]:
    return [item for item in every(nodes.services.store, Outbox) if item.payload.get("workflow") == "provision_node"]


def test_a_way_that_is_withdrawn_between_placement_and_launch_is_drift_of_the_node(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    claim = nodes.claim("one")
    nodes.schedule()
    change(nodes, provider, zones=["elsewhere"])
    nodes.relay()
    assert said(nodes, claim) == ("True", "AsLaunched")
    assert compare_providers(nodes.services, [provider.id]) == 1
    assert said(nodes, claim) == ("False", "TypeChanged")
    change(nodes, provider)
    assert compare_providers(nodes.services, [provider.id]) == 1
    assert said(nodes, claim) == ("True", "AsLaunched")


def test_one_look_is_bounded_and_the_sweep_goes_on(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = nodes.provider("lab", SMALL)
    claims = there(nodes, "one", "two", "three")
    monkeypatch.setattr(compare_drift, "MOST", 2)
    change(nodes, provider, properties={})
    assert compare_providers(nodes.services, [provider.id]) == 2
    assert len(sweep(nodes)) == 1
    assert {said(nodes, claim) for claim in claims} == {("False", "PropertiesChanged")}


def test_an_older_provider_is_not_compared_with(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    changed = change(nodes, provider, properties={"tier": "bronze"})
    change(nodes, provider)
    assert compare(nodes.services, changed, claim) is None
    assert said(nodes, claim) == ("True", "AsLaunched")


def test_a_claim_that_was_changed_meanwhile_is_left_to_the_next_look(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    changed = change(nodes, provider, properties={"tier": "bronze"})
    nodes.delete(claim)
    assert compare(nodes.services, changed, claim) is None
    assert said(nodes, claim) == ("True", "AsLaunched")


def test_a_claim_of_an_older_release_is_left_alone(nodes: Nodes) -> None:
    provider = nodes.provider("lab", SMALL)
    (claim,) = there(nodes, "one")
    changed = change(nodes, provider, properties={"tier": "bronze"})
    assert compare(nodes.services, changed, replace(claim, drift_hash="")) is None
