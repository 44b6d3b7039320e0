"""Providers of the platform: all tenants see them and share their capacity; only the platform changes them."""

from __future__ import annotations

from typing import Any

import pytest

from local.testing.memory_store import MemoryStore
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import (
    AuditRecord,
    Cluster,
    Counter,
    Fact,
    Name,
    NodeClaim,
    NodeEnvironment,
    NodeProvider,
)
from stockyard.errors import Forbidden, InUse, InvalidInput, NotFound, QuotaExceeded, StoreUnavailable
from stockyard.operations.listing import every
from stockyard.operations.manifests.desired import read_desired
from stockyard.operations.node_providers.allowed_types import set_allowed_types
from stockyard.operations.node_providers.providers import (
    change_provider,
    create_provider,
    delete_provider,
    plan_creation,
)
from stockyard.operations.node_providers.types import get_type, list_types
from stockyard.operations.node_providers.visible import find_own, find_provider, page_of
from stockyard.operations.quotas.limits import set_quota
from stockyard.operations.services import Services
from stockyard.ports import Create
from tests.harness.sweeping import Reaper
from tests.unit.operations.installation import LIMITED_TO_ONE, SMALL, Installation
from tests.unit.operations.nodes import Nodes


def types_of(services: Services) -> list[str]:
    return [node_type["name"] for node_type in list_types(services, limit=50)[0]]


def test_shared_provider_is_visible_to_every_tenant(installation: Installation) -> None:
    provider = installation.share()
    assert provider.id.startswith("spr_")
    for tenant in ("acme", "globex", PLATFORM):
        services = installation.services(tenant)
        assert find_provider(services, "lab") == find_provider(services, provider.id) == provider
        assert types_of(services) == ["lab.small"]
        assert get_type(services, "small")["provider_id"] == provider.id
        assert page_of(services.store, None, 10, None).items == [provider]


def test_own_provider_hides_shared_one_of_same_name(installation: Installation) -> None:
    shared = installation.share("lab", SMALL)
    acme, globex = installation.of("acme"), installation.of("globex")
    own = create_provider(acme.services, ProviderDocument("lab", "simulated", {"nodeTypes": [SMALL]}), "user:ann")
    assert find_provider(acme.services, "lab") == own
    assert find_provider(acme.services, shared.id) == shared
    assert list_types(acme.services, limit=9)[0][0]["provider_id"] == own.id
    acme_claim, globex_claim = acme.claim("one", provider_ref="lab"), globex.claim("one", provider_ref="lab")
    installation.schedule()
    placed = [node.now(claim).placement for node, claim in ((acme, acme_claim), (globex, globex_claim))]
    assert [placement and placement.provider_id for placement in placed] == [own.id, shared.id]
    assert [provider.id for provider in page_of(acme.services.store, None, 9, None).items] == [own.id, shared.id]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_pages_list_own_providers_before_shared_ones(installation: Installation, size: int) -> None:
    acme = installation.of("acme")
    own, shared = (
        [make(f"{n}").id for n in range(count)] for make, count in ((acme.provider, 3), (installation.share, 2))
    )
    expected = sorted(own) + sorted(shared)
    provider_ids: list[str] = []
    after: str | None = None
    while True:
        page = page_of(acme.services.store, after, size, {"kind": "simulated"})
        assert len(page.items) <= size
        provider_ids += [provider.id for provider in page.items]
        after = page.next_id
        if after is None:
            break
    assert provider_ids == expected
    assert page_of(acme.services.store, None, size, {"kind": "ec2"}).items == []


def test_capacity_of_shared_provider_is_for_all_tenants(installation: Installation) -> None:
    shared = installation.share()
    acme, globex = installation.of("acme"), installation.of("globex")
    first = acme.claim("first", resources={"cpu": "1"})
    installation.schedule()
    second = globex.claim("second", resources={"cpu": "1"})
    installation.schedule()
    assert (acme.now(first).type_ref, globex.now(second).reason) == ("lab.small", "NoCapacity")
    assert get_type(globex.services, "lab.small")["capacity"] == {
        "total": 1,
        "claimed": 1,
        "available": 0,
        "counted_at": None,
    }
    acme.relay()
    assert acme.now(first).phase == "Available"
    acme.delete(first)
    acme.relay()
    assert acme.nothing_left()
    assert installation.woken("initech") == 0
    assert installation.woken(PLATFORM) == 1
    globex.relay()
    assert globex.now(second).phase == "Available"
    counter = installation.services(PLATFORM).store.get(Counter, f"capacity/{shared.id}/small")
    assert counter is not None
    assert counter.value == 1


def test_allowed_types_apply_to_shared_providers(installation: Installation) -> None:
    installation.share("lab", SMALL)
    acme, globex = installation.of("acme"), installation.of("globex")
    set_allowed_types(acme.services, ["own.*"], 0)
    set_allowed_types(globex.services, ["lab.*"], 0)
    acme_claim, globex_claim = acme.claim("one"), globex.claim("one")
    installation.schedule()
    assert (acme.now(acme_claim).placement, globex.now(globex_claim).type_ref) == (None, "lab.small")


def test_tenant_cannot_change_delete_or_read_shared_provider(installation: Installation) -> None:
    provider = installation.share()
    acme = installation.services("acme")
    for id_or_name, error in ((provider.id, Forbidden), ("lab", NotFound)):
        for refused in (
            lambda reference: find_own(acme, reference),
            lambda reference: change_provider(acme, reference, 1, {"display_name": "x"}, "user:ann", "r"),
            lambda reference: delete_provider(acme, reference, "user:ann"),
        ):
            with pytest.raises(error, match="lab is shared" if error is Forbidden else "lab of your own"):
                refused(id_or_name)
    assert (
        find_own(installation.services(PLATFORM), "lab")
        == find_own(installation.services(PLATFORM), provider.id)
        == provider
    )


def test_change_of_shared_provider_is_audited_in_platform(installation: Installation) -> None:
    provider, platform = installation.share(), installation.services(PLATFORM)
    changed = change_provider(platform, provider.id, 1, {"display_name": "Lab"}, "user:root", "r")
    assert find_provider(installation.services("acme"), "lab") == changed
    assert [record.action for record in every(platform.store, AuditRecord)] == ["ChangeNodeProvider"]
    assert list(every(installation.services("acme").store, AuditRecord)) == []


def test_shared_provider_with_claims_cannot_be_deleted(installation: Installation) -> None:
    provider, platform = installation.share("lab", SMALL), installation.services(PLATFORM)
    globex = installation.of("globex")
    claim = globex.claim("theirs", provider_ref="lab")
    installation.schedule()
    with pytest.raises(InUse, match="used by globex/theirs"):
        delete_provider(platform, "lab", "user:root")
    with pytest.raises(InUse, match="globex/theirs"):
        change_provider(platform, provider.id, 1, {"spec": {"simulated": {"nodeTypes": []}}}, "user:root", "r")
    globex.relay()
    globex.delete(claim)
    globex.relay()
    assert delete_provider(platform, "lab", "user:root").status == "succeeded"
    with pytest.raises(NotFound):
        find_provider(globex.services, "lab")
    kinds: tuple[Any, ...] = (NodeProvider, Name, Fact)
    remaining = {kind.__name__: [record.id for record in every(platform.store, kind)] for kind in kinds}
    assert remaining == {"NodeProvider": [], "Name": [], "Fact": []}


def test_shared_provider_has_no_account_and_counts_for_platform_quota(installation: Installation) -> None:
    platform = installation.services(PLATFORM)
    with pytest.raises(InvalidInput) as refused:
        plan_creation(platform, ProviderDocument("aws", "ec2", {"cloudAccount": 1}))
    assert [error.pointer for error in refused.value.errors] == ["/spec/cloudAccount"]
    assert "belong to tenants" in str(refused.value)
    set_quota(platform, "node_providers", 1, 0)
    installation.share()
    with pytest.raises(QuotaExceeded):
        installation.share("two")
    with pytest.raises(InUse):
        plan_creation(platform, ProviderDocument("lab", "simulated", {"nodeTypes": [LIMITED_TO_ONE]}))


def test_platform_manifests_create_providers_and_no_claims(installation: Installation) -> None:
    provider = {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": "lab"}}
    claim = {"apiVersion": "stockyard/v1", "kind": "NodeClaim", "metadata": {"name": "one"}}
    spec = {"simulated": {"nodeTypes": [LIMITED_TO_ONE]}}
    platform = installation.services(PLATFORM)
    (manifest,) = read_desired(platform, [{**provider, "spec": spec}], "user:root", admin=True)
    assert manifest.current is None
    shared = installation.share()
    (manifest,) = read_desired(platform, [{**provider, "spec": spec}], "user:root", admin=True)
    assert manifest.current == shared
    with pytest.raises(Forbidden, match="X-Stockyard-Tenant"):
        read_desired(platform, [{**claim, "spec": {"cluster": "c"}}], "user:root", admin=True)


def not_drifted_status(nodes: Nodes, claim: NodeClaim) -> str:
    return next(condition.status for condition in nodes.now(claim).conditions if condition.type == "NotDrifted")


def test_change_of_shared_provider_compares_nodes_of_every_tenant(installation: Installation) -> None:
    provider, platform = installation.share("lab", SMALL), installation.services(PLATFORM)
    having = {tenant: installation.of(tenant) for tenant in ("acme", "globex")}
    claims = {tenant: nodes.claim("one") for tenant, nodes in having.items()}
    installation.schedule()
    for nodes in having.values():
        nodes.relay()
    spec = {"simulated": {"nodeTypes": [{**SMALL, "resources": {"cpu": "4", "memory": "4Gi"}}]}}
    change_provider(platform, provider.id, 1, {"spec": spec}, "user:root", "r")
    assert installation.scheduler().compare([(PLATFORM, provider.id)]) == 2
    assert [not_drifted_status(nodes, claims[tenant]) for tenant, nodes in having.items()] == ["False", "False"]
    change_provider(platform, provider.id, 2, {"spec": {"simulated": {"nodeTypes": [SMALL]}}}, "user:root", "r")
    done = Reaper(installation.nodes.registry, installation.nodes.clock, installation.services).run()["done"]
    assert sorted(done) == sorted(f"undrifted {claim.id}" for claim in claims.values())


def test_shared_capacity_goes_to_tenant_waiting_longest(installation: Installation) -> None:
    installation.share()
    acme, zeta, first = installation.of("acme"), installation.of("zeta"), installation.of("first")
    having = first.claim("having")
    installation.schedule()
    first.relay()
    longest = zeta.claim("longest")
    installation.nodes.hours(1)
    younger = acme.claim("younger", priority=100)
    installation.schedule()
    first.delete(having)
    first.relay()
    assert installation.woken(PLATFORM) == 1
    assert (zeta.now(longest).type_ref, acme.now(younger).placement) == ("lab.small", None)


def own_lab(nodes: Nodes, *types: dict[str, Any]) -> NodeProvider:
    document = ProviderDocument("lab", "simulated", {"nodeTypes": list(types or (SMALL,))})
    return create_provider(nodes.services, document, "user:ann")


def test_node_of_shared_provider_does_not_hold_own_one_of_same_name(installation: Installation) -> None:
    installation.share("lab", SMALL)
    acme = installation.of("acme")
    acme.claim("one", provider_ref="lab")
    installation.schedule()
    acme.relay()
    own = own_lab(acme)
    spec = {"spec": {"simulated": {"nodeTypes": [{**SMALL, "name": "big"}]}}}
    assert change_provider(acme.services, own.id, 1, spec, "user:ann", "r").version == 2
    assert delete_provider(acme.services, own.id, "user:ann").status == "succeeded"
    with pytest.raises(NotFound):
        delete_provider(acme.services, "lab", "user:ann")


def test_node_of_own_provider_does_not_hold_shared_one_of_same_name(installation: Installation) -> None:
    shared, acme = installation.share("lab", SMALL), installation.of("acme")
    world = installation.nodes
    cluster = Cluster(
        id="clu_1", name="demo", description="", provider="aws", cloud_account_id=1, cluster_type="k8s",
        client_id="demo-1", settings={}, tags={}, status="ready", created_at=world.moment(), updated_at=world.moment(),
    )  # fmt: skip
    acme.services.store.commit(Create(cluster), Create(Name("cluster/demo", cluster.id)))
    first = acme.claim("first", provider_ref="lab", cluster_ref="demo")
    installation.schedule()
    acme.relay()
    own_lab(acme)
    acme.claim("second", provider_ref="lab", cluster_ref="demo")
    installation.schedule()
    acme.relay()
    acme.delete(first)
    acme.relay()
    Reaper(world.registry, world.clock, installation.services).run()
    environments = [environment.provider_id for environment in every(acme.services.store, NodeEnvironment)]
    assert [provider_id.partition("_")[0] for provider_id in environments] == ["npr"]
    assert delete_provider(installation.services(PLATFORM), shared.id, "user:root").status == "succeeded"


def test_type_name_without_provider_prefers_own_provider(installation: Installation) -> None:
    acme = installation.of("acme")
    acme.provider("own", SMALL)
    installation.share("lab", SMALL)
    assert get_type(acme.services, "small")["name"] == "own.small"
    claim = acme.claim("one", type_ref="small")
    installation.schedule()
    assert acme.now(claim).type_ref == "own.small"
    assert get_type(installation.services("globex"), "small")["name"] == "lab.small"


def test_compare_continues_after_unreadable_tenant(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, platform = installation.share("lab", SMALL), installation.services(PLATFORM)
    acme, globex = installation.of("acme"), installation.of("globex")
    acme.claim("one")
    claim = globex.claim("one")
    installation.schedule()
    for nodes in (acme, globex):
        nodes.relay()
    spec = {"simulated": {"nodeTypes": [{**SMALL, "resources": {"cpu": "4", "memory": "4Gi"}}]}}
    change_provider(platform, provider.id, 1, {"spec": spec}, "user:root", "r")
    page = MemoryStore.list

    def broken(self: MemoryStore, kind: Any, **more: Any) -> Any:
        if (self.tenant, kind) == ("acme", NodeClaim):
            raise StoreUnavailable("down")
        return page(self, kind, **more)

    monkeypatch.setattr(MemoryStore, "list", broken)
    with pytest.raises(StoreUnavailable):
        installation.scheduler().compare([(PLATFORM, provider.id)])
    assert not_drifted_status(globex, claim) == "False"
