"""NodePools and NodeClaims as the agent writes them, and the definitions of both for clusters that have none."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .kubernetes import Object

GROUP = "karpenter.sh"
VERSION = f"{GROUP}/v1"
PLURALS = {"NodePool": "nodepools", "NodeClaim": "nodeclaims"}
LABEL = "stockyard.dev/mirrored"
"""Every mirror carries it with ``"true"``: nobody but the agent writes what does, and it writes nothing else."""
DIGEST = "stockyard.dev/mirror-digest"
"""The annotation with the digest of what was written, so that an agent that was restarted writes what is new alone."""
CLAIM, POOL = "stockyard.dev/claim", "stockyard.dev/pool"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[kMGTPE]|[KMGTPE]i)?")
_KIB = 1024


def path_of(kind: str, *names: str) -> str:
    """Path of the objects of a kind, without names of all objects."""
    return "/".join([f"/apis/{VERSION}/{PLURALS[kind]}", *names])


def digest(value: Any) -> str:
    """The same for equal values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def object_of(document: Mapping[str, Any], owner: tuple[str, str] | None) -> Object:
    """The object of a document of Stockyard's, without its status. ``owner`` is name and uid of a claim's NodePool."""
    meta: Object = {"name": document["name"], "labels": {**document["labels"], LABEL: "true"}}
    if owner is not None:
        meta["ownerReferences"] = [{"apiVersion": VERSION, "kind": "NodePool", "name": owner[0], "uid": owner[1]}]
    written = {"apiVersion": VERSION, "kind": document["kind"], "metadata": meta, "spec": document["spec"]}
    meta["annotations"] = {**document["annotations"], DIGEST: digest([written, document["annotations"]])}
    return written


def status_of(document: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> Object:
    """The status, with what only the cluster knows: ``nodes`` are those of an observation."""
    status = dict(document["status"])
    if document["kind"] == "NodePool":
        own = [node for node in nodes if node["claim"] and node["labels"].get(POOL) == document["name"]]
        status["resources"] = {"nodes": str(status.get("nodes", 0)), **total(node["capacity"] for node in own)}
        return status
    claim, name = document["labels"].get(CLAIM), status.get("nodeName")
    for node in nodes:
        if claim and (node["claim"], node["name"]) == (claim, name):
            status |= {"providerID": node["provider_id"]} if node["provider_id"] else {}
            status |= {"capacity": dict(node["capacity"]), "allocatable": dict(node["allocatable"])}
    return status


def total(capacities: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The sums of quantities by resource. What is no quantity is left out."""
    sums: dict[str, Fraction] = {}
    for capacity in capacities:
        for name, text in capacity.items():
            if match := _QUANTITY.fullmatch(text):
                sums[name] = sums.get(name, Fraction(0)) + Fraction(match[1]) * _factor(match[2] or "")
    return {name: _text(number) for name, number in sums.items()}


def _factor(suffix: str) -> Fraction:
    if suffix == "m":
        return Fraction(1, 1000)
    power = " KMGTPE".find(suffix[:1].upper()) if suffix else 0
    return Fraction(_KIB if suffix.endswith("i") else 1000) ** power


def _text(number: Fraction) -> str:
    if number.denominator != 1:
        return f"{int(number * 1000)}m"
    whole = int(number)
    return f"{whole // _KIB}Ki" if whole >= _KIB * _KIB and not whole % _KIB else str(whole)


_Column = tuple[str, str, str, int]
_READY = '.status.conditions[?(@.type=="Ready")].status'
_COLUMNS: Mapping[str, Sequence[_Column]] = {
    "NodePool": (
        ("NodeClass", ".spec.template.spec.nodeClassRef.name", "string", 0),
        ("Nodes", ".status.resources.nodes", "string", 0),
        ("Ready", _READY, "string", 0),
        ("Age", ".metadata.creationTimestamp", "date", 0),
        ("Weight", ".spec.weight", "integer", 1),
        ("CPU", ".status.resources.cpu", "string", 1),
        ("Memory", ".status.resources.memory", "string", 1),
    ),
    "NodeClaim": (
        ("Type", r".metadata.labels.node\.kubernetes\.io/instance-type", "string", 0),
        ("Capacity", r".metadata.labels.karpenter\.sh/capacity-type", "string", 0),
        ("Zone", r".metadata.labels.topology\.kubernetes\.io/zone", "string", 0),
        ("Node", ".status.nodeName", "string", 0),
        ("Ready", _READY, "string", 0),
        ("Age", ".metadata.creationTimestamp", "date", 0),
        ("ID", ".status.providerID", "string", 1),
        ("NodePool", r".metadata.labels.karpenter\.sh/nodepool", "string", 1),
    ),
}


def definitions() -> list[Object]:
    """The definitions of both kinds. They hold whatever Stockyard says: it has checked pools and claims itself."""
    return [_definition(kind, plural) for kind, plural in PLURALS.items()]


def _definition(kind: str, plural: str) -> Object:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    columns = [
        {"name": name, "jsonPath": path, "type": form, "priority": priority}
        for name, path, form, priority in _COLUMNS[kind]
    ]
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "labels": {"app.kubernetes.io/managed-by": "stockyard-agent"}},
        "spec": {
            "group": GROUP,
            "names": {**names, "categories": ["karpenter"]},
            "scope": "Cluster",
            "versions": [served],
        },
    }
