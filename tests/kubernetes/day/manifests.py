"""Manifests that a person writes for a cluster: workloads, volumes, budgets, NodePools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DRIVER = "played.example.test"
"""Of volumes whose provisioner the test plays."""
SIZE = {"requests": {"storage": "1Gi"}}


def deployment(name: str, replicas: int, cpu: str, pool: str, **spec: Any) -> Object:
    """A Deployment on a pool as a person writes it. ``spec`` are more members of its pods' specification."""
    return _document("apps/v1", "Deployment", name, spec={"replicas": replicas, **_template(name, cpu, pool, spec)})


def daemon_set(name: str, cpu: str) -> Object:
    """A DaemonSet for every node of the pools."""
    return _document("apps/v1", "DaemonSet", name, spec=_template(name, cpu, "", {}))


def job(name: str, count: int, cpu: str, pool: str) -> Object:
    """A Job whose pods run at once."""
    template = _template(name, cpu, pool, {"restartPolicy": "Never"})["template"]
    return _document("batch/v1", "Job", name, spec={"completions": count, "parallelism": count, "template": template})


def stateful_set(name: str, replicas: int, cpu: str, pool: str, storage_class: str) -> Object:
    """A StatefulSet whose pods have a volume ``data`` each and wait for no other."""
    mounts = {"name": "c", "image": "nginx", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    body = _template(name, cpu, pool, {})
    (container,) = body["template"]["spec"]["containers"]
    container |= mounts
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": SIZE}
    own = {
        "podManagementPolicy": "Parallel",
        "serviceName": name,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return _document("apps/v1", "StatefulSet", name, spec={"replicas": replicas, **own, **body})


def storage_class(name: str, zone: str) -> Object:
    """Volumes of one zone that are made when a pod has its node, by nobody."""
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
    late = {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies}
    return _document("storage.k8s.io/v1", "StorageClass", name, **late)


def volume(claim: str, storage_class: str, zone: str) -> Object:
    """Volume that a provisioner makes for a claim of the namespace ``default``."""
    terms = [{"matchExpressions": [among(ZONE, zone)]}]
    spec = {
        "capacity": SIZE["requests"],
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "claimRef": {"namespace": "default", "name": claim},
        "csi": {"driver": DRIVER, "volumeHandle": claim},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return _document("v1", "PersistentVolume", claim, spec=spec)


def priority_class(name: str, value: int) -> Object:
    """A PriorityClass."""
    return _document("scheduling.k8s.io/v1", "PriorityClass", name, value=value)


def budget(app: str, **spec: Any) -> Object:
    """A PodDisruptionBudget of an application."""
    return _document("policy/v1", "PodDisruptionBudget", app, spec={**spec, "selector": _selector(app)})


def spread(app: str, key: str, **rule: Any) -> Object:
    """Pods of an application are spread over a label: if it can be, unless the rule says more."""
    usual = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    return {**usual, "topologyKey": key, "labelSelector": _selector(app), **rule}


def apart(app: str) -> Object:
    """No two pods of an application on a node: a term of anti-affinity."""
    return {"topologyKey": HOST, "labelSelector": _selector(app)}


def node_pool(name: str, *requirements: Mapping[str, Any], limit: int = 20, after: str = "0s") -> Object:
    """A Karpenter NodePool as a person writes it: on demand, and nodes leave as soon as they are in excess, or after a
    while without change."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    requirements = (among("karpenter.sh/capacity-type", "on-demand"), *requirements)
    spec = {
        "template": {"spec": {"requirements": list(requirements), "nodeClassRef": reference}},
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": after,
            "budgets": [{"nodes": "100%"}],
        },
        "limits": {"nodes": str(limit)},
    }
    return _document("karpenter.sh/v1", "NodePool", name, spec=spec)


def among(key: str, *values: str) -> Object:
    """A requirement."""
    return {"key": key, "operator": "In", "values": list(values)}


def _document(version: str, kind: str, name: str, **members: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **members}


def _selector(app: str) -> Object:
    return {"matchLabels": {"app": app}}


def _template(name: str, cpu: str, pool: str, spec: Mapping[str, Any]) -> Object:
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    body = {"containers": [container], "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False}
    body |= {"nodeSelector": {"karpenter.sh/nodepool": pool}} if pool else {}
    return {
        "selector": _selector(name),
        "template": {"metadata": {"labels": {"app": name}}, "spec": {**body, **spec}},
    }
