"""The objects of a claim's machine in its host: VirtualMachine, instance, volumes and the Secret of the first boot."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.kubernetes.features import KUBEVIRT, SECRET, VIRTUAL_MACHINE, Kind, kinds_of
from stockyard.providers.clouds.kubernetes.marks import GENERATION, RESOURCE, labels_of
from stockyard.providers.kubernetes.client import KubernetesApi
from stockyard.providers.nodes.kubevirt.virtual_machines import API_VERSION, INSTANCE, KIND, Names

POWER_MANAGER = "stockyard-power"
"""Under this name the one field is ours that says whether a machine is on: the template may have changed by then."""
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MachineObjects:
    """The objects of the machine of those names."""

    api: KubernetesApi
    names: Names

    def machine(self) -> Object | None:
        """The VirtualMachine, if it is there and ours. Raises ``VendorRefused`` for somebody else's of that name."""
        there = self.api.get(API_VERSION, KIND, self.names.machine, self.names.namespace)
        if there is not None and not self._is_ours(there):
            subject = f"{self.names.machine} in namespace {self.names.namespace}"
            raise VendorRefused(f"There is another {KIND} {subject}.")
        return there

    def instance(self) -> Object | None:
        """The VirtualMachineInstance that runs now, if there is one."""
        return self.api.get(API_VERSION, INSTANCE, self.names.machine, self.names.namespace)

    def make(self, document: Object, user_data: str, network_data: str | None) -> Object:
        """Make the Secret, then the machine that starts from it, and then the machine its owner. Run twice it changes
        nothing."""
        texts = {"userdata": user_data, **({"networkdata": network_data} if network_data is not None else {})}
        self.api.apply(self._secret(texts, None))
        machine = self.api.apply(document)
        self.api.apply(self._secret(texts, machine))
        return machine

    def switch(self, there: Object, strategy: str) -> None:
        """Change whether the machine that was read is on. Raises ``ObjectChanged`` where it is another one by now."""
        meta = there["metadata"]
        about = {"name": meta["name"], "namespace": meta["namespace"]}
        document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": about, "spec": {"runStrategy": strategy}}
        guards = {"resource_version": meta["resourceVersion"], "uid": meta["uid"]}
        self.api.apply(document, manager=POWER_MANAGER, **guards)

    def restart(self) -> None:
        """End the instance; its machine starts another one."""
        self.api.delete(API_VERSION, INSTANCE, self.names.machine, self.names.namespace)

    def remove(self) -> Sequence[str]:
        """Begin to remove everything; what is still there, by kind and name. The machine goes first, so that nothing
        makes its instance anew."""
        remaining: list[str] = []
        for kind, there in self._present():
            remaining.append(f"{kind.kind} {there['metadata']['name']}")
            if "deletionTimestamp" not in there["metadata"]:
                self.api.delete(kind.api_version, kind.kind, there["metadata"]["name"], self.names.namespace)
        return remaining

    def remove_first_boot(self) -> None:
        """Remove the Secret of a machine that was not made."""
        there = self.api.get(SECRET.api_version, SECRET.kind, self.names.first_boot, self.names.namespace)
        if there is not None and self._is_ours(there):
            self.api.delete(SECRET.api_version, SECRET.kind, self.names.first_boot, self.names.namespace)

    def _present(self) -> Iterator[tuple[Kind, Object]]:
        """Objects of the machine that are there. Those of other attempts of the claim have other names."""
        machine = self.machine()
        if machine is not None:
            yield VIRTUAL_MACHINE, machine
        selector = f"{RESOURCE}={self.names.marks[RESOURCE]}"
        for kind in kinds_of([KUBEVIRT]):
            if kind == VIRTUAL_MACHINE:
                continue
            for there in self.api.list(kind.api_version, kind.kind, self.names.namespace, selector):
                name = there["metadata"]["name"]
                if self._is_ours(there) and (name == self.names.machine or name.startswith(f"{self.names.machine}-")):
                    yield kind, there

    def _secret(self, texts: Mapping[str, str], owner: Object | None) -> dict[str, Any]:
        meta: dict[str, Any] = {"name": self.names.first_boot, "namespace": self.names.namespace}
        meta["labels"] = dict(self.names.marks)
        if owner is not None:
            reference = {"apiVersion": API_VERSION, "kind": KIND, "name": self.names.machine}
            meta["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
        data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        return {"apiVersion": SECRET.api_version, "kind": SECRET.kind, "metadata": meta, "data": data}

    def _is_ours(self, there: Object) -> bool:
        labels = labels_of(there)
        return all(labels.get(key) == value for key, value in self.names.marks.items() if key != GENERATION)
