"""Nodes that are hosts of a head node's inventory: ``ports.nodes.NodeSource``, direct or through a site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import CloudAccount, NodeProvider
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports import Finding, Outcome, Tagged
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.clouds.bcm.access import Access, inventory_of
from stockyard.providers.nodes.bcm import types
from stockyard.providers.nodes.bcm.configuration import BcmNodesConfig
from stockyard.providers.nodes.bcm.findings import findings, hosts_of_types, unsupported
from stockyard.providers.nodes.bcm.inventory import counted, hosts_by_type, read_sheet
from stockyard.providers.nodes.bcm.machine import HostWork

_LIMITS = {"launch": 3600, "register": 5400, "terminate": 5400, "power": 1800}
"""Seconds. A full installation of a large host takes 20 to 40 minutes. Its node registers after that, also where the
head node does not tell when it has ended."""


class BcmNodes(NodeSource):
    """Installs hosts and gives them back. ``sheet`` is the inventory as it was last read; without one there are no
    hosts on offer, and all else works."""

    sells_from_sheet = True
    counts_stock = True
    switches = True

    def __init__(self, config: BcmNodesConfig, access: Access, sheet: bytes | None = None) -> None:
        self._config, self._access = config, access
        self._sheet = read_sheet(sheet)

    def with_sheet(self, sheet: bytes | None) -> BcmNodes:
        """See ``ports.nodes.SellsFromSheet``."""
        return BcmNodes(self._config, self._access, sheet)

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """See ``ports.nodes.NodeSource.node_types``."""
        return types.node_types(provider, self._sheet)

    def totals(self, provider: NodeProvider) -> Mapping[str, int]:
        """See ``ports.nodes.CountsStock``: the hosts that carry the owner's mark."""
        hosts = hosts_by_type(provider, self._sheet) if self._sheet is not None else {}
        return {name: len(counted(of_type)) for name, of_type in hosts.items()}

    def counted_at(self, provider: NodeProvider) -> str | None:  # noqa: ARG002
        """See ``ports.nodes.CountsStock``."""
        return self._sheet.moment if self._sheet is not None else None

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The provider alone: others have hosts of their own."""
        return f"provider/{provider.id}"

    def host_inventory(self, provider: NodeProvider, account: CloudAccount | None) -> str:
        """See ``ports.nodes.TakesHosts``: the head node."""
        return f"bcm-{inventory_of(account.attributes)}" if account is not None else f"bcm-{provider.id}"

    def hosts_of_types(self, provider: NodeProvider) -> Sequence[Finding]:
        """See ``ports.nodes.TakesHosts``."""
        return hosts_of_types(provider, self._sheet)

    joins_overlay = True
    """See ``ports.nodes.JoinsOverlay``."""

    def attestation(self, provider: NodeProvider) -> str:  # noqa: ARG002
        """See ``ports.nodes.Attests``. A head node gives its hosts no keys."""
        return TOKEN

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:
        """See ``ports.nodes.NodeSource.inspect``."""
        return findings(provider, account, self._sheet)

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:  # noqa: ARG002
        """See ``ports.nodes.LaunchesSlowly``."""
        return _LIMITS

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """Nothing is set up. A property that asks for a network of its own is refused by its name."""
        _refuse_networks(work.environment.properties)
        return Outcome(True)

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``."""
        _refuse_networks(work.claim.properties)
        return self._host(work).launch()

    def look(self, work: NodeWork) -> Machine:
        """See ``ports.nodes.NodeSource.look``."""
        return self._host(work).look()

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """See ``ports.nodes.Switches``."""
        return self._host(work).power(state)

    def terminate(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.terminate``."""
        return self._host(work).terminate()

    def clear(self, work: EnvironmentWork) -> Outcome:  # noqa: ARG002
        """Nothing was set up."""
        return Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:  # noqa: ARG002
        """Nothing: the sweep of the cloud account sees hosts already."""
        return ()

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:  # noqa: ARG002
        """See ``tagged``: there is nothing to remove here."""
        return False

    def _host(self, work: NodeWork) -> HostWork:
        if work.account is None:
            raise NodeCouldNotBeProvisioned(f"The cloud account of node provider {work.provider.name} is gone.")
        return HostWork(self._access.client(work.tenant, work.account), work, self._config)


def _refuse_networks(properties: Mapping[str, str]) -> None:
    name = unsupported(properties)
    if name is not None:
        raise NodeCouldNotBeProvisioned(f"Property {name}: networks of hosts are not set up by Stockyard.")
