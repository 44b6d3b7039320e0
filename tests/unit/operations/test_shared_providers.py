"""Providers that the platform shares: all tenants see them and share their places, the platform alone changes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from stockyard.domain.manifests import ProviderDocument
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import AuditRecord, Counter, Fact, Name, NodeClaim, NodeProvider
from stockyard.errors import Forbidden, InUse, InvalidInput, NotFound, QuotaExceeded
from stockyard.operations.allowed_types import set_allowed_types
from stockyard.operations.every import every
from stockyard.operations.manifest_wishes import read_wishes
from stockyard.operations.node_providers import change_provider, create_provider, delete_provider, plan_creation
from stockyard.operations.node_types import get_type, list_types
from stockyard.operations.quotas import set_quota
from stockyard.operations.reap import Reaper
from stockyard.operations.services import Services
from stockyard.operations.visible_providers import find_own, find_provider, page_of
from stockyard.operations.wake_scheduler import Scheduler
from tests.unit.operations.conftest import World
from tests.unit.operations.nodes import Nodes

SMALL: dict[str, Any] = {"name": "small", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 0.1}
ONE: dict[str, Any] = {**SMALL, "maxCapacity": 1}


@dataclass(frozen=True)
class Installation:
    """Two tenants and the platform, by name."""

    nodes: Nodes

    def services(self, tenant: str) -> Services:
        given, registry = self.nodes.services, self.nodes.registry
        if tenant == PLATFORM:
            return replace(given, store=registry.platform(), of=self.services)
        return replace(given, store=registry.store(tenant))

    def of(self, tenant: str) -> Nodes:
        return replace(self.nodes, services=self.services(tenant))

    def share(self, name: str = "lab", *types: dict[str, Any], **more: Any) -> NodeProvider:
        wanted = ProviderDocument(name, "simulated", {"nodeTypes": list(types or (ONE,))}, **more)
        return create_provider(self.services(PLATFORM), wanted, "user:root")

    def scheduler(self) -> Scheduler:
        return Scheduler(self.nodes.registry, self.services)

    def woken(self, *roomier: str) -> int:
        return self.scheduler().woken([], self.nodes.clock.advance(0.001), roomier)["bound"]

    def schedule(self) -> None:
        self.scheduler().overdue(self.nodes.clock.advance(0.001))


@pytest.fixture
def them(world: World) -> Installation:
    return Installation(Nodes.of(world.registry, world.services, world.clock))


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
    for refused in (
        lambda: find_own(acme, "lab"),
        lambda: change_provider(acme, made.id, 1, {"display_name": "x"}, "user:ann", "r"),
        lambda: delete_provider(acme, "lab", "user:ann"),
    ):
        with pytest.raises(Forbidden, match="lab is shared"):
            refused()
    assert find_own(them.services(PLATFORM), "lab") == made


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
    with pytest.raises(InUse, match="theirs"):
        delete_provider(platform, "lab", "user:root")
    with pytest.raises(InUse, match="theirs"):
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
