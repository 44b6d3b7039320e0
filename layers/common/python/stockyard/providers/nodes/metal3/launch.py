"""Launch of a claim's machine: a free host is taken, given its image, and waited for; one that fails is left for the
next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

from stockyard.domain.nodes.declared_types import block_of, declared_type
from stockyard.domain.nodes.os_images import OSImage
from stockyard.domain.nodes.properties import written
from stockyard.domain.records import NodeClaim, NodeProvider, PlacementOption, Refusal, Resource
from stockyard.domain.values import times
from stockyard.errors import InsufficientCapacity, NodeCouldNotBeProvisioned
from stockyard.machines import node
from stockyard.machines.sources import PUBLIC, Sources
from stockyard.ports import Outcome, Put, Store
from stockyard.ports.node_work import NodeWork
from stockyard.ports.nodes import BLOCKER
from stockyard.providers.clouds.kubernetes import bare_metal, ranges
from stockyard.providers.clouds.kubernetes.bare_metal import ADDRESS, Host
from stockyard.providers.kubernetes.errors import ObjectChanged
from stockyard.providers.nodes.metal3 import properties as settings
from stockyard.providers.nodes.metal3.hosts import Hosts, Need, as_json, blockers, mac_of

MACHINE, SECRETS = "bare metal host", "secrets of a host"
POLL_SECONDS = 15
REFUSED_SECONDS = 3600
"""How long a host is left alone that has failed."""
_TRIES = 5
"""How often another address is chosen that somebody else has not."""


@dataclass(frozen=True, slots=True)
class Metal3Config:
    """Addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    api_url: str
    in_flight_seconds: int = 60
    sources: Sources = PUBLIC


@dataclass(frozen=True, slots=True)
class Launch:
    """One step of the launch of one claim's machine. ``store`` has the tenant's images, and the hosts that failed."""

    hosts: Hosts
    work: NodeWork
    config: Metal3Config
    store: Store
    os_image: Callable[[str], OSImage | None]

    def run(self) -> Outcome:
        """Done when the operator has written the image to a host and the host is on."""
        self._options()
        line = machine_line(self.work)
        host = self._host_of(line) if line is not None else None
        if line is None or host is None:
            line, host = self._take()
        try:
            if self._has_failed(host):  # it is followed by the next at once
                self._leave(line, host)
                line, host = self._take()
            return self._provision(line, host, self._settings(line, host))
        except ObjectChanged:
            return Outcome(False, f"Host {line.key} has changed.", 1)

    def _host_of(self, line: Resource) -> Host | None:
        """The host that an earlier step took; None when it has to be another one."""
        host = self.hosts.get(line.key)
        if host is not None and self.hosts.is_own(host):
            return host
        if line.state == "made":
            raise NodeCouldNotBeProvisioned(f"Host {line.key} was taken from the claim while it got its image.")
        if host is not None and bare_metal.blocker(host) is None:
            return self.hosts.take(host)
        self.work.ledger.gone(line)
        return None

    def _take(self) -> tuple[Resource, Host]:
        """The first free host of the first option. ``InsufficientCapacity`` says what is in the way of the others."""
        ledger = self.work.ledger
        refused_hosts = refused(self.store, self.work)
        refusals: list[tuple[str, str, str]] = []
        reasons: list[str] = []
        for option in self._options():
            name, zone = option.type_of(self.work.provider.name), next(iter(option.zones), "*")
            self._check(name)
            suitable = self.hosts.suitable(need(self.work.provider, self.work.claim, name))
            for host in suitable:
                host_name = host["metadata"]["name"]
                if bare_metal.blocker(host) is not None or host_name in refused_hosts:
                    continue
                detail = {"type": option.type, "capacity_type": option.capacity_type, "zone": zone}
                line = ledger.intend(MACHINE, host_name, detail)
                own_host = self.hosts.take(host)
                if own_host is not None:
                    return line, own_host
                ledger.gone(line)
            refusals.append((name, option.capacity_type, zone))
            text = ", ".join(blockers(suitable, refused_hosts)) or "none is left"
            reasons.append(f"of {len(suitable)} hosts for {name} {text}" if suitable else f"no host fits {name}")
        raise InsufficientCapacity(f"No host is free: {'; '.join(reasons)}.", code="NoFreeHost", refused=refusals)

    def _check(self, name: str) -> None:
        """Raise ``NodeCouldNotBeProvisioned`` for settings that no host could be given: before one is taken."""
        node_settings = wished(self.work.provider, self.work.claim, name)
        self._image(node_settings)
        fault = next(settings.network_faults(node_settings), None)
        if fault is not None:
            raise NodeCouldNotBeProvisioned(f"{fault[0]}: {fault[1]}.")

    def _image(self, node_settings: Mapping[str, str]) -> settings.Image:
        name = settings.image_name(node_settings)
        return settings.image_of(node_settings, self.os_image(name) if name else None)

    def _settings(self, line: Resource, host: Host) -> Mapping[str, str]:
        """Settings of the node type, under what the host's own annotations say."""
        return {**wished(self.work.provider, self.work.claim, self._type(line)), **of_host(host)}

    def _type(self, line: Resource) -> str:
        return str(line.detail.get("type") or self._options()[0].type).partition(".")[2]

    def _options(self) -> tuple[PlacementOption, ...]:
        if self.work.claim.placement is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        return self.work.claim.placement.options

    def _has_failed(self, host: Host) -> bool:
        return bare_metal.fault(host) is not None or bare_metal.state(host).startswith("deprovisioning")

    def _leave(self, line: Resource, host: Host) -> None:
        """Remember that the host has failed, and give it back: its operator wipes it, and it is free when that is
        done."""
        now = times.epoch(self.work.now)
        reason = (bare_metal.fault(host) or bare_metal.state(host))[:200]
        refusal = Refusal(refused_id(self.work, line.key), times.to_text(self.work.now), now + REFUSED_SECONDS, reason)
        self.store.commit(Put(refusal))
        bare_metal.given_back(self.hosts.api, host, at_once=True)
        self.work.ledger.gone(line)

    def _provision(self, line: Resource, host: Host, node_settings: Mapping[str, str]) -> Outcome:
        """Give the host its image if it has none yet, and look how far it is."""
        if "image" not in host["spec"]:
            fault = next(settings.network_faults(node_settings), None)
            if fault is not None:
                raise NodeCouldNotBeProvisioned(f"Host {line.key}: {fault[0]}: {fault[1]}.")
            image = self._image(node_settings)
            if settings.RANGE in node_settings and (ADDRESS not in node_settings or bare_metal.is_added(host, ADDRESS)):
                host = self._addressed(line, host, node_settings)
                node_settings = {**node_settings, **of_host(host)}
            secret = self._secrets(host, node_settings)
            host = self.hosts.provision(host, image, secret)
        if line.state != "made":
            self.work.ledger.made(line, line.key)
        state = bare_metal.state(host)
        if state != bare_metal.PROVISIONED or not bare_metal.is_on(host):
            word = f"is {state}" if state != bare_metal.PROVISIONED else "is being switched on"
            text = f"Host {line.key} {word}."
            return Outcome(False, text, POLL_SECONDS, facts={BLOCKER: text})
        option = self._options()[0]
        facts = {
            "machine_id": line.key,
            "type": str(line.detail.get("type") or option.type),
            "capacity_type": str(line.detail.get("capacity_type") or option.capacity_type),
            "zone": str(line.detail.get("zone") or next(iter(option.zones), "*")),
        }
        return Outcome(True, f"Host {line.key} has its image and is on.", facts=facts)

    def _addressed(self, line: Resource, host: Host, node_settings: Mapping[str, str]) -> Host:
        """The host with an address of the range that no other host of the namespace has. Whoever sees that somebody
        else has it too gives way, so that one who has looked afterwards keeps it."""
        name = host["metadata"]["name"]
        own = settings.interface(node_settings[settings.CIDR])
        there = ranges.addresses(node_settings[settings.RANGE])
        order = int.from_bytes(hashlib.sha256(f"{self.hosts.claim_id}/{name}".encode()).digest()[:8]) % len(there)
        for _ in range(_TRIES):
            used = {
                (each["metadata"].get("annotations") or {}).get(ADDRESS)
                for each in self.hosts.listed({})
                if each["metadata"]["name"] != name
            }
            present = (host["metadata"].get("annotations") or {}).get(ADDRESS)
            if present is not None and present not in used:
                return host
            used |= {present, str(own.ip), node_settings.get(settings.GATEWAY)}
            address = next((str(a) for a in (*there[order:], *there[:order]) if str(a) not in used), None)
            if address is None:
                text = f"{settings.RANGE}: every address of {node_settings[settings.RANGE]} is used."
                offering = (self._type(line), str(line.detail.get("capacity_type")), str(line.detail.get("zone")))
                raise InsufficientCapacity(text, code="NoFreeAddress", refused=[offering])
            host = bare_metal.apply(self.hosts.api, host, bare_metal.change_document(host, {ADDRESS: address}))
        raise ObjectChanged(f"no address for host {name} is free of others for long enough")

    def _secrets(self, host: Host, node_settings: Mapping[str, str]) -> str | None:
        """Make the Secrets of the first boot; the name of the one with network data, if there is one."""
        work, hosts = self.work, self.hosts
        if work.cluster is None:
            raise NodeCouldNotBeProvisioned("A node of Metal3 joins a cluster; the claim names none.")
        script = node.first_boot_by_token(self.config, work.cluster, work.claim.id, work.machine_token).script()
        data = self._network_data(host, node_settings)
        line = work.ledger.intend(SECRETS, hosts.prefix)
        hosts.secret(f"{hosts.prefix}user-data", "userData", user_data(script, node_settings).encode())
        name = f"{hosts.prefix}network-data" if data is not None else None
        if name is not None and data is not None:
            hosts.secret(name, "networkData", data)
        if line.state != "made":
            work.ledger.made(line, hosts.prefix)
        return name

    def _network_data(self, host: Host, node_settings: Mapping[str, str]) -> bytes | None:
        if text := node_settings.get(settings.NETWORK_DATA):
            return settings.network_data(text)
        address = node_settings.get(ADDRESS)
        if address is None or settings.CIDR not in node_settings:
            return None
        mac = mac_of(host)
        if mac is None:
            name = host["metadata"]["name"]
            raise NodeCouldNotBeProvisioned(f"Host {name} has no bootMACAddress, by which its address is given.")
        return as_json(settings.network_document(node_settings, address, mac))


def user_data(script: str, node_settings: Mapping[str, str]) -> str:
    """User data of a machine: our script, behind what the node type has of its own."""
    parts: list[tuple[str, str]] = []
    if own := node_settings.get(settings.USER_DATA):
        parts.append(("x-shellscript" if own.startswith("#!") else "cloud-config", own))
    if ntp := settings.servers(node_settings.get(settings.NTP) or "", names=True):
        entries = "".join(f"    - {server}\n" for server in ntp)
        parts.append(("cloud-config", f"#cloud-config\nntp:\n  enabled: true\n  servers:\n{entries}"))
    if not parts:
        return script
    message = MIMEMultipart(boundary="stockyard-part-of-user-data")
    for kind, text in (*parts, ("x-shellscript", script)):
        message.attach(MIMEText(text, kind, "utf-8" if not text.isascii() else "us-ascii"))
    return message.as_string()


def machine_line(work: NodeWork) -> Resource | None:
    """The ledger line of the claim's host; None when none is announced."""
    return next((line for line in work.ledger.lines() if line.kind == MACHINE), None)


def need(provider: NodeProvider, claim: NodeClaim, name: str) -> Need:
    """Hosts that will do for a node type, by its bare name."""
    declared = declared_type(provider, name)
    if declared is None:
        raise NodeCouldNotBeProvisioned(f"Node provider {provider.name} has no node type {name} any more.")
    pin = wished(provider, claim, name).get(settings.SERVER_NAME)
    return Need(selector_of(provider, name), declared.resources, pin or None)


def selector_of(provider: NodeProvider, name: str) -> Mapping[str, Any]:
    """The label selector of a node type's hosts; empty for every host."""
    entries = block_of(provider).get("nodeTypes") or ()
    entry: Mapping[str, Any] = next((each for each in entries if each["name"] == name), {})
    selector: Mapping[str, Any] = (entry.get("bareMetalHosts") or {}).get("selector") or {}
    return selector


def wished(provider: NodeProvider, claim: NodeClaim, name: str) -> dict[str, str]:
    """Settings of a claim's node: the claim's over its type's over its provider's."""
    declared = declared_type(provider, name)
    return written(claim, provider.properties, declared.properties if declared is not None else {})


def of_host(host: Host) -> dict[str, str]:
    """Settings that the host's own annotations say."""
    annotations = host["metadata"].get("annotations") or {}
    return {key: str(annotations[key]) for key in sorted(settings.OF_A_HOST & annotations.keys())}


def refused_id(work: NodeWork, host: str = "") -> str:
    """The id of what is remembered of a host that failed; the beginning of all of them without one."""
    reference = block_of(work.provider)["clusterRef"]
    return f"metal3/{reference['cluster']}/{reference['namespace']}/{host}"


def refused(store: Store, work: NodeWork) -> frozenset[str]:
    """Names of the hosts that have failed within the hour."""
    return frozenset(_refused(store, work))


def _refused(store: Store, work: NodeWork) -> Iterator[str]:
    after: str | None = None
    while True:
        page = store.list(Refusal, prefix=refused_id(work), after=after, limit=200)
        now = times.epoch(work.now)
        yield from (each.id.rpartition("/")[2] for each in page.items if each.expires_at > now)
        if page.next_id is None:
            return
        after = page.next_id
