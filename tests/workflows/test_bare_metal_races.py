"""Many claims for few hosts at once: no host has two consumers, and whoever gets none waits and is told why."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, cast

import httpx

from local.testing.memory_store import MemoryStore, MemoryTable
from stockyard.domain.records import NodeClaim, NodeProvider, Placement, PlacementOption, PriceSheet
from stockyard.domain.values import ids, times
from stockyard.errors import InsufficientCapacity
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.services import Services
from stockyard.ports import Create, Put
from stockyard.ports.node_work import NodeWork
from stockyard.providers.clouds.kubernetes import bare_metal
from stockyard.providers.nodes.metal3.provider import Metal3Nodes
from tests.harness.bare_metal.yard import CONFIG, ROUTED, BareMetalYard, block
from tests.harness.worlds.kubernetes_host import NUMBER
from tests.harness.worlds.node_source_cases import CLUSTER, MOMENT, PROVIDER, cluster_of
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

KIND = "metal"
CLAIMS, HOSTS, WORKERS = 40, 25, 8
FEW = 0.3
"""Part of them in a run outside the soak."""


def hall(number: int) -> BareMetalYard:
    return BareMetalYard({f"m{each:02d}": {"kind": KIND} for each in range(number)})


@dataclass
class Crowd:
    """Claims that all are promised a host, and workers that launch them at once."""

    yard: BareMetalYard
    store: MemoryStore = field(default_factory=lambda: MemoryStore(MemoryTable(), "acme"))
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.provider = NodeProvider(PROVIDER, "yard", "metal3", {"metal3": block(KIND)}, MOMENT, MOMENT)
        self.cluster = cluster_of("aws", 1)
        access = self.yard.access(httpx.MockTransport(self._answer))
        self.source = Metal3Nodes(CONFIG, access, lambda _: self.store)
        self.services = cast(Services, _Services(self.store, self.yard.clock))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        """Requests come in any order, and each alone, as an API server has them."""
        with self.lock:
            return self.yard.answer(request)

    def claim(self, number: int) -> NodeClaim:
        option = PlacementOption(f"yard.{KIND}", "on-demand", ("global",), usd_hour=0.1, cost=1)
        placed = Placement(PROVIDER, f"yard.{KIND}", "on-demand", ("global",), 1.0, MOMENT, options=(option,))
        claim_id = f"ncl_{number:026d}"
        claim = NodeClaim(claim_id, f"c{number}", MOMENT, MOMENT, cluster_id=CLUSTER, operation_id="op_1")
        claim = replace(claim, placement=placed)
        self.store.commit(Create(claim))
        return claim

    def launch(self, claim: NodeClaim) -> str:
        """The host that the claim got, or the reason why it got none."""
        owner = Owner.of_claim(claim, "op_1", 1, "us-east-1", 1)
        for _ in range(100):
            ledger = StoreLedger(self.services, owner, "launch")
            work = NodeWork(
                "acme", "inst", claim, self.provider, ledger, self.yard.clock.now(), "op_1", self.cluster,
                self.yard.account,
            )  # fmt: skip
            try:
                outcome = self.source.launch(work)
            except InsufficientCapacity as refused:
                return refused.detail
            if outcome.done:
                return outcome.facts["machine_id"]
            with self.lock:
                self.yard.clock.advance(1)
        raise AssertionError(f"it does not end: {outcome}")


@dataclass
class _Services:
    store: Any
    clock: Any

    def now(self) -> str:
        return times.to_text(self.clock.now())


def test_no_host_has_two_consumers_however_many_want_it_at_once(
    soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    count, host_count = (round(each * (1 if soaking else FEW)) for each in (CLAIMS, HOSTS))
    crowd = Crowd(hall(host_count))
    claims = [crowd.claim(number) for number in range(count)]
    with ThreadPoolExecutor(WORKERS) as pool:
        ends = list(pool.map(crowd.launch, claims))
    hosts = crowd.yard.hosts()
    pairs = {claim.id: end for claim, end in zip(claims, ends, strict=True) if end in hosts}
    assert len(set(pairs.values())) == len(pairs) == host_count
    assert {bare_metal.holder(hosts[name]): name for name in hosts} == pairs
    refusals = [end for end in ends if end not in hosts]
    assert len(refusals) == count - host_count
    assert all(f"of {host_count} hosts for {KIND}" in text and "in use" in text for text in refusals), refusals[0]
    record_property("figure:bare_metal_race", {"claims": count, "hosts": len(pairs), "scarce": len(refusals)})


def test_claims_beyond_the_count_wait_as_scarce_and_say_so() -> None:
    world, yard = make_world(), hall(HOSTS)
    nodes = Nodes.of(world.registry, world.services, world.clock)
    moment = world.services.now()
    cloud = yard.cloud()
    sheet = PriceSheet(ids.account_sheet(NUMBER), moment, cloud.offers(yard.account, "acme", moment))
    world.services.store.commit(Create(yard.account), Put(sheet), Create(cluster_of("aws", 1)))
    nodes.provider("hall", kind="metal3", block=block(KIND), properties=ROUTED)
    source = Metal3Nodes(CONFIG, yard.access(), lambda _: world.services.store)
    nodes.services = with_ports(nodes.services, node_sources={"metal3": source}, clouds={"kubernetes": cloud})
    claims = [nodes.claim(f"c{number}", cluster_ref=CLUSTER) for number in range(CLAIMS)]
    nodes.schedule()
    after = [nodes.now(claim) for claim in claims]
    assert Counter(claim.placement is not None for claim in after) == {True: HOSTS, False: CLAIMS - HOSTS}
    waiting = [claim for claim in after if claim.placement is None]
    assert {claim.reason for claim in waiting} == {"NoCapacity"}
    assert "all its nodes are taken" in waiting[0].message
