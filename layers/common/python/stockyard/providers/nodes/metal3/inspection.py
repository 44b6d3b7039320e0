"""Faults of a provider's document beyond its form, and warnings for the owner."""

from __future__ import annotations

from collections.abc import Iterator

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.records import CloudAccount, NodeProvider
from stockyard.domain.values.pointers import pointer
from stockyard.ports import Finding
from stockyard.providers.clouds.kubernetes import reach
from stockyard.providers.clouds.kubernetes.features import METAL3
from stockyard.providers.clouds.kubernetes.host_sheets import HostSheet
from stockyard.providers.nodes.metal3 import properties as settings
from stockyard.providers.nodes.metal3 import stock

_BY_OWNER = "Nothing is installed into a host. Its owner does it"
DEPLOYED = {
    "metal3": f"{_BY_OWNER}: kubectl apply -f"
    " https://github.com/cert-manager/cert-manager/releases/latest/download/cert-manager.yaml && kubectl apply -k"
    " 'https://github.com/metal3-io/baremetal-operator/config/overlays/basic-auth_tls?ref=v0.12.0'; and Ironic, as"
    " Metal3's guide has it.",
    "dhcp": f"{_BY_OWNER}, in the hosts' network: or addresses are said by {settings.RANGE}.",
    "multus": f"{_BY_OWNER}: kubectl apply -f https://raw.githubusercontent.com/k8snetworkplumbingwg/multus-cni/master/"
    "deployments/multus-daemonset-thick.yml",
}
"""Words to whoever asks us to install a part of Metal3: who does it, and how."""
REFUSED = {
    "neutronEnabled": "Networks of Neutron are not made: prepare the hosts' networks, and leave this field out.",
    "netris": "Netris is not spoken to: prepare the hosts' networks there, and leave this field out.",
    "netBox": "Hosts are not read from NetBox: make a BareMetalHost for each, and leave this field out.",
}
"""Parts of a document that nothing here does, and what to do instead."""


def namespace(provider: NodeProvider) -> str:
    """Namespace of the provider's hosts."""
    return str(block_of(provider)["clusterRef"]["namespace"])


def findings(provider: NodeProvider, account: CloudAccount | None) -> Iterator[Finding]:
    """Faults, each at its field."""
    block = block_of(provider)
    for name, part in (block.get("deploy") or {}).items():
        if (part or {}).get("enabled"):
            yield Finding(pointer("spec", "deploy", name), DEPLOYED[name])
    for name, text in REFUSED.items():
        if block.get(name):
            yield Finding(pointer("spec", name), text)
    yield from _of_account(provider, account)
    if fault := reach.network_fault(provider):
        yield Finding("/spec/properties", fault)
    for at, properties in _properties(provider):
        for key, fault in settings.faults(properties):
            yield Finding(pointer(*at, key), f"{key}: {fault}.")


def _of_account(provider: NodeProvider, account: CloudAccount | None) -> Iterator[Finding]:
    if account is None:
        return
    namespaces = account.attributes.get("namespaces") or ()
    if namespace(provider) not in namespaces:
        text = f"The account may work in {', '.join(namespaces)} alone."
        yield Finding("/spec/clusterRef/namespace", text)
    if METAL3 not in (account.attributes.get("features") or ()):
        text = f"Cloud account {account.id} is not for hosts of bare metal: add {METAL3} to its features."
        yield Finding("/spec/clusterRef/cluster", text)


def remarks(provider: NodeProvider, sheet: HostSheet | None, *, is_counted: bool) -> Iterator[Finding]:
    """Warnings: types without hosts, hosts that nobody wipes."""
    if sheet is None:
        if is_counted:
            text = "The account's hosts are not counted yet; no node is made until they are."
            yield Finding("/spec/clusterRef/cluster", text, warning=True)
        return
    for index, (name, hosts) in enumerate(stock.matching(sheet, provider).items()):
        at = ("spec", "nodeTypes", index, "bareMetalHosts")
        if not hosts:
            yield Finding(pointer(*at), f"No host of the namespace fits node type {name}.", warning=True)
        dirty = sorted(host.name for host in hosts if not host.is_wiped)
        if dirty:
            text = f"{', '.join(dirty[:5])}: automatedCleaningMode is disabled, so disks are not wiped between nodes."
            yield Finding(pointer(*at), text, warning=True)


def _properties(provider: NodeProvider) -> Iterator[tuple[tuple[str | int, ...], dict[str, str]]]:
    """The settings of each type over its provider's, and where the type's are."""
    for index, entry in enumerate(block_of(provider).get("nodeTypes") or ()):
        at = ("spec", "nodeTypes", index, "properties")
        yield at, {**provider.properties, **(entry.get("properties") or {})}
