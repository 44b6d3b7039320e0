"""Count of an account's hosts of bare metal, and of the room of its host's nodes, at a moment: as bytes that a record
keeps."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from stockyard.domain.records import CloudAccount
from stockyard.providers.clouds.kubernetes import bare_metal, node_room
from stockyard.providers.clouds.kubernetes.features import CAPACITY, METAL3
from stockyard.providers.clouds.kubernetes.marks import TENANT, label_value, labels_of
from stockyard.providers.clouds.kubernetes.node_room import NodeRoom, Rooms
from stockyard.providers.kubernetes.client import KubernetesApi

_FORM = 1
_OWN = "stockyard.dev/"


@dataclass(frozen=True, slots=True)
class CountedHost:
    """A host of bare metal: its own labels, how much it has as far as its operator knows, and what may be done with
    it."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    cpus: int | None
    memory_mib: int | None
    blocker: str | None
    """Reason why it can neither be taken nor is one of the tenant's; None for one that counts."""
    is_wiped: bool
    """Whether the operator cleans its disks when it is given back."""


@dataclass(frozen=True, slots=True)
class HostSheet:
    """``moment`` is when the host was asked, RFC 3339. ``rooms`` is None of an account that does not look at nodes."""

    moment: str
    hosts: tuple[CountedHost, ...] = field(default=())
    rooms: Rooms | None = None


def counted(api: Callable[[], KubernetesApi], account: CloudAccount, tenant: str, moment: str) -> bytes:
    """Count of what the account is for: hosts of bare metal in its namespaces, room of nodes. Nothing else is asked
    for."""
    features = account.attributes.get("features") or ()
    hosts: list[CountedHost] = []
    if METAL3 in features:
        for namespace in account.attributes.get("namespaces") or ():
            hosts += _counted(api(), str(namespace), tenant)
    document: dict[str, Any] = {"form": _FORM, "moment": moment, "hosts": [asdict(host) for host in hosts]}
    if CAPACITY in features:
        document["rooms"] = asdict(node_room.counted(api(), account, tenant))
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def read(data: bytes | None) -> HostSheet | None:
    """The count that was written; None for none, or for one of another release: the next refresh is near."""
    if data is None:
        return None
    try:
        document = json.loads(gzip.decompress(data))
        if document["form"] != _FORM:
            return None
        hosts = tuple(CountedHost(**entry) for entry in document["hosts"])
        return HostSheet(str(document["moment"]), hosts, _rooms(document.get("rooms")))
    except (ValueError, KeyError, TypeError, OSError, EOFError, zlib.error):
        return None


def _rooms(document: Mapping[str, Any] | None) -> Rooms | None:
    if document is None:
        return None
    nodes = [NodeRoom(**entry) for entry in document["nodes"]]
    return Rooms(nodes, document["machines"], document["blocker"])


def room(host: bare_metal.Host) -> tuple[int | None, int | None]:
    """CPUs and MiB of memory of a host; None for what its operator does not know."""
    status = host.get("status") or {}
    hardware = status.get("hardware") or {}
    return (hardware.get("cpu") or {}).get("count"), hardware.get("ramMebibytes")


def _counted(api: KubernetesApi, namespace: str, tenant: str) -> Iterator[CountedHost]:
    for host in bare_metal.listed(api, namespace):
        labels = labels_of(host)
        is_own = bare_metal.holder(host) is not None and labels.get(TENANT) == label_value(tenant)
        cpus, memory_mib = room(host)
        yield CountedHost(
            namespace,
            host["metadata"]["name"],
            {key: text for key, text in labels.items() if not key.startswith(_OWN)},
            cpus,
            memory_mib,
            None if is_own else bare_metal.blocker(host),
            host["spec"].get("automatedCleaningMode") != "disabled",
        )
