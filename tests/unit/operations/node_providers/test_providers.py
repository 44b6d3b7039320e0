"""Node providers are created once, changed with their version and deleted when unused; their node types are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.models.nodes.node_types import NodeTypeView
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import AuditRecord, CloudAccount, Counter, Name, NodeEnvironment, NodeProvider, Quota
from stockyard.errors import InUse, InvalidInput, NotFound, PreconditionFailed, QuotaExceeded
from stockyard.operations.listing import every
from stockyard.operations.node_providers.providers import (
    change_provider,
    check_unused,
    create_provider,
    delete_provider,
    plan_creation,
)
from stockyard.operations.node_providers.types import get_type, list_types
from stockyard.operations.node_providers.visible import find_provider
from stockyard.ports import Create, Finding, Put, Remove
from stockyard.ports.nodes import NodeSource
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.ports import partial_port, with_ports
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "maxCapacity": 2}
LARGE: dict[str, Any] = {"name": "large", "resources": {"cpu": "8", "memory": "32Gi"}}


@pytest.fixture
def nodes(world: World) -> Nodes:
    return Nodes.of(world.registry, world.services, world.clock)


def document(name: str = "lab", *types: dict[str, Any], kind: str = "simulated", **block: Any) -> ProviderDocument:
    return ProviderDocument(name, kind, {**block, "nodeTypes": list(types or (SMALL, LARGE))})


def used(nodes: Nodes, name: str) -> int:
    counter = nodes.services.store.get(Counter, name)
    return counter.value if counter else 0


def test_creation_is_idempotent_and_names_are_unique(nodes: Nodes) -> None:
    provider = create_provider(nodes.services, document(), "user:ann", "npr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert find_provider(nodes.services, "lab") == find_provider(nodes.services, provider.id) == provider
    assert (provider.generation, provider.version, provider.phase, provider.created_by) == (
        1,
        1,
        "Available",
        "user:ann",
    )
    assert create_provider(nodes.services, document(), "user:ann", provider.id) == provider
    assert used(nodes, "quota/node_providers") == 1
    with pytest.raises(InUse, match="lab"):
        create_provider(nodes.services, document(), "user:ann")
    with pytest.raises(InUse, match="lab"):
        plan_creation(nodes.services, document())
    with pytest.raises(NotFound):
        find_provider(nodes.services, "other")


def test_provider_of_kind_without_implementation_is_pending(nodes: Nodes) -> None:
    provider = create_provider(nodes.services, document(kind="clusterAPI"), "user:ann")
    assert (provider.phase, provider.reason) == ("Pending", "ProviderNotAvailable")
    views, _ = list_types(nodes.services, limit=10)
    assert [(view["name"], view["phase"], view["reason"]) for view in views] == [
        ("lab.large", "Pending", "ProviderNotAvailable"),
        ("lab.small", "Pending", "ProviderNotAvailable"),
    ]


def test_creation_refuses_exceeded_quota(nodes: Nodes) -> None:
    nodes.services.store.commit(Create(Quota("node_providers", 1, nodes.services.now())))
    create_provider(nodes.services, document("one"), "user:ann")
    with pytest.raises(QuotaExceeded, match="'node_providers' allows 1"):
        create_provider(nodes.services, document("two"), "user:ann")
    assert nodes.services.store.get(Name, "node-provider/two") is None
    with pytest.raises(QuotaExceeded, match="'node_providers' allows 1"):
        plan_creation(nodes.services, document("two"))


@pytest.mark.parametrize("number", [1, 7])
def test_ec2_provider_requires_cloud_account(nodes: Nodes, number: int) -> None:
    provider_document = ProviderDocument("aws", "ec2", {"cloudAccount": number})
    if number == 1:
        assert create_provider(nodes.services, provider_document, "user:ann").kind == "ec2"
        return
    for call in (create_provider, plan_creation):
        with pytest.raises(InvalidInput) as refused:
            call(nodes.services, provider_document, *(["user:ann"] if call is create_provider else []))
        assert [error.pointer for error in refused.value.errors] == ["/spec/cloudAccount"]


def test_creation_refuses_findings_of_source(nodes: Nodes) -> None:
    class Strict(NodeSource):
        def inspect(self, provider: NodeProvider, account: object) -> list[Finding]:
            return [Finding("/spec/nodeTypes/0", "no such thing"), Finding("/spec", "odd", warning=True)]

    services = with_ports(nodes.services, node_sources={"simulated": partial_port(Strict)})
    with pytest.raises(InvalidInput) as refused:
        create_provider(services, document(), "user:ann")
    assert [(error.pointer, error.detail) for error in refused.value.errors] == [("/spec/nodeTypes/0", "no such thing")]


def test_change_requires_version_and_raises_generation(nodes: Nodes) -> None:
    provider = create_provider(nodes.services, document(), "user:ann")
    spec = {"simulated": {"nodeTypes": [SMALL]}}
    changed = change_provider(nodes.services, provider.id, 1, {"spec": spec, "display_name": "L"}, "user:bob", "req-1")
    assert (changed.version, changed.generation, changed.display_name) == (2, 2, "L")
    (audit,) = [record for record in every(nodes.services.store, AuditRecord) if record.action == "ChangeNodeProvider"]
    assert (audit.actor, audit.subject, audit.detail) == ("user:bob", provider.id, "Changed: display_name, spec.")
    with pytest.raises(PreconditionFailed):
        change_provider(nodes.services, provider.id, 1, {"display_name": "M"}, "user:bob", "req-2")


def test_change_refuses_removal_of_used_type(nodes: Nodes) -> None:
    provider = create_provider(nodes.services, document(), "user:ann")
    nodes.claim("one", provider_ref="lab")
    nodes.schedule()
    only_large = {"spec": {"simulated": {"nodeTypes": [LARGE]}}}
    with pytest.raises(InUse, match="one"):
        change_provider(nodes.services, provider.id, 1, only_large, "user:ann", "r")
    only_small = {"spec": {"simulated": {"nodeTypes": [SMALL]}}}
    assert change_provider(nodes.services, provider.id, 1, only_small, "user:ann", "r").version == 2


class Located(SimulatedNodes):
    """Simulated machines in the region and account that the document names."""

    has_topology = True

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:
        return super().node_types(
            replace(provider, kind="simulated", spec={"simulated": provider.spec["ec2"]}), account
        )

    def location(self, provider: NodeProvider) -> tuple[str, str]:
        block = provider.spec[provider.kind]
        return block.get("region", "us-east-1"), str(block["cloudAccount"])

    def out_of_reach(self, *_: object) -> str:
        return ""

    out_of_zone = out_of_reach

    def zones(self, *_: object) -> frozenset[str]:
        return frozenset()


@pytest.mark.parametrize("field", ["region", "cloudAccount"])
def test_change_of_location_requires_no_nodes_or_environments(nodes: Nodes, field: str) -> None:
    nodes.services = with_ports(nodes.services, node_sources={"ec2": Located(nodes.registry.store)})
    # Machines and environments are looked for, switched and ended where the provider's document says that they are.
    store = nodes.services.store
    for number in ("2", "3"):
        store.commit(Create(CloudAccount(number, "aws", number, "", {}, "", "verified", "", "t", "t")))
    provider = create_provider(nodes.services, document(kind="ec2", cloudAccount=2), "user:ann")
    nodes.claim("waits", provider_ref="lab", resources={"cpu": "64"})
    elsewhere = {"region": "eu-west-1"} if field == "region" else {"cloudAccount": 3}
    there = {"spec": {"ec2": {**provider.spec["ec2"], **elsewhere}}}
    back = {"spec": provider.spec}
    moved = change_provider(nodes.services, provider.id, 1, there, "user:ann", "r")
    assert change_provider(nodes.services, provider.id, 2, back, "user:ann", "r").spec == provider.spec != moved.spec

    claim = nodes.claim("one", provider_ref="lab")
    nodes.schedule()
    with pytest.raises(InUse, match=r"Region .* nodes there: one\."):
        change_provider(nodes.services, provider.id, 3, there, "user:ann", "r")
    same_location = {"spec": {"ec2": {**provider.spec["ec2"], "nodeTypes": [SMALL], "region": "us-east-1"}}}
    assert change_provider(nodes.services, provider.id, 3, same_location, "user:ann", "r").version == 4
    nodes.relay()
    nodes.delete(claim)
    nodes.relay()
    store.commit(Create(NodeEnvironment("nev_1", "clu_1", provider.id, "lab", "t", "t")))
    with pytest.raises(InUse, match=r"Region .* set up for clu_1\."):
        change_provider(nodes.services, provider.id, 4, there, "user:ann", "r")
    store.commit(Remove(NodeEnvironment, "nev_1"))
    assert change_provider(nodes.services, provider.id, 4, there, "user:ann", "r").version == 5


class Placeless(Located):
    """A source that knows the accounts of its providers alone."""

    has_topology = False


def test_change_of_an_account_alone_requires_no_nodes_either(nodes: Nodes) -> None:
    """A source that knows no places would take the machines of the other account for gone."""
    nodes.services = with_ports(nodes.services, node_sources={"ec2": Placeless(nodes.registry.store)})
    for number in ("2", "3"):
        nodes.services.store.commit(Create(CloudAccount(number, "aws", number, "", {}, "", "verified", "", "t", "t")))
    provider = create_provider(nodes.services, document(kind="ec2", cloudAccount=2), "user:ann")
    there = {"spec": {"ec2": {**provider.spec["ec2"], "cloudAccount": 3}}}
    nodes.claim("one", provider_ref="lab")
    nodes.schedule()
    with pytest.raises(InUse, match=r"cloud account .* nodes there: one\."):
        change_provider(nodes.services, provider.id, 1, there, "user:ann", "r")


def test_deletion_refuses_used_provider(nodes: Nodes) -> None:
    provider = create_provider(nodes.services, document(), "user:ann")
    claim = nodes.claim("one", provider_ref="lab")
    with pytest.raises(InUse, match="used by one"):
        delete_provider(nodes.services, "lab", "user:ann")
    nodes.delete(claim)
    check_unused(nodes.services, provider)
    environment = NodeEnvironment("nev_1", "clu_1", provider.id, "lab", "t", "t")
    nodes.services.store.commit(Create(environment))
    with pytest.raises(InUse, match="clu_1"):
        delete_provider(nodes.services, "lab", "user:ann")


def test_deletion_refuses_provider_of_placed_claim(nodes: Nodes) -> None:
    create_provider(nodes.services, document(), "user:ann")
    nodes.claim("one")
    nodes.schedule()
    with pytest.raises(InUse, match="used by one"):
        delete_provider(nodes.services, "lab", "user:ann")


def test_deletion_leaves_nothing(nodes: Nodes) -> None:
    provider = create_provider(nodes.services, document(), "user:ann")
    counter = f"capacity/{provider.id}/small"
    nodes.services.store.commit(Put(Counter(counter, 0)))
    operation = delete_provider(nodes.services, "lab", "user:ann")
    assert (operation.status, operation.subject) == ("succeeded", provider.id)
    store = nodes.services.store
    assert (store.get(NodeProvider, provider.id), store.get(Counter, counter)) == (None, None)
    assert used(nodes, "quota/node_providers") == 0
    assert create_provider(nodes.services, document(), "user:ann").id != provider.id


# --- node types -------------------------------------------------------------------------------------------------------


def test_types_are_listed_by_name_in_pages(nodes: Nodes) -> None:
    create_provider(nodes.services, document("b"), "user:ann")
    first = create_provider(nodes.services, document("a"), "user:ann")
    first_page, after = list_types(nodes.services, limit=3)
    assert ([view["name"] for view in first_page], after) == (["a.large", "a.small", "b.large"], "b.large")
    second_page, end = list_types(nodes.services, after=after, limit=3)
    assert ([view["name"] for view in second_page], end) == (["b.small"], None)
    for named in ("a", first.id):
        assert [view["name"] for view in list_types(nodes.services, provider=named, limit=9)[0]] == [
            "a.large",
            "a.small",
        ]
    assert list_types(nodes.services, provider="c", limit=9) == ([], None)


def test_type_is_found_by_id_and_both_names(nodes: Nodes) -> None:
    create_provider(nodes.services, document("a", SMALL), "user:ann")
    create_provider(nodes.services, document("b", SMALL, LARGE), "user:ann")
    whole = get_type(nodes.services, "b.large")
    assert NodeTypeView.model_validate(whole)
    assert get_type(nodes.services, "large") == get_type(nodes.services, whole["id"]) == whole
    with pytest.raises(InvalidInput, match=r"a\.small, b\.small"):
        get_type(nodes.services, "small")
    for missing in ("b.huge", "ntp_01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        with pytest.raises(NotFound):
            get_type(nodes.services, missing)


def test_capacity_counts_placed_claims(nodes: Nodes) -> None:
    create_provider(nodes.services, document(), "user:ann")
    nodes.claim("one")
    nodes.claim("two")
    nodes.schedule()
    assert get_type(nodes.services, "small")["capacity"] == {
        "total": 2,
        "claimed": 2,
        "available": 0,
        "counted_at": None,
    }
    assert get_type(nodes.services, "large")["capacity"] == {
        "total": None,
        "claimed": None,
        "available": None,
        "counted_at": None,
    }
