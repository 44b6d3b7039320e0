"""Manifests of what makes pods, as the pods that they would make: Deployments and their like, Jobs, Pods, and lists.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the list of manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.pointers import pointer
from stockyard.scheduling.packing.manifests import Document, Place, object_at, read_pod, wrong
from stockyard.scheduling.packing.model import Pod

_COUNTED = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}
"""Kinds that make pods of a template, and the field that says how many; one where it is missing."""
DAEMON_SET, CRON_JOB = "DaemonSet", "CronJob"
_FINAL_PHASES = ("Succeeded", "Failed")
_LONGEST_KIND = 63


@dataclass(slots=True)
class Workloads:
    """The pods that manifests ask for, with their names: ``default/web-1``.

    ``daemon_sets`` are the pods that each DaemonSet makes on each node, by namespace and name. ``skipped`` counts what
    needs no new node, by why.
    """

    pods: list[tuple[str, Pod]] = field(default_factory=list)
    daemon_sets: dict[str, Pod] = field(default_factory=dict)
    kinds: int = 0
    """How many templates there are, at most as many as different pods."""
    skipped: Counter[str] = field(default_factory=Counter)


def read_workloads(manifests: Sequence[Document], most_pods: int, most_kinds: int) -> Workloads:
    """The pods of manifests, at most so many and so many different ones.

    A Job has as many pods as run at a time, a CronJob those of one run. Pods that are bound, have ended, or belong to a
    DaemonSet are skipped, and so is every kind that makes no pods.
    """
    workloads = Workloads()
    for number, manifest in enumerate(manifests):
        for document, place in _items(manifest, (number,)):
            _add(workloads, document, place, most_pods)
            if workloads.kinds > most_kinds:
                raise ValueError(
                    f"{pointer(*place)}: no more than {most_kinds} manifests of pods can be planned at once"
                )
    return workloads


def _items(document: Any, place: Place) -> Iterator[tuple[Document, Place]]:
    """The document, or the items of a list."""
    if not isinstance(document, Mapping):
        raise wrong(place, "an object is needed")
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        raise wrong((*place, "kind"), "a text is needed")
    if not kind.endswith("List") or "items" not in document:
        yield document, place
        return
    items = document["items"]
    if not isinstance(items, list):
        raise wrong((*place, "items"), "a list is needed")
    for number, item in enumerate(items):
        # A list of one kind need not repeat it.
        named = {"kind": kind.removesuffix("List"), **item} if isinstance(item, Mapping) else item
        yield from _items(named, (*place, "items", number))


def _add(workloads: Workloads, document: Document, place: Place, most_pods: int) -> None:
    kind = document["kind"]
    if kind == "Pod":
        why = _skipped(document, place)
        if why:
            workloads.skipped[why] += 1
            return
        _add_pods(workloads, document, document, place, place, 1, most_pods)
    elif kind == DAEMON_SET:
        template, inner = _template(document, place)
        workloads.daemon_sets[_name(document, place)] = _pod(template, document, inner)
        workloads.kinds += 1
    elif kind == CRON_JOB:
        spec = object_at(object_at(document, "spec", place), "jobTemplate", (*place, "spec"))
        _add_counted(
            workloads, {**spec, "metadata": document.get("metadata")}, "Job", place, most_pods, ("spec", "jobTemplate")
        )
    elif kind in _COUNTED:
        _add_counted(workloads, document, kind, place, most_pods)
    else:
        workloads.skipped[f"the kind {kind[:_LONGEST_KIND]} makes no pods"] += 1


def _add_counted(
    workloads: Workloads, document: Document, kind: str, place: Place, most_pods: int, below: Place = ()
) -> None:
    inner = (*place, *below)
    template, template_place = _template(document, inner)
    spec, name = object_at(document, "spec", inner), _COUNTED[kind]
    count = _count(spec, name, inner)
    if kind == "Job" and spec.get("completions") is not None:
        count = min(count, _count(spec, "completions", inner))
    _add_pods(workloads, template, document, template_place, place, count, most_pods, numbered=True)


def _add_pods(
    workloads: Workloads,
    template: Document,
    owner: Document,
    template_place: Place,
    place: Place,
    count: int,
    most_pods: int,
    *,
    numbered: bool = False,
) -> None:
    if len(workloads.pods) + count > most_pods:
        raise wrong(place, f"no more than {most_pods} pods can be planned at once")
    pod, name = _pod(template, owner, template_place), _name(owner, place)
    workloads.kinds += 1
    # All of them share the one pod, by which they are found to be equal without comparing.
    workloads.pods += [(f"{name}-{number}" if numbered else name, pod) for number in range(count)]


def _skipped(document: Document, place: Place) -> str:
    """Why a pod needs no new node; empty when it needs one."""
    spec, status = object_at(document, "spec", place), object_at(document, "status", place)
    metadata = object_at(document, "metadata", place)
    owners = metadata.get("ownerReferences") or ()
    if isinstance(owners, list) and any(isinstance(o, Mapping) and o.get("kind") == DAEMON_SET for o in owners):
        return "pods of a DaemonSet are counted by their DaemonSet"
    if status.get("phase") in _FINAL_PHASES:
        return "the pod has ended"
    return "the pod has a node already" if spec.get("nodeName") else ""


def _pod(template: Document, owner: Document, place: Place) -> Pod:
    """The pod of a template, in the namespace of what makes it."""
    metadata = object_at(template, "metadata", place)
    namespace = object_at(owner, "metadata", place).get("namespace") or metadata.get("namespace") or "default"
    try:
        return read_pod({"metadata": {**metadata, "namespace": namespace}, "spec": object_at(template, "spec", place)})
    except ValueError as error:
        raise ValueError(f"{pointer(*place)}{error}") from None


def _template(document: Document, place: Place) -> tuple[Document, Place]:
    spec = object_at(document, "spec", place)
    if spec.get("template") is None:
        raise wrong((*place, "spec", "template"), "it is missing")
    return object_at(spec, "template", (*place, "spec")), (*place, "spec", "template")


def _name(document: Document, place: Place) -> str:
    metadata = object_at(document, "metadata", place)
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str):
        raise wrong((*place, "metadata", "name"), "a text is needed")
    return f"{metadata.get('namespace') or 'default'}/{name}"


def _count(spec: Document, name: str, place: Place) -> int:
    count = spec.get(name)
    if count is None:
        return 1
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise wrong((*place, "spec", name), "an integer of at least 0 is needed")
    return count
