"""Manifests of what makes pods, as the pods that they would make: Deployments and their like, Jobs, Pods, and lists.

Errors are ``ValueError`` with a text that begins with the field, as a JSON pointer into the list of manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from stockyard.domain.values.manifest_lists import taken_apart
from stockyard.domain.values.pointers import pointer
from stockyard.scheduling.limit_ranges import Defaults, read_defaults, with_requests
from stockyard.scheduling.packing.fields import Document, FieldPath, object_at, texts, wrong
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Pod

_COUNTED = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}
"""Kinds that make pods of a template, and the field that says how many; one where it is missing."""
POD, DAEMON_SET, JOB, CRON_JOB = "Pod", "DaemonSet", "Job", "CronJob"
NAMESPACE, LIMIT_RANGE = "Namespace", "LimitRange"
_OF_NAMESPACES = (NAMESPACE, LIMIT_RANGE)
"""Kinds that make no pods and say something of those of a namespace."""
_VERSIONS = {
    **dict.fromkeys((POD, "ReplicationController", *_OF_NAMESPACES), "v1"),
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", DAEMON_SET), "apps/v1"),
    **dict.fromkeys((JOB, CRON_JOB), "batch/v1"),
}
"""The version of each kind that is read. A kind is one of its group: a ``Job`` of another group is another thing."""
_FORMER_GROUPS = ("extensions",)
"""Groups that had some of these kinds, in versions that Kubernetes has no longer."""
_FINAL_PHASES = ("Succeeded", "Failed")
_FINAL_CONDITIONS = ("Complete", "Failed")
_LONGEST_KIND, _LONGEST_VERSION = 63, 253


@dataclass(slots=True)
class Workloads:
    """The pods that manifests ask for, with their names: ``default/web-1``.

    ``daemon_sets`` are the pods that each DaemonSet makes on each node, by namespace and name. ``namespaces`` are the
    labels of each Namespace that is among the manifests, ``defaults`` what containers request by its LimitRanges where
    they say nothing, by namespace. ``skipped`` counts what needs no new node, by why.
    """

    pods: list[tuple[str, Pod]] = field(default_factory=list)
    daemon_sets: dict[str, Pod] = field(default_factory=dict)
    kinds: int = 0
    """How many templates there are, at most as many as different pods."""
    skipped: Counter[str] = field(default_factory=Counter)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    defaults: dict[str, Defaults] = field(default_factory=dict)


def read_workloads(manifests: Sequence[Document], most_pods: int, most_kinds: int) -> Workloads:
    """The pods of manifests, at most so many and so many different ones.

    A Job has as many pods as run at a time, a CronJob those of one run. What is suspended or held by scheduling gates
    has none. Pods that are bound, have ended, or belong to a DaemonSet are skipped, and so is what a document beside it
    makes, every kind that makes no pods, and every kind of another API group.
    """
    workloads = Workloads()
    documents = [item for number, manifest in enumerate(manifests) for item in _items(manifest, (number,))]
    workloads.namespaces.update(_namespaces(documents))
    for namespace, defaults in _defaults(documents):
        workloads.defaults[namespace] = {**defaults, **workloads.defaults.get(namespace, {})}
    controllers = frozenset(name for document, _ in documents if (name := _identity(document)))
    for document, path in documents:
        why = _skipped(document, path, controllers)
        if why:
            workloads.skipped[why] += 1
        else:
            _add(workloads, document, path, most_pods)
        if workloads.kinds > most_kinds:
            raise ValueError(f"{pointer(*path)}: no more than {most_kinds} manifests of pods can be planned at once")
    return workloads


def _items(manifest: Any, path: FieldPath) -> Iterator[tuple[Document, FieldPath]]:
    """The document, or the items of a list."""
    for where, document in taken_apart(manifest, path):
        if not isinstance(document, Mapping):
            raise wrong(where, "an object is needed")
        for name, needed in (("kind", True), ("apiVersion", False)):
            text = document.get(name)
            if (needed or text is not None) and not (isinstance(text, str) and text):
                raise wrong((*where, name), "a text is needed")
        yield document, where


def _namespaces(documents: Sequence[tuple[Document, FieldPath]]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The labels of each Namespace, by its name."""
    for document, path in documents:
        if document["kind"] == NAMESPACE and not _foreign(document):
            metadata = object_at(document, "metadata", path)
            labels = texts(metadata.get("labels"), (*path, "metadata", "labels"))
            name = metadata.get("name")
            if isinstance(name, str):
                yield name, labels


def _defaults(documents: Sequence[tuple[Document, FieldPath]]) -> Iterator[tuple[str, Defaults]]:
    """Default requests of containers by each LimitRange, with its namespace."""
    for document, path in documents:
        if document["kind"] == LIMIT_RANGE and not _foreign(document):
            namespace = object_at(document, "metadata", path).get("namespace") or "default"
            yield str(namespace), read_defaults(document, path)


def _foreign(document: Document) -> str | None:
    """Reason why the document is none of the kinds that are read; None for those. Without a version the kind alone
    counts."""
    kind, version = document["kind"], document.get("apiVersion")
    if kind not in _VERSIONS:
        return f"the kind {kind[:_LONGEST_KIND]} makes no pods"
    if version in (None, _VERSIONS[kind]):
        return None
    own_group, group = _group(_VERSIONS[kind]), _group(version)
    full_name = f"{kind} of {version[:_LONGEST_VERSION]}"
    if group == own_group or group in _FORMER_GROUPS:
        return f"{full_name} is of a version that is not read; write it as {_VERSIONS[kind]}"
    return f"{full_name} is another kind than that of {_VERSIONS[kind]}"


def _group(version: str) -> str:
    """The API group of a version; empty for that of ``v1``."""
    return version.rpartition("/")[0]


def _skipped(document: Document, path: FieldPath, controllers: Set[tuple[str, str]]) -> str | None:
    """Reason why a document needs no new node; None when it may need one. ``controllers`` are all documents that are
    there."""
    why = _foreign(document)
    if why:
        return why
    kind = document["kind"]
    if kind in _OF_NAMESPACES:
        return f"the kind {kind} makes no pods"
    if _owner(document, path) in controllers:
        return "what another of these manifests makes is counted there"
    return _skipped_pod(document, path) if kind == POD else _skipped_controller(document, path)


def _skipped_pod(document: Document, path: FieldPath) -> str | None:
    spec, status = object_at(document, "spec", path), object_at(document, "status", path)
    if _owner(document, path)[0] == DAEMON_SET:
        return "pods of a DaemonSet are counted by their DaemonSet"
    if status.get("phase") in _FINAL_PHASES:
        return "the pod has ended"
    if object_at(document, "metadata", path).get("deletionTimestamp"):
        return "the pod is being deleted"
    if spec.get("nodeName"):
        return "the pod has a node already"
    return _GATED if spec.get("schedulingGates") else None


_GATED = "scheduling gates hold the pods"


def _skipped_controller(document: Document, path: FieldPath) -> str | None:
    kind, spec = document["kind"], object_at(document, "spec", path)
    if kind in (JOB, CRON_JOB) and _is_true(spec, "suspend", (*path, "spec")):
        return f"the {kind} is suspended"
    if kind == JOB and _has_ended(object_at(document, "status", path)):
        return "the Job has ended"
    if kind == CRON_JOB:
        path = (*path, "spec", "jobTemplate")
        document = object_at(spec, "jobTemplate", path[:-1])
        if _is_true(object_at(document, "spec", path), "suspend", (*path, "spec")):
            return "the Jobs of the CronJob are suspended"
    template, inner = _template(document, path)
    return _GATED if object_at(template, "spec", inner).get("schedulingGates") else None


def _is_true(spec: Document, name: str, path: FieldPath) -> bool:
    value = spec.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong((*path, name), "true or false is needed")
    return bool(value)


def _has_ended(status: Document) -> bool:
    conditions = status.get("conditions") or ()
    return any(
        isinstance(condition, Mapping)
        and condition.get("type") in _FINAL_CONDITIONS
        and condition.get("status") == "True"
        for condition in (conditions if isinstance(conditions, list) else ())
    )


def _owner(document: Document, path: FieldPath) -> tuple[str, str]:
    """Kind and name of what controls the document, or of the DaemonSet that owns it; empty texts for none."""
    metadata = object_at(document, "metadata", path)
    owners = metadata.get("ownerReferences") or ()
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and (owner.get("controller") is True or owner.get("kind") == DAEMON_SET):
            return str(owner.get("kind")), f"{metadata.get('namespace') or 'default'}/{owner.get('name')}"
    return "", ""


def _identity(document: Document) -> tuple[str, str] | None:
    """Kind and name of a document that makes so many pods of a template; None for others."""
    metadata = document.get("metadata")
    if (
        _foreign(document)
        or document["kind"] in (POD, DAEMON_SET, *_OF_NAMESPACES)
        or not isinstance(metadata, Mapping)
    ):
        return None
    return document["kind"], f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


def _add(workloads: Workloads, document: Document, path: FieldPath, most_pods: int) -> None:
    kind = document["kind"]
    if kind == POD:
        _add_pods(workloads, document, document, path, path, 1, most_pods)
    elif kind == DAEMON_SET:
        template, inner = _template(document, path)
        workloads.daemon_sets[_name(document, path)] = _pod(workloads, template, document, inner)
        workloads.kinds += 1
    elif kind == CRON_JOB:
        spec = object_at(object_at(document, "spec", path), "jobTemplate", (*path, "spec"))
        _add_counted(
            workloads, {**spec, "metadata": document.get("metadata")}, JOB, path, most_pods, ("spec", "jobTemplate")
        )
    else:
        _add_counted(workloads, document, kind, path, most_pods)


def _add_counted(
    workloads: Workloads, document: Document, kind: str, path: FieldPath, most_pods: int, below: FieldPath = ()
) -> None:
    inner = (*path, *below)
    template, template_path = _template(document, inner)
    spec, name = object_at(document, "spec", inner), _COUNTED[kind]
    count = _count(spec, name, inner)
    if kind == JOB and spec.get("completions") is not None:
        count = min(count, _count(spec, "completions", inner))
    _add_pods(workloads, template, document, template_path, path, count, most_pods, numbered=True)


def _add_pods(
    workloads: Workloads,
    template: Document,
    owner: Document,
    template_path: FieldPath,
    path: FieldPath,
    count: int,
    most_pods: int,
    *,
    numbered: bool = False,
) -> None:
    if len(workloads.pods) + count > most_pods:
        raise wrong(path, f"no more than {most_pods} pods can be planned at once")
    pod, name = _pod(workloads, template, owner, template_path), _name(owner, path)
    workloads.kinds += 1
    # All of them share the one pod, by which they are found to be equal without comparing.
    workloads.pods += [(f"{name}-{number}" if numbered else name, pod) for number in range(count)]


def _pod(workloads: Workloads, template: Document, owner: Document, path: FieldPath) -> Pod:
    """The pod of a template, in the namespace of what makes it."""
    metadata = object_at(template, "metadata", path)
    namespace = object_at(owner, "metadata", path).get("namespace") or metadata.get("namespace") or "default"
    spec = with_requests(object_at(template, "spec", path), workloads.defaults.get(str(namespace), {}))
    manifest = {"metadata": {**metadata, "namespace": namespace}, "spec": spec}
    try:
        return read_pod(manifest, namespaces=workloads.namespaces)
    except ValueError as error:
        raise ValueError(f"{pointer(*path)}{error}") from None


def _template(document: Document, path: FieldPath) -> tuple[Document, FieldPath]:
    spec = object_at(document, "spec", path)
    if spec.get("template") is None:
        raise wrong((*path, "spec", "template"), "it is missing")
    return object_at(spec, "template", (*path, "spec")), (*path, "spec", "template")


def _name(document: Document, path: FieldPath) -> str:
    metadata = object_at(document, "metadata", path)
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str):
        raise wrong((*path, "metadata", "name"), "a text is needed")
    return f"{metadata.get('namespace') or 'default'}/{name}"


def _count(spec: Document, name: str, path: FieldPath) -> int:
    count = spec.get(name)
    if count is None:
        return 1
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise wrong((*path, "spec", name), "an integer of at least 0 is needed")
    return count
