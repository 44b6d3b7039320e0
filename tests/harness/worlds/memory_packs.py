"""A cluster's API in memory, as the account knows it that applies packs: workloads become ready when told to."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from stockyard.errors import VendorError, VendorNotFound
from stockyard.ports.clusters import PACKS_MANAGER

Key = tuple[str, str, str]


class MemoryPacks:
    """``objects`` by kind, namespace and name. ``applied`` and ``deleted`` are the calls in order.

    ``faults`` are raised, one a call; ``unready`` names kinds whose workloads do not become ready, ``unserved`` kinds
    that nobody serves.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.applied: list[str] = []
        self.deleted: list[str] = []
        self.faults: list[VendorError | None] = []
        self.unready: set[str] = set()
        self.unserved: set[str] = set()
        self.account = False
        self.acted: list[tuple[str, str]] = []
        self._rights = ""

    def acting_as(self, rights: str) -> MemoryPacks:
        """Return this API for calls with these rights; ``acted`` says who has applied and deleted what."""
        self._rights = rights
        return self

    def apply(
        self, document: Mapping[str, Any], *, manager: str = PACKS_MANAGER, dry_run: bool = False
    ) -> dict[str, Any]:
        self._fail()
        kind, meta = document["kind"], document["metadata"]
        if kind in self.unserved:
            raise VendorNotFound(f"the cluster serves no {kind}", code="NotServed")
        item: dict[str, Any] = copy.deepcopy(dict(document))
        item["metadata"] |= {"managedFields": [{"manager": manager}], "generation": 1}
        item["status"] = {} if kind in self.unready else _READY.get(kind, {})
        if not dry_run:
            self.acted.append((self._rights, f"apply {kind} {meta['name']}"))
            self.applied.append(f"{kind} {meta['name']}")
            self.objects[_key(document)] = item
        return item

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        self._fail()
        live = self.objects.get((kind, namespace, name))
        if live is not None:
            live["status"] = {} if kind in self.unready else _READY.get(kind, {})
        return live

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        self._fail()
        self.deleted.append(f"{kind} {name}")
        self.acted.append((self._rights, f"delete {kind} {name}"))
        self.objects.pop((kind, namespace, name), None)

    def close(self) -> None:
        """Nothing is open."""

    def _fail(self) -> None:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault


_READY: Mapping[str, dict[str, Any]] = {
    "Deployment": {"observedGeneration": 1, "updatedReplicas": 1, "readyReplicas": 1},
    "DaemonSet": {
        "observedGeneration": 1,
        "desiredNumberScheduled": 2,
        "updatedNumberScheduled": 2,
        "numberReady": 2,
    },
    "Job": {"conditions": [{"type": "Complete", "status": "True"}]},
    "CustomResourceDefinition": {"conditions": [{"type": "Established", "status": "True"}]},
}


def _key(document: Mapping[str, Any]) -> Key:
    return document["kind"], document["metadata"].get("namespace") or "", document["metadata"]["name"]
