"""Machines that are ConfigMaps: ``ports.nodes.NodeSource`` in a Kubernetes host, direct or through a site."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from stockyard.domain.nodes.declared_types import block_of, node_types_of
from stockyard.domain.nodes.node_types import NodeType
from stockyard.domain.records import CloudAccount, Cluster, NodeProvider, PlacementOption, Resource
from stockyard.domain.values import times
from stockyard.domain.values.states import DesiredPower
from stockyard.errors import InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.ports import Finding, Outcome, Store, Tagged
from stockyard.ports.clusters import TOKEN
from stockyard.ports.node_work import EnvironmentWork, Machine, NodeWork
from stockyard.ports.nodes import NodeSource
from stockyard.providers.clouds.kubernetes import orphans
from stockyard.providers.clouds.kubernetes.access import Access
from stockyard.providers.clouds.kubernetes.features import CONFIG_MAP, SECRET
from stockyard.providers.clouds.kubernetes.marks import marks
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.kubernetes.errors import ObjectChanged
from stockyard.providers.nodes.config_maps.objects import MachineObjects

MACHINE = "config map"
POLL_SECONDS = 5
SPARE_SECONDS = 300
"""How long a machine may take beyond what its document says."""
_KINDS = (CONFIG_MAP, SECRET)
_NOT_OFFERED = "Machines that are ConfigMaps are for trials: only a local cloud offers them."
Refuses = Callable[[str, str, str], bool]
"""Whether a type of a provider is refused in a zone: the plan of somebody who tries failures out."""


class ConfigMapNodes(NodeSource):
    """Makes and removes ConfigMaps. ``offered``: whether the installation offers them at all. Whoever tries failures
    out sets ``refuses``."""

    switches = True

    def __init__(
        self, access: Access, store_of: Callable[[str], Store], in_flight_seconds: int = 60, *, offered: bool = False
    ) -> None:
        self._access, self._store_of, self._in_flight_seconds = access, store_of, in_flight_seconds
        self._offered = offered
        self.refuses: Refuses = lambda *_: False

    def node_types(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[NodeType]:  # noqa: ARG002
        """As declared; none where they are not offered."""
        return node_types_of(provider, built=True) if self._offered else ()

    def scope(self, provider: NodeProvider, account: CloudAccount | None) -> str:  # noqa: ARG002
        """The provider alone: others may have what it was refused."""
        return f"provider/{provider.id}"

    def attestation(self, provider: NodeProvider) -> str:  # noqa: ARG002
        """A host gives its machines no keys. They join by themselves; the token is for what plays their boot."""
        return TOKEN

    def inspect(self, provider: NodeProvider, account: CloudAccount | None) -> Sequence[Finding]:
        """Fault where they are not offered, and for a namespace that is not the account's."""
        if not self._offered:
            return [Finding("/spec", _NOT_OFFERED)]
        namespaces = account.attributes["namespaces"] if account is not None else [_namespace(provider)]
        if _namespace(provider) not in namespaces:
            text = f"The account may work in {', '.join(namespaces)} alone."
            return [Finding("/spec/clusterRef/namespace", text)]
        return ()

    def limits(self, provider: NodeProvider) -> Mapping[str, int]:
        """See ``ports.nodes.LaunchesSlowly``."""
        return {"register": math.ceil(_launch_seconds(provider)) + SPARE_SECONDS}

    def prepare(self, work: EnvironmentWork) -> Outcome:  # noqa: ARG002
        """There is nothing to set up."""
        return Outcome(True)

    def launch(self, work: NodeWork) -> Outcome:
        """See ``ports.nodes.NodeSource.launch``. The host is read before anything is announced: who may not read makes
        nothing."""
        line = _line(work)
        name = line.key if line is not None else _name(work)
        objects = self._objects(work, name)
        there = objects.machine()
        if there is None:
            option, zone = self._option(work)
            line = work.ledger.intend(MACHINE, name)
            joins_at = work.now + timedelta(seconds=_launch_seconds(work.provider))
            data = {
                "type": option.type,
                "capacityType": option.capacity_type,
                "zone": zone,
                "power": "On",
                "joinsAt": times.to_text(joins_at),
            }
            there = objects.make(data, {"claim": work.claim.id, "token": work.machine_token})
        elif line is None:
            line = work.ledger.intend(MACHINE, name)
        if line is not None and line.state != "made":
            work.ledger.made(line, name)
        data = there["data"]
        facts = {"machine_id": name, "type": data["type"], "capacity_type": data["capacityType"], "zone": data["zone"]}
        return Outcome(True, f"ConfigMap {name} was made in {objects.namespace}.", facts=facts)

    def _option(self, work: NodeWork) -> tuple[PlacementOption, str]:
        """The first option and zone that can be had. ``InsufficientCapacity`` names every way that was refused."""
        placement = work.claim.placement
        if placement is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        refused: list[tuple[str, str, str]] = []
        for option in placement.options:
            name = option.type_of(work.provider.name)
            for zone in option.zones:
                if not self.refuses(work.provider.name, name, zone):
                    return option, zone
                refused.append((name, option.capacity_type, zone))
        names = ", ".join(sorted({f"{name} in {zone}" for name, _, zone in refused}))
        raise InsufficientCapacity(f"No capacity for {names}.", code="TrialCapacity", refused=refused)

    def look(self, work: NodeWork) -> Machine:
        """The machine as the host has it; its node joins when its time has come."""
        line = _line(work)
        if line is None or line.state != "made":
            return Machine("absent")
        there = self._objects(work, line.key).machine()
        if there is None:
            return Machine("gone", line.key)
        data = there["data"]
        if data["power"] == "Off":
            return Machine("stopped", line.key, zone=data["zone"])
        seconds = (times.from_text(data["joinsAt"]) - work.now).total_seconds()
        if seconds > 0:
            return Machine("starting", line.key, zone=data["zone"], refresh=math.ceil(seconds))
        return Machine("running", line.key, f"{work.claim.name}.configmap", data["zone"])

    def power(self, work: NodeWork, state: DesiredPower) -> Outcome:
        """Switched on, off, or off and on, by who read the machine as it is."""
        line = _line(work)
        objects = self._objects(work, line.key) if line is not None else None
        there = objects.machine() if objects is not None else None
        if objects is None or there is None:
            raise NodeCouldNotBeProvisioned("The claim has no machine.")
        power = "On" if state == "Reboot" else state
        changes = {"power": power, **({"rebootedBy": work.session} if state == "Reboot" else {})}
        if any(there["data"].get(key) != value for key, value in changes.items()):
            try:
                objects.change(there, changes)
            except ObjectChanged:
                return Outcome(False, f"ConfigMap {objects.name} has changed.", 1)
        return Outcome(True, f"The machine is {power}.", facts={"power": power})

    def terminate(self, work: NodeWork) -> Outcome:
        """Remove the objects of each line; done when the host shows them no more, and none can come late."""
        for line in work.ledger.lines():
            if line.kind != MACHINE:
                continue
            if not self._objects(work, line.key).remove():
                return Outcome(
                    False, f"ConfigMap {line.key} is being removed.", 1, remaining=(f"{MACHINE} {line.key}",)
                )
            age = (work.now - times.from_text(line.intended_at)).total_seconds()
            if line.state != "made" and age < self._in_flight_seconds:
                text = f"ConfigMap {line.key} may still be made."
                return Outcome(False, text, POLL_SECONDS, remaining=(f"{MACHINE} {line.key}",))
            work.ledger.gone(line)
        return Outcome(True, "The machine is gone.")

    def clear(self, work: EnvironmentWork) -> Outcome:  # noqa: ARG002
        """Nothing was set up."""
        return Outcome(True)

    def tagged(self, provider: NodeProvider, installation: str, tenant: str) -> Sequence[Tagged]:
        """Objects in a cluster that Stockyard made; the sweep of an account sees its own."""
        host = self._host(provider, tenant)
        if host is None:
            return ()
        api = self._access.host_client(tenant, host)
        return list(orphans.marked(api, _KINDS, _namespace(provider), installation, tenant))

    def discard(self, provider: NodeProvider, thing: Tagged, tenant: str) -> bool:
        """Remove one orphan of such a cluster."""
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

    def _objects(self, work: NodeWork, name: str) -> MachineObjects:
        labels = marks(work.installation, work.tenant, work.claim.id, work.claim.generation)
        return MachineObjects(self._api(work), _namespace(work.provider), name, labels)

    def _api(self, work: NodeWork) -> KubernetesApi:
        if work.host is not None:
            return self._access.host_client(work.tenant, work.host)
        if work.account is None:
            raise NodeCouldNotBeProvisioned(f"The account of node provider {work.provider.name} is gone.")
        return self._access.client(work.tenant, work.account)


def _line(work: NodeWork) -> Resource | None:
    """The ledger line of the claim's machine; None when none is announced."""
    return next((line for line in work.ledger.lines() if line.kind == MACHINE), None)


def _name(work: NodeWork) -> str:
    """Name of a new machine: of this claim and attempt alone, so that it never meets one that is being removed."""
    return f"stockyard-{work.claim.id.rpartition('_')[2].lower()}-{work.claim.attempt}"


def _namespace(provider: NodeProvider) -> str:
    return str(block_of(provider)["clusterRef"]["namespace"])


def _launch_seconds(provider: NodeProvider) -> float:
    return float(block_of(provider).get("launchSeconds", 0))
