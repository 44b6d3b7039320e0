"""Where the volumes of pods can be: what binds a pod to zones or nodes without its own manifest saying so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from .kubernetes import Kubernetes, Object

Entries = list[dict[str, Any]]
"""Requirements on a node's labels that hold together."""
CLAIMS, VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
MOST_ALTERNATIVES = 32
"""Places of all volumes of a pod together. Volumes that could be in more are said to be in the first ones."""
_PAGE = 500
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_LATE = "WaitForFirstConsumer"


@dataclass
class Volumes:
    """The claims, volumes and classes of storage of a cluster at one moment."""

    claims: Mapping[str, Object] = field(default_factory=dict)
    """By namespace and name."""
    volumes: Mapping[str, list[Entries]] = field(default_factory=dict)
    classes: Mapping[str, list[Entries] | None] = field(default_factory=dict)
    """Where a new volume can be; None where one is made before there is a pod, so that a pod waits for it."""

    @classmethod
    def read(cls, kube: Kubernetes) -> Volumes:
        """Read them. Raises ``Refused``, ``Unreachable``."""
        claims = dict(kube.collect(CLAIMS, {}, _claim, _PAGE))
        volumes = dict(kube.collect(VOLUMES, {}, _volume, _PAGE))
        classes = dict(entry for entries in kube.collect(CLASSES, {}, _class, _PAGE) for entry in entries)
        return cls(claims, volumes, classes)

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

    def _of(self, claim: Object | None) -> list[Entries] | None:
        if claim is None:
            return None
        if volume := claim.get("volumeName"):
            return self.volumes.get(volume)
        return self.classes.get(claim.get("storageClassName") or "")


def _claim(item: Object) -> tuple[str, Object]:
    meta, spec = item["metadata"], item.get("spec") or {}
    part = {name: spec[name] for name in ("volumeName", "storageClassName") if spec.get(name)}
    return f"{meta['namespace']}/{meta['name']}", part


def _volume(item: Object) -> tuple[str, list[Entries]]:
    affinity = (item.get("spec") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or ()
    return item["metadata"]["name"], [_entries(term.get("matchExpressions"), "") for term in terms]


def _class(item: Object) -> list[tuple[str, list[Entries] | None]]:
    """Of the default class also under an empty name."""
    meta, places = item["metadata"], None
    if item.get("volumeBindingMode") == _LATE:
        places = [_entries(term.get("matchLabelExpressions"), "In") for term in item.get("allowedTopologies") or ()]
    default = (meta.get("annotations") or {}).get(_DEFAULT) == "true"
    return [(name, places) for name in (meta["name"], *([""] if default else []))]


def _entries(expressions: Sequence[Object] | None, operator: str) -> Entries:
    return [
        {"key": entry["key"], "operator": operator or entry["operator"], "values": list(entry.get("values") or ())}
        for entry in expressions or ()
    ]
