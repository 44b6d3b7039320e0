"""One broker over clouds: a claim goes to the cheapest of EC2, Cudo and the simulated provider, in money."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.cudo.stock import Offered
from stockyard.domain.nodes.offers import InstanceOffer, RegionOffers
from stockyard.domain.nodes.records import NewClaim
from stockyard.domain.records import Cluster, NodeClaim, PriceSheet
from stockyard.domain.values import ids
from stockyard.domain.values.requirements import Requirements
from stockyard.operations.fleet.explain import explain_claim, plan_claim
from stockyard.operations.fleet.pools.claims import draft_claim
from stockyard.operations.fleet.pools.pools import draft
from stockyard.operations.node_claims.create import acceptance
from stockyard.operations.node_providers.catalog import availability, load
from stockyard.operations.node_providers.providers import create_provider
from stockyard.ports import ClusterDriver, Create, Put, Remove, Replace
from stockyard.providers.clouds.cudo.cloud import CudoCloud
from stockyard.providers.clusters.cudo import groups
from stockyard.providers.nodes.cudo.configuration import CudoNodesConfig
from stockyard.providers.nodes.cudo.provider import CudoNodes
from stockyard.providers.nodes.ec2.provider import Ec2Nodes, Ec2NodesConfig
from stockyard.providers.nodes.terraform.provider import TerraformConfig, TerraformNodes
from stockyard.scheduling.match import SchedulingRequest, choose
from tests.harness.worlds.cudo_yard import DALLAS, NUMBER, CudoYard
from tests.harness.worlds.ports import partial_port, with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

URL, REGION = "https://api.example.test", "us-east-1"
ON_CUDO, ON_AWS = "clu_01KDVJXQ80000000000000000A", "clu_01KDVJXQ80000000000000000B"
ON_BOTH = "clu_01KDVJXQ80000000000000000C"
PROVIDERS = ("amazon", "gpus", "lab")
AMAZON, GPUS, LAB, TEMPLATE = "amazon.m6i.large", "gpus.intel-2x8", "lab.small", "tofu.small"


class Market:
    """Three providers that all offer 2 vCPUs and 8 GiB, at these prices in USD an hour; the unit's price of Cudo."""

    def __init__(self, ec2: float = 0.096, unit: float = 0.02, simulated: float = 0.5) -> None:
        world = make_world()
        self.yard = CudoYard("intel", clock=world.clock)
        self.yard.cudo.stock = (Offered("intel", DALLAS, "", Decimal(0), Decimal(str(unit))),)
        self.nodes = nodes = Nodes.of(world.registry, world.services, world.clock)
        access = self.yard.access()
        large = InstanceOffer("m6i.large", 2, 8192, "x86_64", 3, 10, ec2)
        offers = RegionOffers(REGION, "2026", {large.name: large}, {"gp3": 0.0})
        no_session = cast(Callable[..., Any], None)
        sources = {
            **nodes.services.node_sources,
            "cudo": CudoNodes(CudoNodesConfig("vantage", URL), access),
            "ec2": Ec2Nodes(Ec2NodesConfig("vantage", URL), no_session, {REGION: offers}.get),
        }
        clouds = {**nodes.services.clouds, "cudo": CudoCloud(access)}
        nodes.services = with_ports(nodes.services, node_sources=sources, clouds=clouds)
        nodes.services.store.commit(Create(self.yard.account))
        self.refresh()
        nodes.provider("amazon", kind="ec2", block={"cloudAccount": 1, "region": REGION})
        nodes.provider("gpus", kind="cudo", block=self.yard.spec()["cudo"])
        small = {"name": "small", "resources": {"cpu": "2", "memory": "8Gi"}, "usdPerHour": simulated}
        nodes.provider("lab", small)
        self.cluster(ON_CUDO, "cudo", int(NUMBER), place=DALLAS)
        self.cluster(ON_AWS, "aws", 1)

    def refresh(self) -> None:
        """Refresh the account's prices as the catalogue's function does."""
        services = self.nodes.services
        data = CudoCloud(self.yard.access()).offers(self.yard.account, "acme", services.now())
        services.store.commit(Put(PriceSheet(ids.account_sheet(NUMBER), services.now(), data)))

    def template(self, cost: int) -> None:
        """Another provider with the same machine at so many units of 0.001 USD an hour, made by a template."""
        services, absent = self.nodes.services, cast(Any, None)
        source = TerraformNodes(TerraformConfig(URL, REGION), absent, absent, lambda _tenant: services.store)
        self.nodes.services = with_ports(services, node_sources={**services.node_sources, "terraform": source})
        small = {"name": "small", "resources": {"cpu": "2", "memory": "8Gi"}, "cost": cost}
        block = {"runner": {"cloudAccount": 1}, "nodeTemplate": {"inline": "# a machine"}, "nodeTypes": [small]}
        self.nodes.provider("tofu", kind="terraform", block=block, price_per_cost_unit=0.001)

    def cluster(
        self, cluster_id: str, provider: str, account: int, overlay: dict[str, Any] | None = None, **fields: Any
    ) -> None:
        moment, client_id = self.nodes.services.now(), ids.client_id("acme", cluster_id, "c")
        settings = {"region_name": REGION, **({"overlay": overlay} if overlay is not None else {})}
        cluster = Cluster(
            cluster_id, cluster_id, "d", "k8s", provider, account, client_id, "ready", settings, moment, moment,
            **fields,
        )  # fmt: skip
        self.nodes.services.store.commit(Create(cluster))
        if provider == "cudo":
            self.yard.cluster_network(client_id, cluster_id)

    def best(self) -> list[str]:
        """The types that a claim of no cluster fits, the one that is chosen first."""
        services = self.nodes.services
        catalog = load(services)
        scarce = availability(services, catalog, services.clock.now())
        choice = choose(catalog.index, SchedulingRequest(Requirements(), {}), scarce, candidates=10)
        assert choice is not None
        return [choice.node_type.name, *(other.node_type.name for other in choice.alternatives)]

    def prices(self) -> dict[str, float]:
        """The price of each type of the catalogue, by name."""
        return {name: each.usd_hour or 0.0 for name, each in load(self.nodes.services).node_types.items()}

    def launched(self, cluster: str = ON_CUDO) -> NodeClaim:
        """A new claim of the cluster, once the scheduler and the launch have settled where it goes."""
        claim = self.nodes.claim("one", cluster_ref=cluster)
        for _ in range(3):
            self.nodes.schedule()
            bound = self.nodes.now(claim)
            if bound.placement is None:
                continue
            payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": bound.operation_id}
            self.nodes.run("provision_node", {**payload, "attempt": bound.attempt}, most=40)
            if self.nodes.now(claim).machine_id:
                break
        return self.nodes.now(claim)

    def rules(self, claim: NodeClaim) -> dict[str, str]:
        """First rule by type that rules the type out for the claim; empty for those that fit."""
        candidates = explain_claim(self.nodes.services, claim.id)["candidates"]
        return {candidate["type"]: candidate["rule"] or "" for candidate in candidates}


money = st.floats(0.001, 9, allow_nan=False).map(lambda usd: round(usd, 4))


@settings(max_examples=25, deadline=None)
@given(ec2=money, unit=money, simulated=money)
def test_the_cheapest_of_three_is_chosen_and_the_next_when_it_is_refused(
    ec2: float, unit: float, simulated: float
) -> None:
    market = Market(ec2, unit, simulated)
    prices = market.prices()
    assert set(prices) == {AMAZON, GPUS, LAB}
    order = market.best()
    assert sorted(order) == sorted(prices)
    assert [prices[name] for name in order] == sorted(prices.values())
    offerings, scopes = market.nodes.services.unavailable_offerings, load(market.nodes.services).scopes
    assert offerings is not None
    provider, _, name = order[0].partition(".")
    offerings.remember(scopes[provider], [(name, "on-demand", "*")], "full", market.nodes.clock.now())
    assert market.best() == order[1:]
    market.nodes.clock.advance(181)
    assert market.best() == order


@pytest.mark.parametrize(
    ("market", "node_type"),
    [(Market(unit=0.01), GPUS), (Market(unit=0.9, simulated=0.1), LAB)],
    ids=["cudo", "simulated"],
)
def test_a_claim_of_a_cluster_on_cudo_goes_to_the_cheapest_in_reach(market: Market, node_type: str) -> None:
    claim = market.launched()
    assert claim.type_ref == node_type
    assert market.rules(claim) == {GPUS: "", LAB: "", AMAZON: "OutOfReach"}
    assert bool(market.yard.machines()) is (node_type == GPUS)


@pytest.mark.parametrize(("cost", "unit", "node_type"), [(50, 0.9, TEMPLATE), (800, 0.9, AMAZON), (800, 0.004, GPUS)])
def test_a_claim_across_clouds_and_a_template_goes_to_the_cheapest_and_explain_shows_them(
    cost: int, unit: float, node_type: str
) -> None:
    market = Market(unit=unit, simulated=2)
    market.template(cost)
    market.cluster(ON_BOTH, "aws", 1, overlay={"range": "100.96.0.0/16"})
    claim = market.nodes.claim("one", cluster_ref=ON_BOTH)
    market.nodes.schedule()
    assert market.nodes.now(claim).type_ref == node_type
    explanation = explain_claim(market.nodes.services, claim.id)["candidates"]
    prices = {each["type"]: each["usd_hour"] for each in explanation if each["rule"] is None}
    assert set(prices) == {AMAZON, GPUS, TEMPLATE}, "others take part in no overlay"
    assert (prices[TEMPLATE], min(prices, key=prices.__getitem__)) == (cost / 1000, node_type)


def test_a_claim_of_a_cluster_on_aws_is_out_of_the_reach_of_cudo() -> None:
    market = Market(unit=0.001, ec2=5)
    claim = market.nodes.claim("one", cluster_ref=ON_AWS)
    market.nodes.schedule()
    assert market.nodes.now(claim).type_ref == LAB
    assert market.rules(claim) == {AMAZON: "", LAB: "", GPUS: "OutOfReach"}


def test_a_claim_that_names_a_provider_of_another_cloud_is_told_why() -> None:
    market = Market()
    for provider, cluster in (("gpus", ON_AWS), ("amazon", ON_CUDO)):
        claim = market.nodes.claim(f"of-{provider}", cluster_ref=cluster, provider_ref=provider)
        market.nodes.schedule()
        waiting = market.nodes.now(claim)
        assert waiting.reason == "ProviderOutOfReach"
        assert "overlay" in waiting.message


class _Silent(ClusterDriver): ...


class _Billing(ClusterDriver):
    egress_usd = 0.09


def test_plans_of_nodes_in_another_network_say_what_a_gb_to_there_costs() -> None:
    market = Market(unit=0.001, ec2=5)
    store = market.nodes.services.store
    cluster = store.get(Cluster, ON_AWS)
    assert cluster is not None
    span = {"range": "100.64.0.0/16", "node_to_node": True}
    settings = {**cluster.settings, "overlay": span}
    store.commit(Replace(replace(cluster, settings=settings, version=cluster.version + 1)))
    drivers: Any = {cluster.driver: partial_port(_Billing)}
    services = with_ports(market.nodes.services, cluster_drivers=drivers)

    def details(provider: str) -> list[str]:
        plan = plan_claim(services, NewClaim(cluster_ref=ON_AWS, provider_ref=provider))
        return [warning["detail"] for warning in plan["warnings"] if "GB" in warning["detail"]]

    assert details("amazon") == []
    assert details("gpus") == [
        "A node of gpus stands in another network: what the cluster's own network sends it costs about 0.09 USD a GB."
        " It is in no price here."
    ]
    drivers[cluster.driver] = partial_port(_Silent)
    assert details("gpus") == [], "a cloud that bills nothing by the amount"


def test_when_cudo_has_no_room_the_next_cheapest_is_taken_and_others_do_not_try() -> None:
    market = Market(unit=0.01)
    market.yard.run_out(["intel"])
    claim = market.launched()
    assert claim.type_ref == LAB
    assert market.yard.machines() == []
    assert market.rules(claim)[GPUS] == "RefusedRecently"
    calls = market.yard.cudo.calls["CreateVM"]
    again = market.nodes.claim("two", cluster_ref=ON_CUDO)
    market.nodes.schedule()
    assert market.nodes.now(again).type_ref == LAB
    assert market.yard.cudo.calls["CreateVM"] == calls


def test_what_the_sheet_shows_as_taken_is_not_tried() -> None:
    market = Market(unit=0.01)
    market.yard.run_out(["intel"])
    market.refresh()
    claim = market.launched()
    assert claim.type_ref == LAB
    assert market.rules(claim)[GPUS] == "Unavailable"
    assert market.yard.cudo.calls["CreateVM"] == 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x1f\x8b",
        gzip.compress(b"no json"),
        gzip.compress(b'{"form": 0}'),
        gzip.compress(b'{"form": 1, "types": [{}]}'),
    ],
    ids=["empty", "no gzip", "no json", "another form", "other types"],
)
def test_a_sheet_that_this_release_cannot_read_leaves_the_other_providers(data: bytes) -> None:
    market = Market()
    market.nodes.services.store.commit(Put(PriceSheet(ids.account_sheet(NUMBER), "t", data)))
    assert set(market.prices()) == {AMAZON, LAB}


def test_an_account_without_a_sheet_has_no_node_types() -> None:
    market = Market()
    market.nodes.services.store.commit(Remove(PriceSheet, ids.account_sheet(NUMBER)))
    assert set(market.prices()) == {AMAZON, LAB}


def test_a_group_with_gpus_gets_its_floor_on_cudo() -> None:
    market = Market(unit=0.01, simulated=0.001)
    market.yard.cudo.stock = (Offered("v100", DALLAS, "V100", Decimal("0.19"), Decimal("0.02")),)
    market.refresh()
    group = {
        "id": "gpus", "role": "worker", "min_size": 1, "max_size": 2, "vcpus": 6, "memory_gib": 20, "gpus": 1,
        "boot_disk_size_gib": 120, "data_center_id": DALLAS, "machine_type": "v100", "gpu_model": "", "labels": {},
    }  # fmt: skip
    services = market.nodes.services
    cluster = services.store.get(Cluster, ON_CUDO)
    assert cluster is not None
    document = groups.provider(cluster, group)
    create_provider(services, document, "user:ann", implicit=True)
    pool = draft(services, ON_CUDO, groups.pool_of_group(group, document.name), "user:ann")
    services.store.commit(Create(pool))
    floor = draft_claim(services, ON_CUDO, pool)
    services.store.commit(*acceptance(services, floor, "user:ann")[1])
    market.nodes.schedule()
    claim = market.nodes.now(floor)
    assert claim.type_ref == f"{document.name}.v100-6x20-1g"
    payload = {"tenant": "acme", "claim_id": claim.id, "operation_id": claim.operation_id, "attempt": claim.attempt}
    market.nodes.run("provision_node", payload, most=40)
    (machine,) = market.yard.project.machines.values()
    asked_for = {name: machine.body[name] for name in ("machineType", "vcpus", "memoryGib", "gpus", "bootDiskSizeGib")}
    assert asked_for == {"machineType": "v100", "vcpus": 6, "memoryGib": 20, "gpus": 1, "bootDiskSizeGib": 120}
    assert "nvidia" in machine.body["bootDiskImageId"]
    labels = market.nodes.now(claim).node_labels
    assert labels["cudocompute.com/machine-type"] == "v100"
    assert labels["topology.kubernetes.io/zone"] == labels["topology.kubernetes.io/region"] == DALLAS
    assert labels["vcluster.com/node-type"] == claim.type_ref
