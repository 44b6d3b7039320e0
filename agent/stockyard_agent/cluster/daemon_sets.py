"""What a pod of a DaemonSet takes: as the pods that run, which admission has made larger than their template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..kubernetes import Kubernetes, Object
from .pods import KnownPod

LIMIT_RANGES = "/api/v1/limitranges"
GENERATION = "pod-template-generation"
"""The label that the controller gives to pods: of which generation of the DaemonSet's template they are."""
OF_SET = "deprecated.daemonset.template.generation"
"""The annotation of a DaemonSet with the same number."""
SIZE_FIELDS = ("containers", "initContainers", "overhead", "resources", "resourceClaims", "hostNetwork")
"""The members of a scheduling part that say what a pod takes; the others say where it may be."""
_PAGE = 250
Defaults = Mapping[str, str]
"""Quantities by resource."""


def current_pods(pods: Iterable[KnownPod], generations: Mapping[str, str]) -> dict[str, KnownPod]:
    """The newest pod of each DaemonSet, by the set's namespace and name, of those of its template of now.

    ``generations`` has the number of that template; empty where the set does not say it, and any pod counts then.
    """
    newest: dict[str, KnownPod] = {}
    for pod in pods:
        number = generations.get(pod.daemon_set)
        if number is None or pod.ending or number not in ("", dict(pod.labels).get(GENERATION, number)):
            continue
        newest_pod = newest.get(pod.daemon_set)
        if newest_pod is None or (pod.created_at, pod.part) > (newest_pod.created_at, newest_pod.part):
            newest[pod.daemon_set] = pod
    return newest


def sized(template: Mapping[str, Any], running: Mapping[str, Any]) -> dict[str, Any]:
    """The template's part with what a running pod takes."""
    place = {name: value for name, value in template.items() if name not in SIZE_FIELDS}
    return {**place, **{name: running[name] for name in SIZE_FIELDS if name in running}}


def defaults(kube: Kubernetes) -> Mapping[str, Defaults]:
    """What containers request that say nothing, by namespace: LimitRanges. Raises ``Refused``, ``Unreachable``."""
    by_namespace: dict[str, dict[str, str]] = {}
    for namespace, quantities in sorted(kube.collect(LIMIT_RANGES, {}, _defaults, _PAGE), key=lambda item: item[0]):
        by_namespace[namespace] = {**quantities, **by_namespace.get(namespace, {})}
    return by_namespace


def _defaults(item: Object) -> tuple[str, dict[str, str]]:
    quantities: dict[str, str] = {}
    for limit in (item.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            quantities |= {**(limit.get("default") or {}), **(limit.get("defaultRequest") or {})}
    return item["metadata"]["namespace"], quantities


def limited(spec: Mapping[str, Any], quantities: Defaults) -> dict[str, Any]:
    """The specification of a template as the API server will complete it. Where the pod itself has requests, its
    containers get none."""
    if not quantities or spec.get("resources"):
        return dict(spec)
    return {**spec, **{name: _limited(spec[name], quantities) for name in SIZE_FIELDS[:2] if spec.get(name)}}


def _limited(containers: Sequence[Mapping[str, Any]], quantities: Defaults) -> list[dict[str, Any]]:
    completed = []
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        # What is only limited is requested as well.
        missing = {name: text for name, text in quantities.items() if name not in (limits.keys() | requests.keys())}
        completed.append({**container, "resources": {**resources, "requests": {**requests, **missing}}})
    return completed
