"""The columns that an API server prints of each kind, for clients that ask for a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from local.kubernetes.resources import Resource
from local.kubernetes.store import Object

ROLE = "node-role.kubernetes.io/"
_NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``wide``: only ``-o wide`` shows it. ``cell`` takes the object and the time."""

    name: str
    cell: Callable[[Object, datetime], Any]
    wide: bool = False
    kind: str = "string"


def table(resource: Resource, items: Sequence[Object], now: datetime, query: Mapping[str, str]) -> Object:
    """The rows of objects. Each carries its metadata, or all of it where the query asks for that."""
    columns = columns_of(resource)
    whole = query.get("includeObject") == "Object"
    definitions = [
        {"name": each.name, "type": each.kind, "format": "name" if each.name == "Name" else "", "description": "",
         "priority": int(each.wide)}
        for each in columns
    ]  # fmt: skip
    rows = [
        {"cells": [each.cell(item, now) for each in columns], "object": item if whole else _partial(item)}
        for item in items
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _partial(item: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}


def columns_of(resource: Resource) -> Sequence[Column]:
    """The columns of a kind."""
    if resource.columns:
        return [NAME, *(_defined(each) for each in resource.columns)]
    return _COLUMNS.get((resource.group, resource.name), (NAME, AGE))


def age(start: str | None, now: datetime) -> str:
    """Time since then, as kubectl writes it: ``2m30s``, ``5h``, ``3d``."""
    if not start:
        return "<unknown>"
    return duration((now - datetime.fromisoformat(start.replace("Z", "+00:00"))).total_seconds())


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_YEAR = 365 * _DAY
_UNITS = (
    (2 * _MINUTE, "s", 1, "", 1),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (3 * _HOUR, "m", _MINUTE, "", 1),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (48 * _HOUR, "h", _HOUR, "", 1),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (2 * _YEAR, "d", _DAY, "", 1),
    (8 * _YEAR, "y", _YEAR, "d", _DAY),
)
"""Below how many seconds a time is told in which unit, and in which smaller one besides."""


def duration(seconds: float) -> str:
    """Seconds in the two largest units that tell something."""
    amount = max(0, int(seconds))
    for limit, unit, size, smaller, smaller_size in _UNITS:
        if amount < limit:
            smaller_amount = amount % size // smaller_size if smaller else 0
            return f"{amount // size}{unit}" + (f"{smaller_amount}{smaller}" if smaller_amount else "")
    return f"{amount // _YEAR}y"


def _at(item: Mapping[str, Any], path: str) -> Any:
    value: Any = item
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _field(name: str, path: str, default: Any = _NONE, *, wide: bool = False, kind: str = "string") -> Column:
    def cell(item: Object, _: datetime) -> Any:
        value = _at(item, path)
        return default if value in (None, "") else value

    return Column(name, cell, wide, kind)


def _count(name: str, path: str) -> Column:
    return _field(name, path, 0, kind="integer")


def _computed(name: str, cell: Callable[[Object], Any], *, wide: bool = False) -> Column:
    return Column(name, lambda item, _: cell(item), wide)


NAME = _field("Name", "metadata.name")
AGE = Column("Age", lambda item, now: age(item["metadata"].get("creationTimestamp"), now))
_CREATED = _field("Created At", "metadata.creationTimestamp")


def _labels(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or _NONE


def _templates(path: str = "spec.template.spec.containers") -> tuple[Column, Column]:
    def listed(name: str) -> Callable[[Object], str]:
        return lambda item: ",".join(str(each.get(name, "")) for each in _at(item, path) or ()) or _NONE

    return _computed("Containers", listed("name"), wide=True), _computed("Images", listed("image"), wide=True)


_SELECTOR = _computed("Selector", lambda item: _labels(_at(item, "spec.selector.matchLabels")), wide=True)


def _conditions(item: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in _at(item, "status.conditions") or ()}


def _pod_ready(pod: Object) -> str:
    total = len(pod["spec"].get("containers") or ())
    return f"{total if _conditions(pod).get('Ready') == 'True' else 0}/{total}"


def _pod_status(pod: Object) -> str:
    return "Terminating" if "deletionTimestamp" in pod["metadata"] else str(_at(pod, "status.phase") or "Pending")


def _node_status(node: Object) -> str:
    ready = {"True": "Ready", "False": "NotReady"}.get(_conditions(node).get("Ready", ""), "NotReady")
    return f"{ready},SchedulingDisabled" if node["spec"].get("unschedulable") else ready


def _node_roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    return ",".join(sorted(name.removeprefix(ROLE) for name in labels if name.startswith(ROLE))) or _NONE


def _address(kind: str) -> Callable[[Object], str]:
    return lambda node: next((a["address"] for a in _at(node, "status.addresses") or () if a["type"] == kind), _NONE)


def _ports(service: Object) -> str:
    def text(port: Mapping[str, Any]) -> str:
        outside = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{outside}/{port.get('protocol', 'TCP')}"

    return ",".join(map(text, service["spec"].get("ports") or ())) or _NONE


def _completions(job: Object) -> str:
    return f"{_at(job, 'status.succeeded') or 0}/{_at(job, 'spec.completions') or 1}"


def _job_status(job: Object) -> str:
    conditions = _conditions(job)
    return next((name for name in ("Complete", "Failed") if conditions.get(name) == "True"), "Running")


def _job_duration(job: Object, now: datetime) -> str:
    start, end = _at(job, "status.startTime"), _at(job, "status.completionTime")
    until = datetime.fromisoformat(end.replace("Z", "+00:00")) if end else now
    return age(start, until) if start else ""


def _claim(volume: Object) -> str:
    claim = volume["spec"].get("claimRef") or {}
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _request_state(item: Object) -> str:
    kinds = [each["type"] for each in _at(item, "status.conditions") or ()]
    issued = ["Issued"] if _at(item, "status.certificate") else []
    return ",".join([*kinds, *issued]) or "Pending"


def _subject(event: Object) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _ready_of(desired: str, present: str) -> Column:
    return _computed(
        "Ready", lambda item: f"{_at(item, present) or 0}/{_at(item, desired) if _at(item, desired) is not None else 1}"
    )


_READY = _ready_of("spec.replicas", "status.readyReplicas")
_DATA = Column(
    "Data", lambda item, _: len(item.get("data") or ()) + len(item.get("binaryData") or ()), False, "integer"
)
_COLUMNS: Mapping[tuple[str, str], Sequence[Column]] = {
    ("", "namespaces"): (NAME, _field("Status", "status.phase", "Active"), AGE),
    ("", "nodes"): (
        NAME, _computed("Status", _node_status), _computed("Roles", _node_roles), AGE,
        _field("Version", "status.nodeInfo.kubeletVersion", "<unknown>"),
        _computed("Internal-IP", _address("InternalIP"), wide=True),
        _computed("External-IP", _address("ExternalIP"), wide=True),
        _field("OS-Image", "status.nodeInfo.osImage", "<unknown>", wide=True),
        _field("Kernel-Version", "status.nodeInfo.kernelVersion", "<unknown>", wide=True),
        _field("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>", wide=True),
    ),
    ("", "pods"): (
        NAME, _computed("Ready", _pod_ready), _computed("Status", _pod_status),
        _computed("Restarts", lambda _pod: "0"), AGE, _field("IP", "status.podIP", wide=True),
        _field("Node", "spec.nodeName", wide=True), _field("Nominated Node", "status.nominatedNodeName", wide=True),
        _computed("Readiness Gates", lambda _pod: _NONE, wide=True),
    ),
    ("", "services"): (
        NAME, _field("Type", "spec.type", "ClusterIP"), _field("Cluster-IP", "spec.clusterIP"),
        _field("External-IP", "spec.externalName"), _computed("Port(s)", _ports), AGE,
        _computed("Selector", lambda item: _labels(item["spec"].get("selector")), wide=True),
    ),
    ("", "configmaps"): (NAME, _DATA, AGE),
    ("", "secrets"): (NAME, _field("Type", "type", "Opaque"), _DATA, AGE),
    ("", "events"): (
        Column("Last Seen", lambda item, now: age(item.get("lastTimestamp"), now)), _field("Type", "type"),
        _field("Reason", "reason"), _computed("Object", _subject), _field("Message", "message"),
        _field("Name", "metadata.name", wide=True),
    ),
    ("", "persistentvolumeclaims"): (
        NAME, _field("Status", "status.phase", "Pending"), _field("Volume", "spec.volumeName", ""),
        _field("Capacity", "status.capacity.storage", ""),
        _computed("Access Modes", lambda item: ",".join(item["spec"].get("accessModes") or ())),
        _field("StorageClass", "spec.storageClassName", ""), AGE, _field("VolumeMode", "spec.volumeMode", wide=True),
    ),
    ("", "persistentvolumes"): (
        NAME, _field("Capacity", "spec.capacity.storage", ""), _field("Status", "status.phase", "Available"),
        _computed("Claim", _claim),
        _field("StorageClass", "spec.storageClassName", ""), AGE,
    ),
    ("apps", "deployments"): (
        NAME, _READY, _count("Up-to-date", "status.updatedReplicas"), _count("Available", "status.availableReplicas"),
        AGE, *_templates(), _SELECTOR,
    ),
    ("apps", "replicasets"): (
        NAME, _count("Desired", "spec.replicas"), _count("Current", "status.replicas"),
        _count("Ready", "status.readyReplicas"), AGE, *_templates(), _SELECTOR,
    ),
    ("apps", "statefulsets"): (NAME, _READY, AGE, *_templates()),
    ("apps", "daemonsets"): (
        NAME, _count("Desired", "status.desiredNumberScheduled"), _count("Current", "status.currentNumberScheduled"),
        _count("Ready", "status.numberReady"), _count("Up-to-date", "status.updatedNumberScheduled"),
        _count("Available", "status.numberAvailable"),
        _computed("Node Selector", lambda item: _labels(_at(item, "spec.template.spec.nodeSelector"))),
        AGE, *_templates(), _SELECTOR,
    ),
    ("batch", "jobs"): (
        NAME, _computed("Status", _job_status), _computed("Completions", _completions),
        Column("Duration", _job_duration),
        AGE, *_templates(), _SELECTOR,
    ),
    ("batch", "cronjobs"): (
        NAME, _field("Schedule", "spec.schedule"), _field("Timezone", "spec.timeZone"),
        _field("Suspend", "spec.suspend", False), AGE,
    ),
    ("policy", "poddisruptionbudgets"): (
        NAME, _field("Min Available", "spec.minAvailable", "N/A"),
        _field("Max Unavailable", "spec.maxUnavailable", "N/A"),
        _count("Allowed Disruptions", "status.disruptionsAllowed"), AGE,
    ),
    ("storage.k8s.io", "storageclasses"): (
        NAME, _field("Provisioner", "provisioner"), _field("ReclaimPolicy", "reclaimPolicy", "Delete"),
        _field("VolumeBindingMode", "volumeBindingMode", "Immediate"),
        _field("AllowVolumeExpansion", "allowVolumeExpansion", False), AGE,
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        NAME, _count("Value", "value"), _field("Global-Default", "globalDefault", False), AGE,
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): (
        NAME, AGE, _field("SignerName", "spec.signerName"), _field("Requestor", "spec.username"),
        _computed("Condition", _request_state),
    ),
    ("coordination.k8s.io", "leases"): (NAME, _field("Holder", "spec.holderIdentity"), AGE),
    ("networking.k8s.io", "ingresses"): (NAME, _field("Class", "spec.ingressClassName"), AGE),
    ("rbac.authorization.k8s.io", "rolebindings"): (
        NAME, _computed("Role", lambda item: f"{_at(item, 'roleRef.kind')}/{_at(item, 'roleRef.name')}"), AGE,
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (
        NAME, _computed("Role", lambda item: f"{_at(item, 'roleRef.kind')}/{_at(item, 'roleRef.name')}"), AGE,
    ),
    ("rbac.authorization.k8s.io", "roles"): (NAME, _CREATED),
    ("rbac.authorization.k8s.io", "clusterroles"): (NAME, _CREATED),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (NAME, _CREATED),
}  # fmt: skip


_STEP = re.compile(r"\[\?\(@\.(\w+)==[\"']([^\"']*)[\"']\)\]|\.([\w-]+)|\['?([^'\]]+)'?\]")


def _defined(column: Mapping[str, Any]) -> Column:
    """A column that a definition of a kind names by a JSON path."""
    is_date, wide = column.get("type") == "date", int(column.get("priority") or 0) > 0

    def cell(item: Object, now: datetime) -> Any:
        value = _json_path(item, str(column["jsonPath"]))
        if is_date:
            return age(value, now)
        return value if isinstance(value, str | int | float) or value is None else str(value)

    return Column(str(column["name"]), cell, wide, "string" if is_date else str(column.get("type", "string")))


def _json_path(item: Object, path: str) -> Any:
    """Value at a JSON path of names, indexes and equal filters; None where nothing is."""
    value: Any = item
    for filter_name, filter_value, name, key in _STEP.findall(path.replace("\\.", "\0")):
        if filter_name:
            value = next((each for each in value or () if str(each.get(filter_name)) == filter_value), None)
        elif isinstance(value, list):
            value = value[int(key)] if key.isdigit() and int(key) < len(value) else None
        else:
            value = value.get((name or key).replace("\0", ".")) if isinstance(value, Mapping) else None
    return value
