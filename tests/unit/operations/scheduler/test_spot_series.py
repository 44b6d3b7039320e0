"""Spot prices are played from a series, minute by minute: nodes are launched only while they cost at most their bid,
none is ended by us for its price, and who waits is told why and wakes within a minute of the sheet that lets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets
from stockyard.domain.nodes.node_types import ANY, ON_DEMAND, SPOT, NodeType, Offering
from stockyard.domain.nodes.offers import ClusterVersion, InstanceOffer, SpotPrice
from stockyard.domain.pools.bids import ABOVE_BID, Bid
from stockyard.domain.records import CloudAccount, NodeClaim, NodeEnvironment, NodeProvider, SimulatedMachine
from stockyard.domain.values import times
from stockyard.errors import CapacityAwaited
from stockyard.lifecycle.pools.spread import zone_of
from stockyard.operations.fleet.explain import explain_claim
from stockyard.operations.listing import every
from stockyard.operations.node_claims import lost_machines
from stockyard.operations.node_providers.refresh_catalog import CatalogRefresh
from stockyard.ports import Outcome, Remove
from stockyard.ports.node_work import NodeWork
from stockyard.providers.nodes.simulated.provider import SimulatedNodes
from tests.harness.worlds.ports import with_ports
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard

REGION, USD = "us-east-1", 0.1
ZONES = {"us-east-1a": "use1-az4", "us-east-1b": "use1-az1", "us-east-1c": "use1-az2"}
IN_SPOT = [{"key": "karpenter.sh/capacity-type", "values": ["spot"]}]
ASK_AGAIN = 300


@dataclass
class Series:
    """The market of one region: each zone's price holds for a while and then jumps, as drawn from the seed."""

    chance: Random
    start: datetime
    now: datetime
    steps: dict[str, list[tuple[datetime, float]]] = field(default_factory=dict)
    cloud = "aws"
    default_region = REGION

    def play(self, hours: int) -> None:
        """Draw the prices of so many hours: between a fifth and more than all of the price on demand."""
        for zone_id in ZONES.values():
            moment, steps = self.start - timedelta(hours=7), []
            while moment < self.start + timedelta(hours=hours):
                steps.append((moment, round(USD * self.chance.uniform(0.2, 1.1), 4)))
                moment += timedelta(minutes=self.chance.randint(20, 400))
            self.steps[zone_id] = steps

    def price(self, zone_id: str, moment: datetime) -> float:
        return [usd for begins, usd in self.steps[zone_id] if begins <= moment][-1]

    # What the catalogue's refresh asks a market.

    def regions(self) -> Sequence[str]:
        return [REGION]

    def offers(self, region: str) -> Mapping[str, InstanceOffer]:
        return {"small": InstanceOffer("small", 2, 4096, "x86_64", 3, 10)}

    def prices(self, region: str) -> Mapping[str, float]:
        return {"small": USD}

    def spot_prices(self, region: str, since: datetime) -> Mapping[str, Mapping[str, SpotPrice]]:
        def of_zone(zone_id: str) -> SpotPrice:
            now = self.price(zone_id, self.now)
            late = [usd for begins, usd in self.steps[zone_id] if since <= begins <= self.now]
            late += [self.price(zone_id, since), now]
            return SpotPrice(now, min(late), max(late))

        return {"small": {zone_id: of_zone(zone_id) for zone_id in self.steps}}

    def rates(self, region: str) -> Mapping[str, float]:
        return {"gp3": 0.08}

    def versions(self, region: str) -> Sequence[ClusterVersion]:
        return ()


class SpotNodes(SimulatedNodes):
    """Simulated machines that are bought as EC2 sells spot: the market holds the bid, and takes machines back."""

    series: Series
    price_list: Ec2PriceList
    launches: list[tuple[str, float, float]]
    terminations: list[str]
    refusals: int = 0

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:
        sheet = self.price_list.spot(REGION)
        prices = sheet.instances["small"] if sheet is not None else {}
        dearest = max((price.now for price in prices.values()), default=None)
        ways = (Offering(ON_DEMAND, (ANY,), USD), Offering(SPOT, (ANY,), dearest, prices, USD))
        return [replace(each, offerings=ways) for each in super().node_types(provider, account)]

    zone_id_label = "topology.lab/zone-id"

    def zone_ids(self, provider: NodeProvider, environment: NodeEnvironment | None) -> Mapping[str, str]:
        return ZONES

    def prices_as_of(self, provider: NodeProvider) -> str:
        sheet = self.price_list.spot(REGION)
        return sheet.as_of if sheet is not None else ""

    def launch(self, work: NodeWork) -> Outcome:
        placed, bid = work.claim.placement, Bid.of(work.claim.max_price)
        assert placed is not None
        assert placed.capacity_type == SPOT
        if work.ledger.find("simulated machine", "node") is None and bid is not None:
            limit = float(bid.limit(USD) or 0)
            prices = {zone: self.series.price(ZONES[zone], work.now) for zone in placed.zones}
            able = [zone for zone in placed.zones if prices[zone] <= limit]
            if not able:
                self.refusals += 1
                again_at = times.to_text(work.now + timedelta(seconds=ASK_AGAIN))
                raise CapacityAwaited("the price is above the bid", reason=ABOVE_BID, again_at=again_at)
            self.refuses = lambda _provider, _type, zone: zone not in able
            self.launches.append((work.claim.id, prices[able[0]], limit))
        return super().launch(work)

    def terminate(self, work: NodeWork) -> Outcome:
        if self.look(work).state != "absent":
            self.terminations.append(work.claim.id)
        return super().terminate(work)


@dataclass
class Play:
    """A pool on spot in a market that moves. ``waits`` counts what was said to who waits."""

    yard: Yard
    source: SpotNodes
    series: Series
    chance: Random
    refresh: CatalogRefresh
    reclaimed: int = 0
    woken: int = 0
    waits: int = 0

    @property
    def now(self) -> datetime:
        return self.yard.nodes.clock.now()

    def minute(self) -> None:
        """The minute's work of the catalogue, the pools and the scheduler; then of the workflows."""
        self.yard.nodes.clock.advance(60)
        self.series.now = self.now
        self.refresh.run()
        self.reclaim()
        self.yard.look()
        before = {claim.id for claim in self.waiting()}
        self.yard.nodes.schedule()
        self.woken += len(before - {claim.id for claim in self.waiting()})
        self.judge()
        self.yard.nodes.relay()
        self.series.now = self.now

    def waiting(self) -> list[NodeClaim]:
        return [claim for claim in self.yard.claims() if claim.phase == "Pending" and claim.placement is None]

    def judge(self) -> None:
        """Check waiting claims: each costs more than its bid by the newest sheet, and is told what was seen; or EC2
        refused it."""
        waiting = self.waiting()
        # Whatever the product keeps of a sheet, this is the newest.
        sheet = (
            Ec2PriceList(self.yard.nodes.registry.platform(), now=lambda: self.now).spot(REGION) if waiting else None
        )
        for claim in waiting:
            assert sheet is not None
            limit = float(Bid(**claim.max_price).limit(USD) or 0)
            zone = zone_of(claim)
            price = min(sheet.instances["small"][ZONES[name]].now for name in ([zone] if zone else ZONES))
            assert claim.reason == ABOVE_BID
            self.waits += 1
            if claim.due_at is not None and claim.due_at > times.to_text(self.now):
                continue  # the market refused it a moment ago
            assert price > limit, "it was in range, and nobody had refused it"
            assert f"{price:g} USD an hour" in claim.message
            explanation = explain_claim(self.yard.nodes.services, claim.id)
            assert {each["rule"] for each in explanation["candidates"] if each["type"] == "sim.small"} == {ABOVE_BID}

    def reclaim(self) -> None:
        """The cloud takes back some of the machines that cost more than their bid now."""
        services = self.yard.nodes.services
        for machine in list(every(services.store, SimulatedMachine)):
            claim = services.store.get(NodeClaim, machine.claim_id)
            if claim is None or claim.phase != "Available":
                continue
            limit = float(Bid(**claim.max_price).limit(USD) or 0)
            dear = self.series.price(ZONES[machine.zone], self.now) > limit
            if dear and self.chance.random() < 0.02:
                services.store.commit(Remove(SimulatedMachine, machine.id))
                assert lost_machines.note(services, claim.id)
                self.reclaimed += 1


def played(seed: int, hours: int, **fields: Any) -> Play:
    """The market with its pool, when so many hours are over."""
    yard, chance = make_yard(), Random(seed)
    nodes = yard.nodes
    series = Series(chance, nodes.clock.now(), nodes.clock.now())
    series.play(hours + 200)
    platform = nodes.registry.platform()
    source = SpotNodes(nodes.registry.store)
    source.series, source.launches, source.terminations = series, [], []
    source.price_list = Ec2PriceList(platform, lambda: nodes.clock.now().timestamp(), nodes.clock.now)
    nodes.services = with_ports(nodes.services, node_sources={"simulated": source})
    sheets = StoredPriceSheets(platform)
    refresh = CatalogRefresh(nodes.registry, nodes.clock, series, sheets, {"simulated": source})
    only_small = [*IN_SPOT, {"key": "vcluster.com/node-type", "values": ["sim.small"]}]
    yard.dynamic_pool("workers", requirements=only_small, **{"quantity": 4, **fields})
    play = Play(yard, source, series, chance, refresh)
    until = nodes.clock.now() + timedelta(hours=hours)
    while nodes.clock.now() < until:
        play.minute()
    return play


@pytest.mark.parametrize(
    "fields",
    [
        {"max_price": {"percent": 60}, "zones": list(ZONES)},
        {"max_price": {"usd_hour": 0.05}},
        {"max_price": {"percent": 110}, "zones": list(ZONES)[:2]},
    ],
    ids=str,
)
def test_nodes_are_launched_in_range_kept_out_of_it_and_woken_when_it_comes_back(
    fields: dict[str, Any], seed: int, soaking: bool
) -> None:
    counts = {"launches": 0, "waits": 0, "woken": 0, "reclaimed": 0}
    for number in range(4 if soaking else 1):  # five days take a minute
        play = played(seed * 1000 + number, 24 * 5 if soaking else 4, **fields)
        assert all(price <= limit for _, price, limit in play.source.launches)
        assert play.source.terminations == []
        counts["launches"] += len(play.source.launches)
        for name in ("waits", "woken", "reclaimed"):
            counts[name] += getattr(play, name)
    if soaking and fields["max_price"].get("percent") != 110:
        assert all(counts.values()), counts


def test_a_series_has_every_case() -> None:
    """Every case is known to come in this series: nodes wait, wake, are refused by the market and taken back."""
    play = played(1, 10, max_price={"percent": 60}, zones=list(ZONES))
    assert len(play.source.launches) >= 4
    assert min(play.waits, play.woken, play.reclaimed, play.source.refusals) > 0
