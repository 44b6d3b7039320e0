"""The two objects of a claim's machine: the Secret of its first boot, and the ConfigMap that is the machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.kubernetes.marks import GENERATION, labels_of
from stockyard.providers.kubernetes.client import KubernetesApi

FIRST_BOOT = "first-boot"


@dataclass(frozen=True, slots=True)
class MachineObjects:
    """The objects of the machine of that name. ``marks`` are the labels of both, by which they are known as ours."""

    api: KubernetesApi
    namespace: str
    name: str
    marks: Mapping[str, str]

    def machine(self) -> Mapping[str, Any] | None:
        """The ConfigMap, if it is there and ours. Raises ``VendorRefused`` for somebody else's of that name."""
        there = self.api.get("v1", "ConfigMap", self.name, self.namespace)
        if there is not None and not self._is_ours(there):
            raise VendorRefused(f"There is another ConfigMap {self.name} in namespace {self.namespace}.")
        return there

    def make(self, data: Mapping[str, str], user_data: Mapping[str, str]) -> Mapping[str, Any]:
        """Make both, the machine last. Run twice it changes nothing."""
        text = base64.b64encode(json.dumps(dict(user_data)).encode()).decode()
        self.api.apply(self._document("Secret", self._secret, {"user-data": text}))
        return self.api.apply(self._document("ConfigMap", self.name, data))

    def change(self, there: Mapping[str, Any], data: Mapping[str, str]) -> None:
        """Change the machine that was read. Raises ``ObjectChanged`` where it is another one by now."""
        document = self._document("ConfigMap", self.name, {**there["data"], **data})
        meta = there["metadata"]
        self.api.apply(document, resource_version=meta["resourceVersion"], uid=meta["uid"])

    def remove(self) -> bool:
        """Begin to remove both; True when they are gone."""
        is_removed = True
        for kind, name in (("ConfigMap", self.name), ("Secret", self._secret)):
            there = self.api.get("v1", kind, name, self.namespace)
            if there is not None and self._is_ours(there):
                self.api.delete("v1", kind, name, self.namespace)
                is_removed = False
        return is_removed

    @property
    def _secret(self) -> str:
        return f"{self.name}-{FIRST_BOOT}"

    def _document(self, kind: str, name: str, data: Mapping[str, str]) -> dict[str, Any]:
        meta = {"name": name, "namespace": self.namespace, "labels": dict(self.marks)}
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": dict(data)}

    def _is_ours(self, there: Mapping[str, Any]) -> bool:
        labels = labels_of(there)
        return all(labels.get(key) == value for key, value in self.marks.items() if key != GENERATION)
