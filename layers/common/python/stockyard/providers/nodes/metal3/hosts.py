"""Hosts of bare metal in a namespace: looked for, taken by whoever is first, given their image, and given back."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.domain.values.quantities import milli
from stockyard.providers.clouds.kubernetes import bare_metal, host_sheets
from stockyard.providers.clouds.kubernetes.bare_metal import Host
from stockyard.providers.clouds.kubernetes.features import BARE_METAL_HOST, SECRET
from stockyard.providers.clouds.kubernetes.marks import RESOURCE, label_value
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.kubernetes.errors import ObjectChanged
from stockyard.providers.nodes.metal3 import selectors
from stockyard.providers.nodes.metal3.properties import Image

_MIB = 1024 * 1024 * 1000
"""Of memory, in thousandths of a byte."""


@dataclass(frozen=True, slots=True)
class Need:
    """Hosts that will do: by their labels, by what they have, and by their name where one host is meant."""

    selector: Mapping[str, Any]
    resources: Mapping[str, str | float]
    name: str | None = None

    def has_room(self, cpus: int | None, memory_mib: int | None) -> bool:
        """Whether a host has what is needed; one whose operator has not inspected it has what its owner says."""
        cpu, memory = (milli(self.resources.get(name, 0)) for name in ("cpu", "memory"))
        return (cpus is None or cpus * 1000 >= cpu) and (memory_mib is None or memory_mib * _MIB >= memory)


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts and Secrets of a namespace, on behalf of one claim. ``marks`` are the labels by which they are known as
    ours, ``prefix`` begins the names of Secrets of this attempt."""

    api: KubernetesApi
    namespace: str
    claim_id: str
    marks: Mapping[str, str]
    prefix: str

    def get(self, name: str) -> Host | None:
        """The host of that name."""
        return self.api.get(BARE_METAL_HOST.api_version, BARE_METAL_HOST.kind, name, self.namespace)

    def listed(self, selector: Mapping[str, Any]) -> Sequence[Host]:
        """The hosts with these labels."""
        text = selectors.text_of(selector)
        return bare_metal.listed(self.api, self.namespace, text)

    def is_own(self, host: Host) -> bool:
        """Whether the claim holds the host."""
        return bare_metal.holder(host) == self.claim_id

    def suitable(self, need: Need) -> list[Host]:
        """The hosts that would do if they were free, in an order of the claim's own: so that claims which look at once
        do not all begin with the same one."""
        hosts = [
            host
            for host in self.listed(need.selector)
            if need.name in (None, host["metadata"]["name"]) and need.has_room(*host_sheets.room(host))
        ]
        return sorted(hosts, key=self._order)

    def _order(self, host: Host) -> bytes:
        return hashlib.sha256(f"{self.claim_id}/{host['metadata']['name']}".encode()).digest()

    def take(self, host: Host) -> Host | None:
        """The host with the claim as its consumer; None when somebody else was first. Nobody else's host is ever taken:
        what is written is for the host as it was read."""
        for _ in range(2):  # its operator writes to it, too
            try:
                return bare_metal.apply(self.api, host, bare_metal.take_document(host, self.claim_id, self.marks))
            except ObjectChanged:
                current = self.get(host["metadata"]["name"])
                if current is None:
                    return None
                if self.is_own(current):  # an answer was lost
                    return current
                if bare_metal.blocker(current) is not None:
                    return None
                host = current
        return None

    def provision(self, host: Host, image: Image, network_secret: str | None) -> Host:
        """Give a taken host its image, user data and network data, and switch it on. Raises ``ObjectChanged``."""
        desired: dict[str, Any] = {
            "image": image.document(),
            "userData": {"name": f"{self.prefix}user-data", "namespace": self.namespace},
            "online": True,
        }
        if network_secret is not None:
            desired["networkData"] = {"name": network_secret, "namespace": self.namespace}
        return bare_metal.apply(self.api, host, bare_metal.change_document(host, **desired))

    def switch(self, host: Host, *, on: bool) -> Host:
        """Wish the host on or off. Raises ``ObjectChanged``."""
        return bare_metal.apply(self.api, host, bare_metal.change_document(host, online=on))

    def secret(self, name: str, key: str, content: bytes) -> None:
        """Make the Secret, or give it this content."""
        meta = {"name": name, "namespace": self.namespace, "labels": dict(self.marks)}
        data = {key: base64.b64encode(content).decode()}
        self.api.apply({"apiVersion": SECRET.api_version, "kind": SECRET.kind, "metadata": meta, "data": data})

    def remove_secrets(self) -> bool:
        """Begin to remove the Secrets of the claim; True when none was there."""
        selector = f"{RESOURCE}={label_value(self.claim_id)}"
        there = self.api.list(SECRET.api_version, SECRET.kind, self.namespace, selector)
        own = [each["metadata"]["name"] for each in there if self._is_ours(each)]
        for name in own:
            self.api.delete(SECRET.api_version, SECRET.kind, name, self.namespace)
        return not own

    def _is_ours(self, secret: Mapping[str, Any]) -> bool:
        labels = secret["metadata"].get("labels") or {}
        return all(labels.get(key) == value for key, value in self.marks.items() if not key.endswith("/generation"))


def blockers(hosts: Sequence[Host], refused: frozenset[str]) -> Iterator[str]:
    """Reasons why hosts cannot be taken, each with its number, for people."""
    counts: dict[str, int] = {}
    for host in hosts:
        reason = bare_metal.blocker(host)
        if reason is None and host["metadata"]["name"] in refused:
            reason = "left alone for an hour after an error"
        if reason is not None:
            counts[reason] = counts.get(reason, 0) + 1
    return (f"{number} {'is' if number == 1 else 'are'} {reason}" for reason, number in sorted(counts.items()))


def mac_of(host: Host) -> str | None:
    """The address of the port that a host boots from; None where nobody knows it."""
    if mac := host["spec"].get("bootMACAddress"):
        return str(mac)
    nics = ((host.get("status") or {}).get("hardware") or {}).get("nics") or ()
    ports = [nic for nic in nics if nic.get("mac")]
    port = next((nic for nic in ports if nic.get("pxe")), ports[0] if ports else None)
    return None if port is None else str(port["mac"])


def as_json(document: Mapping[str, Any]) -> bytes:
    """A document as a Secret holds it."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
