"""Nodes that are virtual machines of KubeVirt: ``ports.nodes.NodeSource`` in a Kubernetes host, direct or through a
site."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from stockyard.domain.nodes.declared_types import block_of, node_types_of
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider
from stockyard.domain.values import times
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import NodeCouldNotBeProvisioned, VendorRefused
from stockyard.ports import Finding, Outcome, Store, Tagged
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.clouds.kubernetes import host_sheets, orphans, reach
from stockyard.providers.clouds.kubernetes.access import Access
from stockyard.providers.clouds.kubernetes.features import KUBEVIRT, kinds_of
from stockyard.providers.clouds.kubernetes.marks import marks
from stockyard.providers.clouds.kubernetes.os_images import os_image
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.kubernetes.errors import ObjectChanged
from stockyard.providers.nodes.kubevirt import addresses, inspection, launch, networks, states, stock
from stockyard.providers.nodes.kubevirt.launch import MACHINE, POLL_SECONDS, KubeVirtConfig, Launch, machine_line
from stockyard.providers.nodes.kubevirt.objects import MachineObjects
from stockyard.providers.nodes.kubevirt.templates import template_of
from stockyard.providers.nodes.kubevirt.virtual_machines import ALWAYS, HALTED, Names, document

REBOOT = "reboot"
"""A line of the ledger: an operation ends the instance that ``detail`` names, and its machine starts another one."""
_LIMITS = {"launch": 3600, "register": 1800, "terminate": 1800, "power": 900}
"""Seconds. An image of some gigabytes is copied before a machine starts; a guest may take its grace to shut down."""
_MOST_FIELDS = 5
"""Fields that a difference names."""


class KubeVirtNodes(NodeSource):
    """Makes and removes virtual machines. ``store_of`` a tenant keeps the addresses that its machines have; ``sheet``
    is the last count of the room of its host's nodes."""

    sells_from_sheet = True
    counts_stock = True
    has_topology = True
    judges_templates = True
    switches = True
    compares = True

    def __init__(
        self, config: KubeVirtConfig, access: Access, store_of: Callable[[str], Store], sheet: bytes | None = None
    ) -> None:
        self._config, self._access, self._store_of = config, access, store_of
        self._sheet = host_sheets.read(sheet)

    def with_sheet(self, sheet: bytes | None) -> KubeVirtNodes:
        """See ``ports.nodes.SellsFromSheet``: types are declared, and the room for them is counted."""
        return KubeVirtNodes(self._config, self._access, self._store_of, sheet)

    def totals(self, provider: NodeProvider) -> Mapping[str, int] | None:
        """See ``ports.nodes.CountsStock.totals``: what the host's nodes have room for, where they may be looked at."""
        rooms = self._sheet.rooms if self._sheet is not None else None
        return None if rooms is None or rooms.blocker is not None else stock.totals(rooms, provider)

    def counted_at(self, provider: NodeProvider) -> str | None:
        """See ``ports.nodes.CountsStock.counted_at``."""
        return self._sheet.moment if self._sheet is not None and self.totals(provider) is not None else None

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """As declared; resources that are not written come from the template."""
        return node_types_of(provider, built=True)

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The provider alone: another one may work in another namespace."""
        return f"provider/{provider.id}"

    def attestation(self, provider: NodeProvider) -> str:  # noqa: ARG002
        """See ``ports.nodes.Attests``. A host gives its machines no keys."""
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
        rooms = self._sheet.rooms if self._sheet is not None else None
        return findings if rooms is None else [*findings, *inspection.remarks(rooms, self.totals(provider))]

    def judge(
        self, provider: NodeProvider, account: CloudAccount | None, host: Cluster | None, tenant: str
    ) -> Sequence[Finding]:
        """See ``ports.nodes.JudgesTemplates.judge``: by a dry run against the host's own schema."""
        os_images = partial(os_image, self._store_of(tenant))
        return list(inspection.judged(self._api(tenant, provider, account, host), provider, os_images))

    def prepare(self, work: EnvironmentWork) -> Outcome:
        """There is nothing to set up; whether the cluster is in reach is checked before the first node."""
        reach.check(work.provider, work.cluster)
        return Outcome(True)

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``."""
        launch.options_of(work)
        line = machine_line(work)
        objects = self._objects(work, line.key if line is not None else _name(work))
        return Launch(objects, work, self._config, self._store_of(work.tenant)).run()

    def look(self, work: NodeWork) -> Machine:
        """The machine as its host has it. One that is being deleted is gone: nothing brings it back."""
        line = machine_line(work)
        if line is None or line.state != "made":
            return Machine("absent")
        there = self._objects(work, line.key).machine()
        zone = str((line.detail or {}).get("zone") or "")
        return Machine(states.status_of(there).state if there is not None else "gone", line.key, zone=zone)

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """Switched on, off, or restarted once for an operation; done when KubeVirt says so."""
        line = machine_line(work)
        objects = self._objects(work, line.key) if line is not None and line.state == "made" else None
        there = objects.machine() if objects is not None else None
        if line is None or objects is None or there is None or states.status_of(there).is_leaving:
            raise NodeCouldNotBeProvisioned("The claim has no machine.")
        if state == "Reboot" and there["spec"].get("runStrategy") != HALTED:
            return self._reboot(work, objects, states.status_of(there))
        strategy = HALTED if state == "Off" else ALWAYS
        if there["spec"].get("runStrategy") != strategy:
            try:
                objects.switch(there, strategy)
            except ObjectChanged:
                return Outcome(False, f"Virtual machine {line.key} has changed.", 1)
        status = states.status_of(there)
        power = "Off" if state == "Off" else "On"
        if there["spec"].get("runStrategy") == strategy and status.state == (
            "stopped" if power == "Off" else "running"
        ):
            return Outcome(True, f"Virtual machine {line.key} is {power}.", facts={"power": power})
        return Outcome(False, f"Virtual machine {line.key} is {status}.", POLL_SECONDS)

    def _reboot(self, work: NodeWork, objects: MachineObjects, status: states.Status) -> Outcome:
        """End the instance that ran when the operation began. Whoever comes again finds another one."""
        instance = objects.instance()
        uid = instance["metadata"]["uid"] if instance is not None else None
        line = work.ledger.intend(REBOOT, work.session, {"instance": uid})
        before = (line.detail or {}).get("instance")
        if line.state != "made":
            if uid is not None and uid == before:
                objects.restart()
            work.ledger.made(line, objects.names.machine)
            return Outcome(False, f"Virtual machine {objects.names.machine} is being restarted.", POLL_SECONDS)
        if status.state == "running" and uid is not None and uid != before:
            return Outcome(True, f"Virtual machine {objects.names.machine} was restarted.", facts={"power": "On"})
        return Outcome(False, f"Virtual machine {objects.names.machine} is {status}.", POLL_SECONDS)

    def terminate(self, work: NodeWork) -> Outcome:
        """Remove everything of each line; done when the host shows none of it, and none can come late."""
        for line in work.ledger.lines():
            if line.kind == REBOOT:
                work.ledger.gone(line)
        for line in work.ledger.lines():
            if line.kind != MACHINE:
                continue
            remaining = (f"{MACHINE} {line.key}",)
            present = self._objects(work, line.key).remove()
            if present:
                text = f"{', '.join(present[:_MOST_FIELDS])} is being removed."
                return Outcome(False, text, POLL_SECONDS, remaining=remaining)
            age = (work.now - times.from_text(line.intended_at)).total_seconds()
            if line.state != "made" and age < self._config.in_flight_seconds:
                text = f"Virtual machine {line.key} may still be made."
                return Outcome(False, text, POLL_SECONDS, remaining=remaining)
            work.ledger.gone(line)
        addresses.release(work, self._store_of(work.tenant))
        return Outcome(True, "The machine is gone.")

    def template_fingerprint(self, provider: NodeProvider) -> str:
        """See ``ports.nodes.Compares.template_fingerprint``."""
        return launch.template_fingerprint(provider)

    def drift(self, work: NodeWork) -> str | None:
        """See ``ports.nodes.Compares.drift``: a dry run of the host's tells what applying the template would change."""
        line = machine_line(work)
        objects = self._objects(work, line.key) if line is not None and line.state == "made" else None
        there = objects.machine() if objects is not None else None
        if line is None or objects is None or there is None:
            return None
        name = str((line.detail or {}).get("type") or "").partition(".")[2]
        try:
            settings = launch.settings_of(work.provider, work.claim, name, self._store_of(work.tenant))
            has_network_data = networks.needs_address(settings) or networks.guest_data(settings, None) is not None
            entry = launch.entry_of(work.provider, name)
            template = template_of(block_of(work.provider), entry)
            now = document(template, objects.names, entry, settings, has_network_data=has_network_data)
            now["spec"]["runStrategy"] = there["spec"].get("runStrategy", ALWAYS)
            changed = objects.api.apply(now, dry_run=True)
        except (NodeCouldNotBeProvisioned, VendorRefused):
            return None  # a new machine could not be made: nothing is better than what stands
        paths = list(_differences(there["spec"], changed["spec"], "spec"))
        if not paths:
            return None
        more = f" and {len(paths) - _MOST_FIELDS} more" if len(paths) > _MOST_FIELDS else ""
        return f"Node type {name} would change {', '.join(paths[:_MOST_FIELDS])}{more} of {line.key}."

    def clear(self, work: EnvironmentWork) -> Outcome:  # noqa: ARG002
        """Nothing was set up."""
        return Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:
        """Objects in a cluster that Stockyard made; the sweep of an account sees its own."""
        host = self._host(provider, tenant)
        if host is None:
            return ()
        api = self._access.host_client(tenant, host)
        kinds = kinds_of([KUBEVIRT])
        return list(orphans.marked(api, kinds, inspection.namespace(provider), installation, tenant))

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:
        """Remove one orphan of such a cluster."""
        host = self._host(provider, tenant)
        kinds = kinds_of([KUBEVIRT])
        return host is not None and orphans.remove(self._access.host_client(tenant, host), kinds, thing, tenant)

    def _host(self, provider: NodeProvider, tenant: str) -> Cluster | None:
        """The cluster of Stockyard's that the provider names; None where it names an account."""
        name, store = str(block_of(provider)["clusterRef"]["cluster"]), self._store_of(tenant)
        if name.isdecimal():
            return None
        cluster = store.get(Cluster, name)
        if cluster is None:
            cluster = next(iter(store.list(Cluster, where={"name": name}, limit=1).items), None)
        return cluster

    def _objects(self, work: NodeWork, name: str) -> MachineObjects:
        labels = marks(work.installation, work.tenant, work.claim.id, work.claim.generation)
        names = Names(name, inspection.namespace(work.provider), labels, work.provider.id)
        return MachineObjects(self._api(work.tenant, work.provider, work.account, work.host), names)

    def _api(
        self, tenant: str, provider: NodeProvider, account: CloudAccount | None, host: Cluster | None
    ) -> KubernetesApi:
        if host is not None:
            return self._access.host_client(tenant, host)
        if account is None:
            raise NodeCouldNotBeProvisioned(f"The account of node provider {provider.name} is gone.")
        return self._access.client(tenant, account)


def _name(work: NodeWork) -> str:
    """Name of a new machine: of this claim and attempt alone, so that it never meets one that is being removed."""
    return f"stockyard-{work.claim.id.rpartition('_')[2].lower()}-{work.claim.attempt}"


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    """Paths at which two documents differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted({*before, *after}):
            yield from _differences(before.get(name), after.get(name), f"{path}.{name}")
    elif before != after:
        yield path
