"""Nodes of managed node groups of EKS: ``ports.nodes.NodeSource``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.nodes.offers import RegionOffers
from stockyard.domain.records import CloudAccount, NodeClaim, NodeProvider, Placement
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports import Finding, Outcome, Tagged
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.clouds.aws import console, regions
from stockyard.providers.clouds.aws.catalog.type_labels import ZONE_ID
from stockyard.providers.clouds.aws.sessions import OpenSecrets, SessionFactory, Sessions
from stockyard.providers.nodes.eks import capacity_blocks, catalogue, machine, topology
from stockyard.providers.nodes.eks.configuration import EksNodesConfig, region, reservation_of
from stockyard.providers.nodes.eks.work import calls, claim_reconciler, group_work

__all__ = ["EksNodes", "EksNodesConfig"]

Offers = Callable[[str], RegionOffers | None]
"""Everything known of a region; None when nothing is."""
_MAX_PROVIDERS = 16
"""Providers whose node types a process keeps."""
_LIMITS = {"launch": 1800, "register": 1800}
"""Seconds. A group begins with a machine when EC2 Auto Scaling next looks at it, and EKS's images join slowly."""


class EksNodes(NodeSource):
    """Takes and gives back the machines of node groups, which EKS and EC2 Auto Scaling make."""

    takes_from_groups = True
    has_topology = True
    needs_images = True
    switches = True

    def __init__(
        self,
        config: EksNodesConfig,
        session_factory: SessionFactory,
        offers: Offers,
        secrets: OpenSecrets | None = None,
    ) -> None:
        self._config = config
        self._sessions = Sessions(session_factory, secrets=secrets)
        self._offers = offers
        self._node_types: OrderedDict[tuple[str, int, str], tuple[NodeType, ...]] = OrderedDict()

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """See ``ports.nodes.NodeSource.node_types``. None of a region that the catalogue does not know."""
        offers = self._offers(region(provider))
        if offers is None:
            return ()
        key = (provider.id, provider.version, offers.as_of)
        node_types = self._node_types.get(key)
        if node_types is None:
            node_types = self._node_types[key] = catalogue.node_types(provider, offers)
            while len(self._node_types) > _MAX_PROVIDERS:
                self._node_types.popitem(last=False)
        self._node_types.move_to_end(key)
        return node_types

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The provider alone: what a group was refused, it was refused in its zones and of its capacity block."""
        return f"provider/{provider.id}"

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:  # noqa: ARG002
        """See ``ports.nodes.NodeSource.inspect``."""
        here = region(provider)
        if self._offers(here) is not None:
            return []
        text = f"The catalogue has no data of {here} yet; there are no node types until it has been refreshed."
        text += regions.opt_in_remark(here)
        return [Finding("/spec/region", text, warning=True)]

    def sheet(self, provider: NodeProvider) -> str:
        """See ``ports.nodes.Discovers``: offers are by region."""
        return region(provider)

    def group(self, provider: NodeProvider, claim: NodeClaim) -> str:  # noqa: ARG002 - groups go by their pools
        """See ``ports.nodes.TakesFromGroups``."""
        return claim.pool

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:  # noqa: ARG002
        """See ``ports.nodes.LaunchesSlowly``."""
        return _LIMITS

    # See ``ports.nodes.HasTopology``.
    location = staticmethod(topology.location)
    out_of_reach = staticmethod(topology.out_of_reach)
    out_of_zone = staticmethod(topology.out_of_zone)
    zones = staticmethod(topology.zones)
    # See ``ports.nodes.NamesZones``.
    zone_ids = staticmethod(topology.zone_ids)
    zone_id_label = ZONE_ID
    # See ``ports.nodes.NeedsImages``.
    architectures = staticmethod(catalogue.architectures)

    def still_offers(self, provider: NodeProvider, placement: Placement) -> bool:  # noqa: ARG002
        """See ``ports.nodes.Drifts``: what a group has is its pool's to say, and no document's."""
        return True

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """See ``ports.nodes.NodeSource.prepare``. Nothing is made in the account."""
        cluster = topology.check(work.provider, work.cluster)
        outputs = topology.find(calls(work, self._sessions, cluster, self._config), cluster, work.provider)
        return Outcome(True, "Node groups stand in the cluster's subnets.", facts=outputs)

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``."""
        if work.claim.placement is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        return machine.Launch(claim_reconciler(work, self._sessions, self._config), work, *group_work(work)).run()

    def look(self, work: NodeWork) -> Machine:
        """See ``ports.nodes.NodeSource.look``."""
        return machine.look(claim_reconciler(work, self._sessions, self._config))

    def ends_at(self, work: NodeWork) -> str | None:
        """See ``ports.nodes.EndsMachines``: those of a capacity block end before it does."""
        cluster, _, pool = group_work(work)
        reservation = reservation_of(cluster, pool)
        if not reservation:
            return None
        return capacity_blocks.machines_end_at(calls(work, self._sessions, cluster, self._config), reservation)

    def console(self, work: NodeWork) -> str | None:
        """See ``ports.nodes.ShowsNodeConsole``."""
        reconciler = claim_reconciler(work, self._sessions, self._config)
        observed = machine.look(reconciler)
        return console.read(reconciler.calls, observed.machine_id) if observed.machine_id else None

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """See ``ports.nodes.NodeSource.power``. A node can be rebooted and not be switched off."""
        return machine.power(claim_reconciler(work, self._sessions, self._config), state, work.session)

    def terminate(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.terminate``."""
        reconciler = claim_reconciler(work, self._sessions, self._config)
        cluster, holds, _ = group_work(work)
        return machine.terminate(reconciler, cluster, holds, work)

    def clear(self, work: EnvironmentWork) -> Outcome:  # noqa: ARG002 - nothing was made
        """See ``ports.nodes.NodeSource.clear``."""
        return Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:  # noqa: ARG002
        """Nothing: the sweep of the cloud account sees machines already."""
        return ()

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:  # noqa: ARG002
        """See ``tagged``: there is nothing to remove here."""
        return False
