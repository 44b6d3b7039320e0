"""Nodes on EC2, in the account and network of their cluster: ``ports.nodes.NodeSource``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from stockyard.domain.nodes.node_types import ON_DEMAND, SPOT, NodeType
from stockyard.domain.nodes.offers import RegionOffers, SpotPrices
from stockyard.domain.records import CloudAccount, NodeEnvironment, NodeProvider, Placement
from stockyard.domain.values.states import DesiredPower
from stockyard.ports import Finding, Outcome, Tagged
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.clouds.aws import regions
from stockyard.providers.clouds.aws.catalog import reserved
from stockyard.providers.clouds.aws.catalog.images import kind_of
from stockyard.providers.clouds.aws.catalog.type_labels import ZONE_ID
from stockyard.providers.clouds.aws.sessions import OpenSecrets, SessionFactory, Sessions
from stockyard.providers.nodes.ec2 import catalogue, environment, machine, node_class, together, topology
from stockyard.providers.nodes.ec2.configuration import Ec2NodesConfig, region, setting, strategy
from stockyard.providers.nodes.ec2.fleet import DIVERSIFIED
from stockyard.providers.nodes.ec2.looks import Looks
from stockyard.providers.nodes.ec2.work import claim_reconciler, environment_owner, environment_reconciler, group_owner

__all__ = ["Ec2Nodes", "Ec2NodesConfig"]

Offers = Callable[[str], RegionOffers | None]
"""Everything known of a region; None when nothing is."""
Spot = Callable[[str], SpotPrices | None]
"""The spot prices of a region; None when none are known."""
_MAX_PROVIDERS = 16
"""Providers whose node types a process keeps."""
MOST_TOGETHER = 50
"""Machines that one call is asked for: a refusal or a lost answer concerns no more claims than that."""


class Ec2Nodes(NodeSource):
    """Makes and removes the machines of claims. ``offers`` and ``spot`` are the product's own EC2 catalogue."""

    has_topology = True
    needs_images = True
    switches = True

    def __init__(
        self,
        config: Ec2NodesConfig,
        session_factory: SessionFactory,
        offers: Offers,
        spot: Spot = lambda _region: None,
        secrets: OpenSecrets | None = None,
    ) -> None:
        self._config = config
        self._sessions = Sessions(session_factory, secrets=secrets)
        self._offers = offers
        self._spot = spot
        self._looks = Looks()
        self._node_types: OrderedDict[tuple[str, int, str, str], tuple[NodeType, ...]] = OrderedDict()

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """See ``ports.nodes.NodeSource.node_types``. None of a region that the catalogue does not know."""
        offers = self._offers(region(provider))
        if offers is None:
            return ()
        spot = self._spot(offers.region) if SPOT in catalogue.capacity_types(provider) else None
        key = (provider.id, provider.version, offers.as_of, spot.as_of if spot is not None else "")
        node_types = self._node_types.get(key)
        if node_types is None:
            node_types = self._node_types[key] = catalogue.node_types(provider, offers, spot)
            while len(self._node_types) > _MAX_PROVIDERS:
                self._node_types.popitem(last=False)
        self._node_types.move_to_end(key)
        return node_types

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The region: capacity that one account was refused, others would be refused too."""
        return f"ec2/{region(provider)}"

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:  # noqa: ARG002
        """See ``ports.nodes.NodeSource.inspect``."""
        here = region(provider)
        offers = self._offers(here)
        if offers is None:
            text = f"The catalogue has no data of {here} yet; there are no node types until it has been refreshed."
            text += regions.opt_in_remark(here)
            return [Finding("/spec/region", text, warning=True)]
        findings: list[Finding] = []
        if not catalogue.matching(provider, offers):
            findings.append(Finding("/spec/instanceTypes", f"No instance type of {here} is named so."))
        elif all(catalogue.unserved(provider, offer) for offer in catalogue.matching(provider, offers).values()):
            text = "No node can be made of any of its types without an image that has the driver of their devices."
            findings.append(Finding("/spec/image", text, warning=True))
        for index, entry in enumerate(setting(provider, "nodeTypes") or ()):
            if entry["name"] not in offers.instances:
                text = f"The catalogue knows no {entry['name']} in {here}; it will not be offered."
                findings.append(Finding(f"/spec/nodeTypes/{index}/name", text, warning=True))
        return findings

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """See ``ports.nodes.NodeSource.prepare``. Nothing is made in the account."""
        return environment.prepare(environment_reconciler(work, self._sessions, self._config), work)

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``."""
        reconciler = claim_reconciler(work, self._sessions, self._config)
        if work.cluster is not None:
            topology.check(work.provider, work.cluster)
        owner = environment_owner(work, self._config)
        offers = self._offers(region(work.provider))
        instances = offers.instances.values() if offers is not None else ()
        on_demand = {offer.name: offer.usd_hour for offer in instances if offer.usd_hour is not None}
        attempt = machine.Launch(reconciler, work, self._config, owner, self._architectures(work.provider), on_demand)
        if work.group is None:
            return attempt.run()
        return together.launch(attempt, work.group, group_owner(work, work.group.id, self._config))

    def together(self, provider: NodeProvider, capacity_type: str, properties: Mapping[str, str]) -> int:
        """See ``ports.nodes.LaunchesTogether``. One call launches on demand what is first in its order, so claims that
        are to begin with different types are launched alone."""
        spread = strategy(properties, provider) == DIVERSIFIED and capacity_type == ON_DEMAND
        return 1 if spread else MOST_TOGETHER

    # See ``ports.nodes.HasTopology`` and ``ports.nodes.NeedsImages`` and, of the last one, ``ports.nodes.Drifts``.
    location = staticmethod(topology.location)
    out_of_reach = staticmethod(topology.out_of_reach)
    joins_overlay = True
    out_of_zone = staticmethod(topology.out_of_zone)
    zones = staticmethod(topology.zones_of)
    zone_ids = staticmethod(topology.zone_ids)
    zone_id_label = ZONE_ID
    architectures = staticmethod(topology.architectures)
    still_offers = staticmethod(catalogue.still_offers)

    def sheet(self, provider: NodeProvider) -> str:
        """See ``ports.nodes.Discovers``: offers are by region."""
        return region(provider)

    def prices_as_of(self, provider: NodeProvider) -> str:
        """See ``ports.nodes.TracksPrices``."""
        spot = self._spot(region(provider)) if SPOT in catalogue.capacity_types(provider) else None
        return spot.as_of if spot is not None else ""

    def kubelet_args(self, provider: NodeProvider, placement: Placement) -> Mapping[str, str]:
        """See ``ports.nodes.Reserves``."""
        offers = self._offers(region(provider))
        offer = offers.instances.get(placement.type.removeprefix(f"{provider.name}.")) if offers is not None else None
        return reserved.kubelet_args(offer) if offer is not None else {}

    def look(self, work: NodeWork) -> Machine:
        """See ``ports.nodes.NodeSource.look``."""
        return machine.look(claim_reconciler(work, self._sessions, self._config))

    def glance(self, work: NodeWork) -> Machine:
        """See ``ports.nodes.LooksTogether``."""
        return self._looks.glance(claim_reconciler(work, self._sessions, self._config))

    def is_stale(self, environment: NodeEnvironment, provider: NodeProvider, now: datetime) -> bool:
        """See ``ports.nodes.GrowsOld``: the publisher's images are old, or the document has changed since."""
        return node_class.is_stale(environment.outputs, provider, now, self._config.image_days)

    def console(self, work: NodeWork) -> str | None:
        """See ``ports.nodes.ShowsNodeConsole``."""
        return machine.console(claim_reconciler(work, self._sessions, self._config))

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """See ``ports.nodes.NodeSource.power``."""
        return machine.power(claim_reconciler(work, self._sessions, self._config), state, work.session)

    def terminate(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.terminate``."""
        reconciler = claim_reconciler(work, self._sessions, self._config)
        if work.group is not None:
            mark = group_owner(work, work.group.id, self._config)
            waiting = together.settle(reconciler, work.claim, work.group, mark)
            if waiting is not None:
                return waiting
        owner = environment_owner(work, self._config) if work.environment is not None else None
        return machine.terminate(reconciler, work, owner)

    def clear(self, work: EnvironmentWork) -> Outcome:
        """See ``ports.nodes.NodeSource.clear``."""
        return environment.clear(environment_reconciler(work, self._sessions, self._config))

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:  # noqa: ARG002
        """Nothing: the sweep of the cloud account sees machines and launch templates already."""
        return ()

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:  # noqa: ARG002
        """See ``tagged``: there is nothing to remove here."""
        return False

    def _architectures(self, provider: NodeProvider) -> dict[str, str]:
        offers = self._offers(region(provider))
        instances = offers.instances.values() if offers is not None else ()
        has_own_image = bool(setting(provider, "image"))
        architectures = {
            offer.name: catalogue.ARCHITECTURES[offer.architecture]
            for offer in instances
            if offer.architecture in catalogue.ARCHITECTURES
        }
        return {name: own if has_own_image else kind_of(name, own) for name, own in architectures.items()}
