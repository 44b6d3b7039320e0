"""Node providers: added once, changed by version, removed when nobody needs them; and the node types they have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.manifests import ProviderDocument
from stockyard.domain.models.node_types import NodeTypeView
from stockyard.domain.records import AuditRecord, CloudAccount, Counter, Name, NodeEnvironment, NodeProvider, Quota
from stockyard.errors import InUse, InvalidInput, NotFound, PreconditionFailed, QuotaExceeded
from stockyard.operations.every import every
from stockyard.operations.node_providers import (
    change_provider,
    check_unused,
    create_provider,
    delete_provider,
    plan_creation,
)
from stockyard.operations.node_types import get_type, list_types
from stockyard.operations.visible_providers import find_provider
from stockyard.ports import Create, Finding, Put, Remove
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


def test_a_provider_is_found_by_id_and_name_and_made_once(nodes: Nodes) -> None:
    made = create_provider(nodes.services, document(), "user:ann", "npr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert find_provider(nodes.services, "lab") == find_provider(nodes.services, made.id) == made
    assert (made.generation, made.version, made.phase, made.created_by) == (1, 1, "Available", "user:ann")
    assert create_provider(nodes.services, document(), "user:ann", made.id) == made
    assert used(nodes, "quota/node_providers") == 1
    with pytest.raises(InUse, match="lab"):
        create_provider(nodes.services, document(), "user:ann")
    with pytest.raises(InUse, match="lab"):
        plan_creation(nodes.services, document())
    with pytest.raises(NotFound):
        find_provider(nodes.services, "other")


def test_kinds_that_are_not_built_are_kept_and_say_so(nodes: Nodes) -> None:
    made = create_provider(nodes.services, document(kind="terraform"), "user:ann")
    assert (made.phase, made.reason) == ("Pending", "ProviderNotAvailable")
    shown, _ = list_types(nodes.services, limit=10)
    assert [(one["name"], one["phase"], one["reason"]) for one in shown] == [
        ("lab.large", "Pending", "ProviderNotAvailable"),
        ("lab.small", "Pending", "ProviderNotAvailable"),
    ]


def test_the_quota_holds(nodes: Nodes) -> None:
    nodes.services.store.commit(Create(Quota("node_providers", 1, nodes.services.now())))
    create_provider(nodes.services, document("one"), "user:ann")
    with pytest.raises(QuotaExceeded, match="'node_providers' allows 1"):
        create_provider(nodes.services, document("two"), "user:ann")
    assert nodes.services.store.get(Name, "node-provider/two") is None


@pytest.mark.parametrize("number", [1, 7])
def test_a_provider_of_ec2_needs_a_cloud_account(nodes: Nodes, number: int) -> None:
    wanted = ProviderDocument("aws", "ec2", {"cloudAccount": number})
    if number == 1:
        assert create_provider(nodes.services, wanted, "user:ann").kind == "ec2"
        return
    for call in (create_provider, plan_creation):
        with pytest.raises(InvalidInput) as refused:
            call(nodes.services, wanted, *(["user:ann"] if call is create_provider else []))  # type: ignore[operator]
        assert [one.pointer for one in refused.value.errors] == ["/spec/cloudAccount"]


def test_what_the_source_finds_wrong_is_refused(nodes: Nodes) -> None:
    class Strict:
        def inspect(self, provider: NodeProvider, account: object) -> list[Finding]:
            return [Finding("/spec/nodeTypes/0", "no such thing"), Finding("/spec", "odd", warning=True)]

    services = replace(nodes.services, sources={"simulated": Strict()})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput) as refused:
        create_provider(services, document(), "user:ann")
    assert [(one.pointer, one.detail) for one in refused.value.errors] == [("/spec/nodeTypes/0", "no such thing")]


def test_a_change_needs_the_version_and_raises_the_generation(nodes: Nodes) -> None:
    made = create_provider(nodes.services, document(), "user:ann")
    spec = {"simulated": {"nodeTypes": [SMALL]}}
    changed = change_provider(nodes.services, made.id, 1, {"spec": spec, "display_name": "L"}, "user:bob", "req-1")
    assert (changed.version, changed.generation, changed.display_name) == (2, 2, "L")
    (audit,) = [one for one in every(nodes.services.store, AuditRecord) if one.action == "ChangeNodeProvider"]
    assert (audit.actor, audit.subject, audit.detail) == ("user:bob", made.id, "Changed: display_name, spec.")
    with pytest.raises(PreconditionFailed):
        change_provider(nodes.services, made.id, 1, {"display_name": "M"}, "user:bob", "req-2")


def test_a_type_that_has_nodes_cannot_go(nodes: Nodes) -> None:
    made = create_provider(nodes.services, document(), "user:ann")
    nodes.claim("one", provider_ref="lab")
    nodes.schedule()
    only_large = {"spec": {"simulated": {"nodeTypes": [LARGE]}}}
    with pytest.raises(InUse, match="one"):
        change_provider(nodes.services, made.id, 1, only_large, "user:ann", "r")
    only_small = {"spec": {"simulated": {"nodeTypes": [SMALL]}}}
    assert change_provider(nodes.services, made.id, 1, only_small, "user:ann", "r").version == 2


@pytest.mark.parametrize("field", ["region", "cloudAccount"])
def test_what_it_has_in_a_place_keeps_it_there(nodes: Nodes, field: str) -> None:
    # Machines and environments are looked for, switched and ended where the provider's document says that they are.
    store = nodes.services.store
    for number in ("2", "3"):
        store.commit(Create(CloudAccount(number, "aws", number, "", {}, "", "verified", "", "t", "t")))
    made = create_provider(nodes.services, document(cloudAccount=2), "user:ann")
    nodes.claim("waits", provider_ref="lab", resources={"cpu": "64"})
    other = {"region": "eu-west-1"} if field == "region" else {"cloudAccount": 3}
    there = {"spec": {"simulated": {**made.spec["simulated"], **other}}}
    back = {"spec": made.spec}
    moved = change_provider(nodes.services, made.id, 1, there, "user:ann", "r")
    assert change_provider(nodes.services, made.id, 2, back, "user:ann", "r").spec == made.spec != moved.spec

    claim = nodes.claim("one", provider_ref="lab")
    nodes.schedule()
    with pytest.raises(InUse, match=r"Region .* nodes there: one\."):
        change_provider(nodes.services, made.id, 3, there, "user:ann", "r")
    same = {"spec": {"simulated": {**made.spec["simulated"], "nodeTypes": [SMALL], "region": "us-east-1"}}}
    assert change_provider(nodes.services, made.id, 3, same, "user:ann", "r").version == 4
    nodes.relay()
    nodes.delete(claim)
    nodes.relay()
    store.commit(Create(NodeEnvironment("nev_1", "clu_1", made.id, "lab", "t", "t")))
    with pytest.raises(InUse, match=r"Region .* set up for clu_1\."):
        change_provider(nodes.services, made.id, 4, there, "user:ann", "r")
    store.commit(Remove(NodeEnvironment, "nev_1"))
    assert change_provider(nodes.services, made.id, 4, there, "user:ann", "r").version == 5


def test_a_provider_that_is_used_cannot_go(nodes: Nodes) -> None:
    made = create_provider(nodes.services, document(), "user:ann")
    claim = nodes.claim("one", provider_ref="lab")
    with pytest.raises(InUse, match="used by one"):
        delete_provider(nodes.services, "lab", "user:ann")
    nodes.delete(claim)
    check_unused(nodes.services, made)
    environment = NodeEnvironment("nev_1", "clu_1", made.id, "lab", "t", "t")
    nodes.services.store.commit(Create(environment))
    with pytest.raises(InUse, match="clu_1"):
        delete_provider(nodes.services, "lab", "user:ann")


def test_a_node_of_a_claim_without_provider_uses_it_too(nodes: Nodes) -> None:
    create_provider(nodes.services, document(), "user:ann")
    nodes.claim("one")
    nodes.schedule()
    with pytest.raises(InUse, match="used by one"):
        delete_provider(nodes.services, "lab", "user:ann")


def test_nothing_of_a_removed_provider_is_left(nodes: Nodes) -> None:
    made = create_provider(nodes.services, document(), "user:ann")
    counter = f"capacity/{made.id}/small"
    nodes.services.store.commit(Put(Counter(counter, 0)))
    operation = delete_provider(nodes.services, "lab", "user:ann")
    assert (operation.status, operation.subject) == ("succeeded", made.id)
    store = nodes.services.store
    assert (store.get(NodeProvider, made.id), store.get(Counter, counter)) == (None, None)
    assert used(nodes, "quota/node_providers") == 0
    assert create_provider(nodes.services, document(), "user:ann").id != made.id


# --- node types -------------------------------------------------------------------------------------------------------


def test_types_are_listed_in_order_of_name_page_by_page(nodes: Nodes) -> None:
    create_provider(nodes.services, document("b"), "user:ann")
    first = create_provider(nodes.services, document("a"), "user:ann")
    shown, after = list_types(nodes.services, limit=3)
    assert ([one["name"] for one in shown], after) == (["a.large", "a.small", "b.large"], "b.large")
    rest, end = list_types(nodes.services, after=after, limit=3)
    assert ([one["name"] for one in rest], end) == (["b.small"], None)
    for named in ("a", first.id):
        assert [one["name"] for one in list_types(nodes.services, provider=named, limit=9)[0]] == ["a.large", "a.small"]
    assert list_types(nodes.services, provider="c", limit=9) == ([], None)


def test_a_type_is_found_by_id_and_by_both_names(nodes: Nodes) -> None:
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


def test_capacity_counts_the_nodes_that_there_are(nodes: Nodes) -> None:
    create_provider(nodes.services, document(), "user:ann")
    nodes.claim("one")
    nodes.claim("two")
    nodes.schedule()
    assert get_type(nodes.services, "small")["capacity"] == {"total": 2, "claimed": 2, "available": 0}
    assert get_type(nodes.services, "large")["capacity"] == {"total": None, "claimed": None, "available": None}
