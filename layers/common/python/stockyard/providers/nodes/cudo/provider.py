"""Nodes on Cudo, in the project and network of their cluster: ``ports.nodes.NodeSource``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import CloudAccount, NodeEnvironment, NodeProvider, Placement
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import NodeCouldNotBeProvisioned, VendorRefused
from stockyard.ports import Finding, Outcome, Tagged
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.clouds.cudo import sheets
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.making import Reconciler
from stockyard.providers.clouds.cudo.marks import marks
from stockyard.providers.clouds.cudo.values import MachineType
from stockyard.providers.nodes.cudo import machine, node_class, topology, types
from stockyard.providers.nodes.cudo.configuration import (
    CudoNodesConfig,
    data_center,
    is_named,
    own_sizes,
    setting,
)
from stockyard.providers.nodes.cudo.node_class import NodeClass

_MAX_PROVIDERS = 64
"""Providers whose node types a process keeps. Each node group has one of its own, of a few types."""
_LIMITS = {"launch": 1800, "register": 1800}
"""Seconds. Cudo takes minutes for a machine, and longer for one that it has to clone a large image to."""
_LOST = "Delete the claim; another one gets another machine."


class CudoNodes(NodeSource):
    """Makes and removes the machines of claims. ``sheet`` is what the provider's cloud account was last offered;
    without one there are no node types, and all else works."""

    sells_from_sheet = True
    has_topology = True
    switches = True

    def __init__(self, config: CudoNodesConfig, access: Access, sheet: bytes | None = None) -> None:
        self._config, self._access, self._sheet = config, access, sheet
        self._node_types: OrderedDict[tuple[str, int, bytes], tuple[NodeType, ...]] = OrderedDict()

    def with_sheet(self, sheet: bytes | None) -> CudoNodes:
        """See ``ports.nodes.SellsFromSheet``. What was read of sheets is kept by the first of them."""
        source = CudoNodes(self._config, self._access, sheet)
        source._node_types = self._node_types
        return source

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """See ``ports.nodes.NodeSource.node_types``. None of an account that was offered nothing yet."""
        if self._sheet is None:
            return ()
        key = (provider.id, provider.version, self._sheet)
        node_types = self._node_types.get(key)
        if node_types is None:
            node_types = self._node_types[key] = types.node_types(provider, self._offered())
            while len(self._node_types) > _MAX_PROVIDERS:
                self._node_types.popitem(last=False)
        self._node_types.move_to_end(key)
        return node_types

    def _offered(self) -> Sequence[MachineType]:
        """The machine types of the sheet; none where another release has written it: the next refresh is near."""
        try:
            return sheets.read(self._sheet).types if self._sheet is not None else ()
        except VendorRefused:
            return ()

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The data center: capacity that one account was refused, others would be refused too."""
        return f"cudo/{data_center(provider)}"

    def attestation(self, provider: NodeProvider) -> str:  # noqa: ARG002
        """See ``ports.nodes.Attests``. Cudo gives its machines no keys."""
        return TOKEN

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:  # noqa: ARG002
        """See ``ports.nodes.NodeSource.inspect``."""
        offered, here = self._offered(), data_center(provider)
        if not offered:
            text = "What the account is offered is not known yet; there are no node types until it has been refreshed."
            return [Finding("/spec/cloudAccount", text, warning=True)]
        data_centers = sorted({kind.data_center for kind in offered})
        if here not in data_centers:
            return [Finding("/spec/dataCenter", f"Cudo sells nothing in {here}. It does in {', '.join(data_centers)}.")]
        if not types.matching(provider, offered):
            return [Finding("/spec/machineTypes", f"No machine type of {here} is named so.")]
        names = {node_type.bare for node_type in types.node_types(provider, offered)}
        if not names:
            return [Finding("/spec/sizes", f"No machine type of {here} is sold in these sizes.")]
        return [
            Finding(f"/spec/nodeTypes/{index}/name", f"{entry['name']} is not offered in {here}.", warning=True)
            for index, entry in enumerate(setting(provider, "nodeTypes") or ())
            if entry["name"] not in names
        ]

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:  # noqa: ARG002
        """See ``ports.nodes.LaunchesSlowly``."""
        return _LIMITS

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """See ``ports.nodes.NodeSource.prepare``. Nothing is made in the project but for a cluster that stands
        elsewhere."""
        cluster = topology.check(work.provider, work.cluster)
        if not topology.is_at_home(work.provider, cluster):
            node_class.make_foreign(
                self._environment_reconciler(work), self._config.name_prefix, work.provider, cluster
            )
        own_class = self._find(work)
        network = f"network {own_class.network}" if own_class.network else "no network but the cluster's overlay"
        text = f"Nodes stand in {network} in {own_class.data_center}."
        return Outcome(True, text, facts=own_class.facts())

    def _find(self, work: NodeWork | EnvironmentWork) -> NodeClass:
        cluster = topology.check(work.provider, work.cluster)
        cudo = self._access.client(work.tenant, _account(work))
        return node_class.find(cudo, work.provider, cluster, self._config.name_prefix, work.now)

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``."""
        if work.claim.placement is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        topology.check(work.provider, work.cluster)
        outputs = work.environment.outputs if work.environment is not None else {}
        there = node_class.of_facts(outputs, work.provider) or self._find(work)
        return machine.Launch(self._reconciler(work), work, self._config, there).run()

    # See ``ports.nodes.HasTopology``.
    location = staticmethod(topology.location)
    out_of_reach = staticmethod(topology.out_of_reach)
    joins_overlay = True
    out_of_zone = staticmethod(topology.out_of_zone)
    zones = staticmethod(topology.zones)

    def still_offers(self, provider: NodeProvider, placement: Placement) -> bool:
        """See ``ports.nodes.Drifts``."""
        parts = types.of_type_name(placement.type.removeprefix(f"{provider.name}."))
        if parts is None or not is_named(provider, parts[0]) or not placement.may_be_in((data_center(provider),)):
            return False
        asked_sizes = own_sizes(provider)
        if asked_sizes is None:
            return types.is_step(parts[1])
        figures = (parts[1].vcpus, parts[1].memory_gib, parts[1].gpus)
        return figures in {(size.vcpus, size.memory_gib, size.gpus) for size in asked_sizes}

    def is_stale(self, environment: NodeEnvironment, provider: NodeProvider, now: datetime) -> bool:
        """See ``ports.nodes.GrowsOld``: there may be newer images, or the document has changed since."""
        return node_class.is_stale(environment.outputs, provider, now, self._config.image_days)

    def kubelet_args(self, provider: NodeProvider, placement: Placement) -> Mapping[str, str]:
        """See ``ports.nodes.Reserves``."""
        parts = types.of_type_name(placement.type.removeprefix(f"{provider.name}."))
        return types.kubelet_args(parts[1]) if parts is not None else {}

    def look(self, work: NodeWork) -> Machine:
        """See ``ports.nodes.NodeSource.look``."""
        return machine.look(self._reconciler(work))

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """See ``ports.nodes.NodeSource.power``. Cudo is paid for a machine that is off all the same."""
        return machine.power(self._reconciler(work), state, work.session)

    def terminate(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.terminate``."""
        return machine.terminate(self._reconciler(work))

    def clear(self, work: EnvironmentWork) -> Outcome:
        """See ``ports.nodes.NodeSource.clear``."""
        return self._environment_reconciler(work).unmake() if work.ledger.lines() else Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:  # noqa: ARG002
        """Nothing: the sweep of the cloud account sees machines already."""
        return ()

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:  # noqa: ARG002
        """See ``tagged``: there is nothing to remove here."""
        return False

    def _environment_reconciler(self, work: EnvironmentWork) -> Reconciler:
        return Reconciler(
            cudo=self._access.client(work.tenant, _account(work)),
            ledger=work.ledger,
            marks=marks(work.installation, work.tenant, work.environment.id, 1),
            now=work.now,
            in_flight_seconds=self._config.in_flight_seconds,
        )

    def _reconciler(self, work: NodeWork) -> Reconciler:
        claim_marks = marks(work.installation, work.tenant, work.claim.id, work.claim.generation)
        return Reconciler(
            cudo=self._access.client(work.tenant, _account(work)),
            ledger=work.ledger,
            marks=claim_marks,
            now=work.now,
            in_flight_seconds=self._config.in_flight_seconds,
            lost=_LOST,
            failed=_LOST,
        )


def _account(work: NodeWork | EnvironmentWork) -> CloudAccount:
    if work.account is None:
        raise NodeCouldNotBeProvisioned(f"The cloud account of node provider {work.provider.name} is gone.")
    return work.account
