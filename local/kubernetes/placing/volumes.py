"""Volumes of pods: where they are or can be made, and how many of them a node takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.kubernetes.placing.model import ALIASES, REGION, ZONE, Node, Pod
from local.kubernetes.placing.selectors import Object, in_terms

LATE = "WaitForFirstConsumer"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
_TOPOLOGY_KEYS = (ZONE, REGION, *ALIASES)


@dataclass(frozen=True, slots=True)
class Need:
    """One volume of a pod. ``terms`` say on which nodes it can be, None on any. ``handle`` is what is counted."""

    driver: str
    handle: str
    terms: Sequence[Object] | None
    problem: str = ""
    """Why no node helps; empty when one does."""


@dataclass
class Storage:
    """Claims by namespace and name, volumes and classes by name."""

    claims: Mapping[str, Object] = field(default_factory=dict)
    volumes: Mapping[str, Object] = field(default_factory=dict)
    classes: Mapping[str, Object] = field(default_factory=dict)

    def needs(self, pod: Pod) -> list[Need]:
        """Needs of the pod's claims."""
        return [self._need(f"{pod.namespace}/{name}", name) for name in pod.claims]

    def class_of(self, claim: Object) -> Object | None:
        """The class of a claim; the default one where it names none."""
        name = (claim.get("spec") or {}).get("storageClassName")
        if name is not None:
            return self.classes.get(name)
        marked = (item for item in self.classes.values() if _is_default(item))
        return next(marked, None)

    def _need(self, key: str, name: str) -> Need:
        claim = self.claims.get(key)
        if claim is None:
            return Need("", key, None, f'persistentvolumeclaim "{name}" not found')
        bound = (claim.get("spec") or {}).get("volumeName")
        if bound:
            volume = self.volumes.get(bound)
            if volume is None:
                return Need("", key, None, f'persistentvolume "{bound}" not found')
            csi = volume["spec"].get("csi") or {}
            return Need(csi.get("driver", ""), csi.get("volumeHandle") or bound, _terms_of(volume))
        kind = self.class_of(claim)
        if kind is None or kind.get("volumeBindingMode") != LATE:
            return Need("", key, None, "pod has unbound immediate PersistentVolumeClaims")
        topologies = kind.get("allowedTopologies") or ()
        terms = [
            {"matchExpressions": [{**entry, "operator": "In"} for entry in term.get("matchLabelExpressions") or ()]}
            for term in topologies
        ]
        return Need(kind.get("provisioner", ""), key, terms or None)


def _is_default(item: Mapping[str, Any]) -> bool:
    return (item["metadata"].get("annotations") or {}).get(DEFAULT) == "true"


def _terms_of(volume: Object) -> Sequence[Object] | None:
    """The terms of a volume's node affinity, and of its labels of a zone, of which one may name several."""
    affinity = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
    terms: Sequence[Object] | None = affinity.get("nodeSelectorTerms") or None
    labels = volume["metadata"].get("labels") or {}
    own = [{"key": key, "operator": "In", "values": labels[key].split("__")} for key in _TOPOLOGY_KEYS if key in labels]
    if not own:
        return terms
    return [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *own]} for term in terms or ({},)]


def fault_of(needs: Sequence[Need], node: Node, storage: Storage) -> str:
    """Reason why the node cannot have the volumes, as kube-scheduler words it; empty when it can."""
    for need in needs:
        if need.terms is not None and not in_terms(need.terms, node.name, node.labels):
            return "node(s) didn't match PersistentVolume's node affinity"
    if not node.limits:
        return ""
    here = {(need.driver, need.handle) for pod in node.pods for need in storage.needs(pod)}
    new = {(need.driver, need.handle) for need in needs} - here
    for driver, most in node.limits.items():
        coming = sum(each == driver for each, _ in new)
        if coming and coming + sum(each == driver for each, _ in here) > most:
            return "node(s) exceed max volume count"
    return ""
