"""Nodes that are hosts of bare metal: ``ports.nodes.NodeSource`` in a Kubernetes host, direct or through a site."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.nodes.declared_types import block_of, node_types_of
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider
from stockyard.domain.values import times
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports import Finding, Outcome, Store, Tagged
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.clouds.kubernetes import bare_metal, host_sheets, orphans, reach
from stockyard.providers.clouds.kubernetes.access import Access
from stockyard.providers.clouds.kubernetes.features import BARE_METAL_HOST, SECRET
from stockyard.providers.clouds.kubernetes.marks import marks
from stockyard.providers.clouds.kubernetes.os_images import os_image
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.kubernetes.errors import ObjectChanged
from stockyard.providers.nodes.metal3 import inspection, launch, stock
from stockyard.providers.nodes.metal3 import properties as settings
from stockyard.providers.nodes.metal3.hosts import Hosts
from stockyard.providers.nodes.metal3.launch import MACHINE, POLL_SECONDS, SECRETS, Launch, Metal3Config

REBOOT = "reboot"
"""A line of the ledger: an operation has switched the machine off, and on again once it is made."""
_KINDS = (BARE_METAL_HOST, SECRET)
_LIMITS = {"launch": 3600, "register": 1800, "terminate": 3600, "power": 900}
"""Seconds. A host inspects itself, gets its image and starts its firmware more than once."""


class Metal3Nodes(NodeSource):
    """Takes hosts and gives them back. ``sheet`` is the last count of the account's hosts: None before the first one;
    ``is_counted`` is False of the source by itself, which knows of no account."""

    sells_from_sheet = True
    counts_stock = True
    has_topology = True
    switches = True
    compares = True

    def __init__(
        self,
        config: Metal3Config,
        access: Access,
        store_of: Callable[[str], Store],
        sheet: bytes | None = None,
        *,
        is_counted: bool = False,
    ) -> None:
        self._config, self._access, self._store_of = config, access, store_of
        self._is_counted, self._sheet = is_counted, host_sheets.read(sheet)

    def with_sheet(self, sheet: bytes | None) -> Metal3Nodes:
        """See ``ports.nodes.SellsFromSheet``."""
        return Metal3Nodes(self._config, self._access, self._store_of, sheet, is_counted=True)

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """As declared: how many there are of each, ``totals`` says."""
        return node_types_of(provider, built=True)

    def totals(self, provider: NodeProvider) -> Mapping[str, int] | None:
        """See ``ports.nodes.CountsStock.totals``: the hosts that match and are free, or ours. Hosts of a cluster that
        Stockyard made are counted by nobody: what it has not is learnt by refusals."""
        if self._sheet is not None:
            return stock.totals(self._sheet, provider)
        return {} if self._is_counted else None

    def counted_at(self, provider: NodeProvider) -> str | None:  # noqa: ARG002
        """See ``ports.nodes.CountsStock.counted_at``."""
        return self._sheet.moment if self._sheet is not None else None

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The provider alone: another one may name other hosts."""
        return f"provider/{provider.id}"

    def attestation(self, provider: NodeProvider) -> str:  # noqa: ARG002
        """See ``ports.nodes.Attests``. Nobody vouches for a host."""
        return TOKEN

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:  # noqa: ARG002
        """See ``ports.nodes.LaunchesSlowly``."""
        return _LIMITS

    joins_overlay = True
    """See ``ports.nodes.JoinsOverlay``."""
    # See ``ports.nodes.HasTopology``.
    location = staticmethod(reach.location)
    out_of_reach = staticmethod(reach.out_of_reach)
    out_of_zone = staticmethod(reach.out_of_zone)
    zones = staticmethod(reach.zones)

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:
        """See ``ports.nodes.NodeSource.inspect``."""
        findings = list(inspection.findings(provider, account))
        return findings or list(inspection.remarks(provider, self._sheet, is_counted=self._is_counted))

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """There is nothing to set up; whether the cluster is in reach is checked before the first node."""
        reach.check(work.provider, work.cluster)
        return Outcome(True)

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``."""
        store = self._store_of(work.tenant)
        return Launch(self._hosts(work), work, self._config, store, lambda name: os_image(store, name)).run()

    def look(self, work: NodeWork) -> Machine:
        """The machine as the operator has it. A host that somebody else has by now, or that lost its image, is gone."""
        line = launch.machine_line(work)
        if line is None or line.state != "made":
            return Machine("absent")
        hosts = self._hosts(work)
        host = hosts.get(line.key)
        if host is None or not hosts.is_own(host) or "image" not in host["spec"]:
            return Machine("gone", line.key)
        zone, state = str(line.detail.get("zone") or ""), bare_metal.state(host)
        if state == bare_metal.PROVISIONED:
            return Machine("running" if bare_metal.is_on(host) else "stopped", line.key, zone=zone)
        is_lost = state.startswith(("deprovisioning", "deleting", "powering off"))
        return Machine("gone" if is_lost else "starting", line.key, zone=zone)

    def drift(self, work: NodeWork) -> str | None:
        """See ``ports.nodes.Compares``. The image of a host in use is never changed: its claim is replaced."""
        line = launch.machine_line(work)
        hosts = self._hosts(work)
        host = hosts.get(line.key) if line is not None and line.state == "made" else None
        if line is None or host is None or not hosts.is_own(host) or "image" not in host["spec"]:
            return None
        name = str(line.detail.get("type") or "").partition(".")[2]
        node_settings = launch.wished(work.provider, work.claim, name)
        image_name, store = settings.image_name(node_settings), self._store_of(work.tenant)
        try:
            image = settings.image_of(node_settings, os_image(store, image_name) if image_name else None)
        except NodeCouldNotBeProvisioned:
            return None  # a new machine could not be made: nothing is better than what stands
        if image.document() == host["spec"]["image"]:
            return None
        return f"Host {line.key} has another image than node type {name} has now."

    def template_fingerprint(self, provider: NodeProvider) -> str:
        """See ``ports.nodes.Compares.template_fingerprint``."""
        texts = json.dumps([provider.properties, block_of(provider).get("nodeTypes")], sort_keys=True)
        return hashlib.sha256(texts.encode()).hexdigest()[:32]

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """Switched on, off, or off and on once for an operation."""
        line, hosts = launch.machine_line(work), self._hosts(work)
        host = hosts.get(line.key) if line is not None and line.state == "made" else None
        if line is None or host is None or not hosts.is_own(host) or "image" not in host["spec"]:
            raise NodeCouldNotBeProvisioned("The claim has no machine.")
        desired_on = state == "On"
        if state == "Reboot":
            reboot = work.ledger.intend(REBOOT, work.session)
            if reboot.state != "made" and not bare_metal.is_on(host):
                work.ledger.made(reboot, line.key)
                desired_on = True
            desired_on = desired_on or reboot.state == "made"
        try:
            if host["spec"].get("online") is not desired_on:
                host = hosts.switch(host, on=desired_on)
        except ObjectChanged:
            return Outcome(False, f"Host {line.key} has changed.", 1)
        if bare_metal.is_on(host) is not desired_on or (state == "Reboot" and not desired_on):
            fault = bare_metal.fault(host)
            return Outcome(False, f"Host {line.key} is being switched{f': {fault}' if fault else '.'}", 5)
        power = "On" if desired_on else "Off"
        return Outcome(True, f"Host {line.key} is {power}.", facts={"power": power})

    def terminate(self, work: NodeWork) -> Outcome:
        """Give the host of each line back, when its operator has wiped it, and remove the Secrets."""
        for line in work.ledger.lines():
            if line.kind == REBOOT:
                work.ledger.gone(line)
        hosts = self._hosts(work)
        for line in work.ledger.lines():
            if line.kind == MACHINE:
                waits = self._give_back(work, hosts, line.key, is_made=line.state == "made")
                if waits is None and line.state != "made" and self._may_come(work, line.intended_at):
                    waits = Outcome(False, f"Host {line.key} may still be taken.", POLL_SECONDS)
                if waits is not None:
                    return replace(waits, remaining=(f"{MACHINE} {line.key}",))
                work.ledger.gone(line)
        for line in work.ledger.lines():
            if line.kind == SECRETS:
                remaining = (f"{SECRETS} {line.key}",)
                if not hosts.remove_secrets():
                    return Outcome(False, "Secrets are being removed.", 1, remaining=remaining)
                if line.state != "made" and self._may_come(work, line.intended_at):
                    return Outcome(False, "Secrets may still be made.", POLL_SECONDS, remaining=remaining)
                work.ledger.gone(line)
        return Outcome(True, "The machine is gone.")

    def _give_back(self, work: NodeWork, hosts: Hosts, name: str, *, is_made: bool) -> Outcome | None:
        """None when nothing of ours is at the host. Whose host it is by now is looked at first."""
        del work, is_made
        host = hosts.get(name)
        if host is None or not hosts.is_own(host):
            return None
        try:
            if bare_metal.given_back(hosts.api, host):
                return None
        except ObjectChanged:
            return Outcome(False, f"Host {name} has changed.", 1)
        fault, state = bare_metal.fault(host), bare_metal.state(host)
        text = f"Host {name} is {state or 'not known to its operator'}{f' ({fault})' if fault else ''}"
        return Outcome(False, f"{text}; it is free when its operator has wiped it.", POLL_SECONDS)

    def _may_come(self, work: NodeWork, intended_at: str) -> bool:
        return (work.now - times.from_text(intended_at)).total_seconds() < self._config.in_flight_seconds

    def clear(self, work: EnvironmentWork) -> Outcome:  # noqa: ARG002
        """Nothing was set up."""
        return Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:
        """Hosts and Secrets in a cluster that Stockyard made; the sweep of an account sees its own."""
        host = self._host(provider, tenant)
        if host is None:
            return ()
        api = self._access.host_client(tenant, host)
        return list(orphans.marked(api, _KINDS, inspection.namespace(provider), installation, tenant))

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:
        """Give back or remove one orphan of such a cluster."""
        host = self._host(provider, tenant)
        return host is not None and orphans.remove(self._access.host_client(tenant, host), _KINDS, thing, tenant)

    def _host(self, provider: NodeProvider, tenant: str) -> Cluster | None:
        """The cluster of Stockyard's that the provider names; None where it names an account."""
        name, store = str(block_of(provider)["clusterRef"]["cluster"]), self._store_of(tenant)
        if name.isdecimal():
            return None
        cluster = store.get(Cluster, name)
        if cluster is None:
            cluster = next(iter(store.list(Cluster, where={"name": name}, limit=1).items), None)
        return cluster

    def _hosts(self, work: NodeWork) -> Hosts:
        claim = work.claim
        labels = marks(work.installation, work.tenant, claim.id, claim.generation)
        prefix = f"{bare_metal.secret_prefix(claim.id)}{claim.attempt}-"
        return Hosts(self._api(work), inspection.namespace(work.provider), claim.id, labels, prefix)

    def _api(self, work: NodeWork) -> KubernetesApi:
        if work.host is not None:
            return self._access.host_client(work.tenant, work.host)
        if work.account is None:
            raise NodeCouldNotBeProvisioned(f"The account of node provider {work.provider.name} is gone.")
        return self._access.client(work.tenant, work.account)
