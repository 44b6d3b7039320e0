"""The volumes of pods: where they can be, which binds a pod to zones or nodes without its own manifest saying so, and
which driver attaches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ..kubernetes import Kubernetes, Object
from .csi import Handle, driver_of, handle_of

Entries = list[dict[str, Any]]
"""Requirements on a node's labels that hold together."""
CLAIMS, VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
MOST_ALTERNATIVES = 32
"""Places of all volumes of a pod together. Volumes that could be in more are said to be in the first ones."""
_PAGE = 500
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_LATE = "WaitForFirstConsumer"
_SELECTED = "volume.kubernetes.io/selected-node"


@dataclass
class Volumes:
    """The claims, volumes and classes of storage of a cluster at one moment."""

    claims: Mapping[str, Object] = field(default_factory=dict)
    """By namespace and name."""
    volumes: Mapping[str, list[Entries]] = field(default_factory=dict)
    classes: Mapping[str, list[Entries] | None] = field(default_factory=dict)
    """Where a new volume can be; None where one is made before there is a pod, so that a pod waits for it."""
    handles: Mapping[str, Handle] = field(default_factory=dict)
    """The driver and the volume of each PersistentVolume that has a driver, by name."""
    drivers: Mapping[str, str] = field(default_factory=dict)
    """The driver of new volumes, by class; empty for none."""

    @classmethod
    def read(cls, kube: Kubernetes) -> Volumes:
        """Read them. Raises ``Refused``, ``Unreachable``."""
        claims = dict(kube.collect(CLAIMS, {}, _claim, _PAGE))
        volumes = kube.collect(VOLUMES, {}, _volume, _PAGE)
        classes = [entry for entries in kube.collect(CLASSES, {}, _class, _PAGE) for entry in entries]
        return cls(
            claims,
            {name: places for name, places, _ in volumes},
            {name: places for name, places, _ in classes},
            {name: handle for name, _, handle in volumes if handle is not None},
            {name: driver for name, _, driver in classes},
        )

    def places(self, namespace: str, names: Sequence[str]) -> list[Entries] | None:
        """The alternatives of where a pod's claims can be; empty when anywhere.

        None when no node would help: a claim is missing, or waits for something else than the pod.
        """
        each: list[list[Entries]] = []
        for name in names:
            alternatives = self._of(self.claims.get(f"{namespace}/{name}"))
            if alternatives is None:
                return None
            if alternatives:
                each.append(alternatives)
        together: list[Entries] = []
        for combination in product(*each) if each else ():
            entries = [entry for part in combination for entry in part]
            if entries not in together:
                together.append(entries)
            if len(together) == MOST_ALTERNATIVES:
                break
        return together

    def handles_of(self, namespace: str, names: Sequence[str]) -> set[Handle]:
        """The volumes of a pod's claims that a driver attaches to its node. One that is not made yet goes by its
        claim."""
        handles = (self._handle(f"{namespace}/{name}") for name in names)
        return {handle for handle in handles if handle is not None}

    def _handle(self, name: str) -> Handle | None:
        claim = self.claims.get(name)
        if claim is None:
            return None
        if volume := claim.get("volumeName"):
            return self.handles.get(volume)
        driver = self.drivers.get(claim.get("storageClassName") or "")
        return (driver, name) if driver else None

    def selected_node(self, namespace: str, names: Sequence[str]) -> str:
        """The node that the scheduler has given to a pod whose volumes are being made there; empty for none.

        kube-scheduler notes the node at each claim that is bound late, and keeps the pod to it as long as the note
        stands. A driver that cannot make the volume there takes the note back.
        """
        claims = [self.claims.get(f"{namespace}/{name}", {}) for name in names]
        nodes = {str(claim.get(_SELECTED, "")) for claim in claims if not claim.get("volumeName")}
        return nodes.pop() if len(nodes) == 1 else ""

    def knows(self, claim: str) -> bool:
        """Whether the volume of a claim, by its namespace and name, is known: it stays the same."""
        return "volumeName" in self.claims.get(claim, {})

    def _of(self, claim: Object | None) -> list[Entries] | None:
        if claim is None:
            return None
        if volume := claim.get("volumeName"):
            return self.volumes.get(volume)
        return self.classes.get(claim.get("storageClassName") or "")


def _claim(item: Object) -> tuple[str, Object]:
    meta, spec = item["metadata"], item.get("spec") or {}
    part = {name: spec[name] for name in ("volumeName", "storageClassName") if spec.get(name)}
    part |= {name: node for name, node in (meta.get("annotations") or {}).items() if name == _SELECTED}
    return f"{meta['namespace']}/{meta['name']}", part


def _volume(item: Object) -> tuple[str, list[Entries], Handle | None]:
    spec = item.get("spec") or {}
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    places = [_entries(term.get("matchExpressions"), "") for term in terms]
    return item["metadata"]["name"], places, handle_of(spec)


def _class(item: Object) -> list[tuple[str, list[Entries] | None, str]]:
    """Names, places and driver of a storage class; the default class has also an empty name."""
    meta, places = item["metadata"], None
    if item.get("volumeBindingMode") == _LATE:
        places = [_entries(term.get("matchLabelExpressions"), "In") for term in item.get("allowedTopologies") or ()]
    default = (meta.get("annotations") or {}).get(_DEFAULT) == "true"
    driver = driver_of(str(item.get("provisioner") or ""))
    return [(name, places, driver) for name in (meta["name"], *([""] if default else []))]


def _entries(expressions: Sequence[Object] | None, operator: str) -> Entries:
    return [
        {"key": entry["key"], "operator": operator or entry["operator"], "values": list(entry.get("values") or ())}
        for entry in expressions or ()
    ]
