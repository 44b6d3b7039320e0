"""Providers that the platform shares: all tenants see them and share their places, the platform alone changes them."""

from __future__ import annotations

from typing import Any

import pytest

from local.memory_store import MemoryStore
from stockyard.domain.manifests import ProviderDocument
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
from stockyard.operations.allowed_types import set_allowed_types
from stockyard.operations.every import every
from stockyard.operations.manifest_wishes import read_wishes
from stockyard.operations.node_providers import change_provider, create_provider, delete_provider, plan_creation
from stockyard.operations.node_types import get_type, list_types
from stockyard.operations.quotas import set_quota
from stockyard.operations.reap import Reaper
from stockyard.operations.services import Services
from stockyard.operations.visible_providers import find_own, find_provider, page_of
from stockyard.ports import Create
from tests.unit.operations.installation import ONE, SMALL, Installation
from tests.unit.operations.nodes import Nodes


def types_of(services: Services) -> list[str]:
    return [one["name"] for one in list_types(services, limit=50)[0]]


def test_every_tenant_finds_it_and_its_types(them: Installation) -> None:
    made = them.share()
    assert made.id.startswith("spr_")
    for tenant in ("acme", "globex", PLATFORM):
        services = them.services(tenant)
        assert find_provider(services, "lab") == find_provider(services, made.id) == made
        assert types_of(services) == ["lab.small"]
        assert get_type(services, "small")["provider_id"] == made.id
        assert page_of(services.store, None, 10, None).items == [made]


def test_ones_own_hides_a_shared_one_of_the_same_name(them: Installation) -> None:
    shared = them.share("lab", SMALL)
    acme, globex = them.of("acme"), them.of("globex")
    own = create_provider(acme.services, ProviderDocument("lab", "simulated", {"nodeTypes": [SMALL]}), "user:ann")
    assert find_provider(acme.services, "lab") == own
    assert find_provider(acme.services, shared.id) == shared
    assert list_types(acme.services, limit=9)[0][0]["provider_id"] == own.id
    theirs, others = acme.claim("one", provider_ref="lab"), globex.claim("one", provider_ref="lab")
    them.schedule()
    placed = [node.now(claim).placement for node, claim in ((acme, theirs), (globex, others))]
    assert [one and one.provider_id for one in placed] == [own.id, shared.id]
    assert [one.id for one in page_of(acme.services.store, None, 9, None).items] == [own.id, shared.id]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_pages_show_ones_own_and_then_the_shared_ones(them: Installation, size: int) -> None:
    acme = them.of("acme")
    own, shared = ([make(f"{n}").id for n in range(count)] for make, count in ((acme.provider, 3), (them.share, 2)))
    expected = sorted(own) + sorted(shared)
    found: list[str] = []
    after: str | None = None
    while True:
        page = page_of(acme.services.store, after, size, {"kind": "simulated"})
        assert len(page.items) <= size
        found += [one.id for one in page.items]
        after = page.next_id
        if after is None:
            break
    assert found == expected
    assert page_of(acme.services.store, None, size, {"kind": "ec2"}).items == []


def test_its_places_are_for_all_tenants_together(them: Installation) -> None:
    shared = them.share()
    acme, globex = them.of("acme"), them.of("globex")
    first = acme.claim("first", resources={"cpu": "1"})
    them.schedule()
    second = globex.claim("second", resources={"cpu": "1"})
    them.schedule()
    assert (acme.now(first).type_ref, globex.now(second).reason) == ("lab.small", "NoCapacity")
    assert get_type(globex.services, "lab.small")["capacity"] == {"total": 1, "claimed": 1, "available": 0}
    acme.relay()
    assert acme.now(first).phase == "Available"
    acme.delete(first)
    acme.relay()
    assert acme.nothing_left()
    assert them.woken("initech") == 0
    assert them.woken(PLATFORM) == 1
    globex.relay()
    assert globex.now(second).phase == "Available"
    counter = them.services(PLATFORM).store.get(Counter, f"capacity/{shared.id}/small")
    assert counter is not None
    assert counter.value == 1


def test_what_a_tenant_may_use_holds_for_shared_ones_too(them: Installation) -> None:
    them.share("lab", SMALL)
    acme, globex = them.of("acme"), them.of("globex")
    set_allowed_types(acme.services, ["own.*"], 0)
    set_allowed_types(globex.services, ["lab.*"], 0)
    mine, theirs = acme.claim("one"), globex.claim("one")
    them.schedule()
    assert (acme.now(mine).placement, globex.now(theirs).type_ref) == (None, "lab.small")


def test_no_tenant_changes_or_removes_it_or_reads_its_document(them: Installation) -> None:
    made = them.share()
    acme = them.services("acme")
    for id_or_name, error in ((made.id, Forbidden), ("lab", NotFound)):
        for refused in (
            lambda given: find_own(acme, given),
            lambda given: change_provider(acme, given, 1, {"display_name": "x"}, "user:ann", "r"),
            lambda given: delete_provider(acme, given, "user:ann"),
        ):
            with pytest.raises(error, match="lab is shared" if error is Forbidden else "lab of your own"):
                refused(id_or_name)
    assert find_own(them.services(PLATFORM), "lab") == find_own(them.services(PLATFORM), made.id) == made


def test_the_platform_changes_it_and_says_so_in_its_own_audit(them: Installation) -> None:
    made, platform = them.share(), them.services(PLATFORM)
    changed = change_provider(platform, made.id, 1, {"display_name": "Lab"}, "user:root", "r")
    assert find_provider(them.services("acme"), "lab") == changed
    assert [one.action for one in every(platform.store, AuditRecord)] == ["ChangeNodeProvider"]
    assert list(every(them.services("acme").store, AuditRecord)) == []


def test_what_tenants_have_of_it_keeps_it(them: Installation) -> None:
    made, platform = them.share("lab", SMALL), them.services(PLATFORM)
    globex = them.of("globex")
    claim = globex.claim("theirs", provider_ref="lab")
    them.schedule()
    with pytest.raises(InUse, match="used by globex/theirs"):
        delete_provider(platform, "lab", "user:root")
    with pytest.raises(InUse, match="globex/theirs"):
        change_provider(platform, made.id, 1, {"spec": {"simulated": {"nodeTypes": []}}}, "user:root", "r")
    globex.relay()
    globex.delete(claim)
    globex.relay()
    assert delete_provider(platform, "lab", "user:root").status == "succeeded"
    with pytest.raises(NotFound):
        find_provider(globex.services, "lab")
    kinds: tuple[Any, ...] = (NodeProvider, Name, Fact)
    left = {kind.__name__: [one.id for one in every(platform.store, kind)] for kind in kinds}
    assert left == {"NodeProvider": [], "Name": [], "Fact": []}


def test_it_has_no_cloud_account_and_counts_for_the_platforms_quota(them: Installation) -> None:
    platform = them.services(PLATFORM)
    with pytest.raises(InvalidInput) as refused:
        plan_creation(platform, ProviderDocument("aws", "ec2", {"cloudAccount": 1}))
    assert [one.pointer for one in refused.value.errors] == ["/spec/cloudAccount"]
    assert "belong to tenants" in str(refused.value)
    set_quota(platform, "node_providers", 1, 0)
    them.share()
    with pytest.raises(QuotaExceeded):
        them.share("two")
    with pytest.raises(InUse):
        plan_creation(platform, ProviderDocument("lab", "simulated", {"nodeTypes": [ONE]}))


def test_manifests_make_it_and_claims_of_the_platform_are_refused(them: Installation) -> None:
    provider = {"apiVersion": "stockyard/v1", "kind": "NodeProvider", "metadata": {"name": "lab"}}
    claim = {"apiVersion": "stockyard/v1", "kind": "NodeClaim", "metadata": {"name": "one"}}
    spec = {"simulated": {"nodeTypes": [ONE]}}
    platform = them.services(PLATFORM)
    (wish,) = read_wishes(platform, [{**provider, "spec": spec}], "user:root", admin=True)
    assert wish.current is None
    made = them.share()
    (wish,) = read_wishes(platform, [{**provider, "spec": spec}], "user:root", admin=True)
    assert wish.current == made
    with pytest.raises(Forbidden, match="X-Stockyard-Tenant"):
        read_wishes(platform, [{**claim, "spec": {"cluster": "c"}}], "user:root", admin=True)


def said(nodes: Nodes, claim: NodeClaim) -> str:
    return next(one.status for one in nodes.now(claim).conditions if one.type == "NotDrifted")


def test_nodes_of_every_tenant_are_compared_when_it_changes(them: Installation) -> None:
    made, platform = them.share("lab", SMALL), them.services(PLATFORM)
    having = {tenant: them.of(tenant) for tenant in ("acme", "globex")}
    claims = {tenant: nodes.claim("one") for tenant, nodes in having.items()}
    them.schedule()
    for nodes in having.values():
        nodes.relay()
    spec = {"simulated": {"nodeTypes": [{**SMALL, "resources": {"cpu": "4", "memory": "4Gi"}}]}}
    change_provider(platform, made.id, 1, {"spec": spec}, "user:root", "r")
    assert them.scheduler().compare([(PLATFORM, made.id)]) == 2
    assert [said(nodes, claims[tenant]) for tenant, nodes in having.items()] == ["False", "False"]
    change_provider(platform, made.id, 2, {"spec": {"simulated": {"nodeTypes": [SMALL]}}}, "user:root", "r")
    done = Reaper(them.nodes.registry, them.nodes.clock, them.services).run()["done"]
    assert sorted(done) == sorted(f"undrifted {claim.id}" for claim in claims.values())


def test_who_waits_longest_gets_the_place_whatever_the_tenants_name(them: Installation) -> None:
    them.share()
    acme, zeta, first = them.of("acme"), them.of("zeta"), them.of("first")
    having = first.claim("having")
    them.schedule()
    first.relay()
    longest = zeta.claim("longest")
    them.nodes.hours(1)
    younger = acme.claim("younger", priority=100)
    them.schedule()
    first.delete(having)
    first.relay()
    assert them.woken(PLATFORM) == 1
    assert (zeta.now(longest).type_ref, acme.now(younger).placement) == ("lab.small", None)


def own_lab(nodes: Nodes, *types: dict[str, Any]) -> NodeProvider:
    wanted = ProviderDocument("lab", "simulated", {"nodeTypes": list(types or (SMALL,))})
    return create_provider(nodes.services, wanted, "user:ann")


def test_a_node_of_the_shared_one_does_not_hold_ones_own_of_that_name(them: Installation) -> None:
    them.share("lab", SMALL)
    acme = them.of("acme")
    acme.claim("one", provider_ref="lab")
    them.schedule()
    acme.relay()
    own = own_lab(acme)
    spec = {"spec": {"simulated": {"nodeTypes": [{**SMALL, "name": "big"}]}}}
    assert change_provider(acme.services, own.id, 1, spec, "user:ann", "r").version == 2
    assert delete_provider(acme.services, own.id, "user:ann").status == "succeeded"
    with pytest.raises(NotFound):
        delete_provider(acme.services, "lab", "user:ann")


def test_ones_own_of_that_name_does_not_hold_the_shared_one(them: Installation) -> None:
    shared, acme = them.share("lab", SMALL), them.of("acme")
    world = them.nodes
    cluster = Cluster(
        id="clu_1", name="demo", description="", provider="aws", cloud_account_id=1, cluster_type="k8s",
        client_id="demo-1", settings={}, tags={}, status="ready", created_at=world.moment(), updated_at=world.moment(),
    )  # fmt: skip
    acme.services.store.commit(Create(cluster), Create(Name("cluster/demo", cluster.id)))
    first = acme.claim("first", provider_ref="lab", cluster_ref="demo")
    them.schedule()
    acme.relay()
    own_lab(acme)
    acme.claim("second", provider_ref="lab", cluster_ref="demo")
    them.schedule()
    acme.relay()
    acme.delete(first)
    acme.relay()
    Reaper(world.registry, world.clock, them.services).run()
    environments = [one.provider_id for one in every(acme.services.store, NodeEnvironment)]
    assert [one.partition("_")[0] for one in environments] == ["npr"]
    assert delete_provider(them.services(PLATFORM), shared.id, "user:root").status == "succeeded"


def test_ones_own_types_are_meant_by_a_bare_name(them: Installation) -> None:
    acme = them.of("acme")
    acme.provider("own", SMALL)
    them.share("lab", SMALL)
    assert get_type(acme.services, "small")["name"] == "own.small"
    claim = acme.claim("one", type_ref="small")
    them.schedule()
    assert acme.now(claim).type_ref == "own.small"
    assert get_type(them.services("globex"), "small")["name"] == "lab.small"


def test_one_tenant_that_cannot_be_read_keeps_none_of_the_others(
    them: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, platform = them.share("lab", SMALL), them.services(PLATFORM)
    acme, globex = them.of("acme"), them.of("globex")
    acme.claim("one")
    claim = globex.claim("one")
    them.schedule()
    for nodes in (acme, globex):
        nodes.relay()
    spec = {"simulated": {"nodeTypes": [{**SMALL, "resources": {"cpu": "4", "memory": "4Gi"}}]}}
    change_provider(platform, made.id, 1, {"spec": spec}, "user:root", "r")
    page = MemoryStore.list

    def broken(self: MemoryStore, kind: Any, **more: Any) -> Any:
        if (self.tenant, kind) == ("acme", NodeClaim):
            raise StoreUnavailable("down")
        return page(self, kind, **more)

    monkeypatch.setattr(MemoryStore, "list", broken)
    with pytest.raises(StoreUnavailable):
        them.scheduler().compare([(PLATFORM, made.id)])
    assert said(globex, claim) == "False"
