"""Number of hosts of each node type, as the account's hosts were last counted."""

from __future__ import annotations

from collections.abc import Mapping

from stockyard.domain.nodes.declared_types import block_of, declared
from stockyard.domain.records import NodeProvider
from stockyard.providers.clouds.kubernetes.host_sheets import CountedHost, HostSheet
from stockyard.providers.nodes.metal3 import selectors
from stockyard.providers.nodes.metal3.hosts import Need
from stockyard.providers.nodes.metal3.launch import selector_of


def matching(sheet: HostSheet, provider: NodeProvider) -> Mapping[str, list[CountedHost]]:
    """The counted hosts of each type, by its bare name: whatever may be done with them."""
    namespace = block_of(provider)["clusterRef"]["namespace"]
    hosts = [host for host in sheet.hosts if host.namespace == namespace]
    result: dict[str, list[CountedHost]] = {}
    for each in declared(provider):
        selector = selector_of(provider, each.name)
        need = Need(selector, each.resources)
        result[each.name] = [
            host
            for host in hosts
            if selectors.matches(selector, host.labels) and need.has_room(host.cpus, host.memory_mib)
        ]
    return result


def totals(sheet: HostSheet, provider: NodeProvider) -> dict[str, int]:
    """Number of hosts of each type that are free or the tenant's already."""
    return {name: sum(1 for host in hosts if host.blocker is None) for name, hosts in matching(sheet, provider).items()}
