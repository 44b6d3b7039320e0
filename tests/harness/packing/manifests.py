"""Problems of packing as documents of Kubernetes: pods, and what of a problem is not in the pods themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from local.testing.packing_checker import ALIASES

Json = Any
UNITS = {"cpu": "m", "memory": "Mi"}
CONTAINER = {"name": "c", "image": "none"}
IGNORED = "DuringSchedulingIgnoredDuringExecution"
PRIORITY_CLASS = "priority-{}"


def resources(amounts: Mapping[str, int]) -> dict[str, str]:
    """Cores in thousandths, memory in MiB, everything else in pieces: any unit will do, since all use the same."""
    return {name: f"{amount}{UNITS.get(name, '')}" for name, amount in amounts.items()}


def pod_manifest(pod: Mapping[str, Json], space: Callable[[str], str] = str) -> Json:
    """A pod as a person writes it. ``space`` is the name of a namespace of the problem."""
    meta = {"name": pod["name"], "namespace": space(pod["namespace"]), "labels": dict(pod["labels"])}
    affinity = {
        "nodeAffinity": _node_affinity(pod),
        "podAffinity": _pod_terms(pod.get("affinity", ()), space),
        "podAntiAffinity": _pod_terms(pod.get("anti_affinity", ()), space),
    }
    spec: dict[str, Json] = {
        "containers": [_container(pod)],
        "affinity": affinity,
        "nodeSelector": dict(pod.get("node_selector", {})),
        "tolerations": [dict(entry) for entry in pod.get("tolerations", ())],
        "topologySpreadConstraints": [_spread(spread) for spread in pod.get("spreads", ())],
    }
    if pod.get("sidecar_ports"):
        spec["initContainers"] = [
            {
                **CONTAINER,
                "name": "s",
                "restartPolicy": "Always",
                "ports": list(map(port_manifest, pod["sidecar_ports"])),
            }
        ]
    if "pod_resources" in pod:
        spec["resources"] = {name: resources(amounts) for name, amounts in pod["pod_resources"].items()}
    if pod.get("volumes"):
        claims = [volume_name(pod, number) for number in range(len(pod["volumes"]))]
        spec["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    if pod.get("devices"):
        spec["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in pod["devices"]]
    if pod.get("gated"):
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if pod.get("priority"):
        spec["priorityClassName"] = PRIORITY_CLASS.format(pod["priority"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def node_document(node: Mapping[str, Json]) -> Json:
    """A ready node with its labels, and with the labels of cloud controllers and drivers."""
    labels = {**node["labels"], **{old: node["labels"][key] for old, key in ALIASES.items() if key in node["labels"]}}
    room = resources(node["allocatable"])
    spec: dict[str, Json] = {"taints": [dict(taint) for taint in node["taints"]]}
    if node.get("cordoned"):
        spec["unschedulable"] = True
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    meta = {"name": node["name"], "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def volume_name(pod: Mapping[str, Json], number: int) -> str:
    """The name of a volume of a pod, and of its claim."""
    return f"{pod['name']}-v{number}"


def volume_manifests(pod: Mapping[str, Json], space: Callable[[str], str] = str) -> list[Json]:
    """The volumes of a pod and their claims, bound to each other."""
    manifests: list[Json] = []
    for number, volume in enumerate(pod.get("volumes", ())):
        name, namespace = volume_name(pod, number), space(pod["namespace"])
        storage = {"storage": "1Gi"}
        zone_term = {"key": volume["key"], "operator": "In", "values": list(volume["zones"])}
        common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        own = {
            **common,
            "capacity": storage,
            "csi": {"driver": volume["driver"], "volumeHandle": f"{namespace}-{name}"},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone_term]}]}},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        meta = {"name": f"{namespace}-{name}"}
        manifests.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": own})
        claim = {**common, "resources": {"requests": storage}, "volumeName": meta["name"]}
        meta = {"name": name, "namespace": namespace}
        manifests.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim})
    return manifests


def _container(pod: Mapping[str, Json]) -> Json:
    requests = resources(pod["requests"])
    extended = {name: amount for name, amount in requests.items() if "/" in name}
    ports = list(map(port_manifest, pod.get("ports", ())))
    return {**CONTAINER, "resources": {"requests": requests, "limits": extended}, "ports": ports}


def port_manifest(port: Json) -> Json:
    """A port of a container that is one of its node."""
    if isinstance(port, int):
        return {"containerPort": port, "hostPort": port}
    address = {"hostIP": port["address"]} if port["address"] else {}
    return {"containerPort": port["port"], "hostPort": port["port"], "protocol": port["protocol"], **address}


def _expressions(requirements: Iterable[Mapping[str, Json]]) -> Json:
    return {
        "matchExpressions": [
            {name: value for name, value in entry.items() if name != "minValues"} for entry in requirements
        ]
    }


def _node_affinity(pod: Mapping[str, Json]) -> Json:
    affinity: dict[str, Json] = {}
    if pod.get("required_terms"):
        affinity[f"required{IGNORED}"] = {"nodeSelectorTerms": [_expressions(term) for term in pod["required_terms"]]}
    affinity[f"preferred{IGNORED}"] = [
        {"weight": entry["weight"], "preference": _expressions(entry["requirements"])}
        for entry in pod.get("preferred_terms", ())
    ]
    return affinity


def _selection(entry: Mapping[str, Json]) -> Json:
    """The label selector of a rule, with what it adds of the pod's own labels."""
    document: dict[str, Json] = {"topologyKey": entry["key"]}
    if entry["selector"] is not None:
        document["labelSelector"] = {"matchLabels": dict(entry["selector"])}
        if entry.get("expressions"):
            document["labelSelector"]["matchExpressions"] = [dict(each) for each in entry["expressions"]]
    for name, field in (("match_label_keys", "matchLabelKeys"), ("mismatch_label_keys", "mismatchLabelKeys")):
        if entry.get(name):
            document[field] = list(entry[name])
    return document


def _pod_terms(terms: Iterable[Mapping[str, Json]], space: Callable[[str], str]) -> Json:
    required: list[Json] = []
    preferred: list[Json] = []
    for entry in terms:
        document = _selection(entry)
        if entry.get("namespaces"):
            document["namespaces"] = [space(name) for name in entry["namespaces"]]
        if entry.get("namespace_selector") is not None:
            labels = {
                key: space(value) if key == "kubernetes.io/metadata.name" else value
                for key, value in entry["namespace_selector"].items()
            }
            document["namespaceSelector"] = {"matchLabels": labels}
        if entry["weight"]:
            preferred.append({"weight": entry["weight"], "podAffinityTerm": document})
        else:
            required.append(document)
    return {f"required{IGNORED}": required, f"preferred{IGNORED}": preferred}


def _spread(spread: Mapping[str, Json]) -> Json:
    document = _selection(spread)
    document["maxSkew"] = spread["max_skew"]
    document["whenUnsatisfiable"] = "DoNotSchedule" if spread["hard"] else "ScheduleAnyway"
    if spread["hard"] and spread.get("min_domains"):
        document["minDomains"] = spread["min_domains"]
    for name, field in (("affinity_policy", "nodeAffinityPolicy"), ("taints_policy", "nodeTaintsPolicy")):
        if spread.get(name):
            document[field] = spread[name]
    return document
