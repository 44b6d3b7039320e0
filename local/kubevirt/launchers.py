"""Pods in which KubeVirt's instances run, on the nodes of their cluster: placed by what is free there, and removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from local.kubernetes.placing.requests import requests_of
from local.kubernetes.placing.selectors import KEEPS_OUT, tolerates
from local.kubernetes.real.callers import Caller
from local.kubernetes.real.client import Refused
from stockyard.domain.values.quantities import milli

SCHEDULABLE = "kubevirt.io/schedulable"
PREFIX = "virt-launcher-"
_MIB = 2**20
_ENDS = ("Succeeded", "Failed")
Object = dict[str, Any]


class Launchers:
    """The pods of a cluster's instances."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def placed(self, instance: Mapping[str, Any]) -> bool:
        """Whether the instance has a pod on a node: its own, or a new one where a node has room."""
        meta = instance["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods"
        pods = [each for each in self._caller.call("GET", "/api/v1/pods")["items"] if _stands(each)]
        if any(each["metadata"]["name"] == f"{PREFIX}{meta['name']}" for each in pods):
            return True
        pod = _pod(instance)
        node = self._node_for(pod, pods)
        if node is None:
            return False
        pod["spec"]["nodeName"] = node
        self._caller.call("POST", path, pod)
        return True

    def remove(self, instance: Mapping[str, Any]) -> None:
        """Remove the pod of an instance that has ended."""
        meta = instance["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{PREFIX}{meta['name']}?gracePeriodSeconds=0"
        try:
            self._caller.call("DELETE", path)
        except Refused as refused:
            if refused.status != 404:
                raise

    def _node_for(self, pod: Object, pods: list[Object]) -> str | None:
        needs = requests_of(pod)
        used: dict[str, Counter[str]] = {}
        for each in pods:
            used.setdefault(each["spec"]["nodeName"], Counter()).update(requests_of(each))
        for node in self._caller.call("GET", "/api/v1/nodes")["items"]:
            name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
            most = {key: milli(text) for key, text in (node.get("status") or {}).get("allocatable", {}).items()}
            used_there = used.get(name, Counter[str]())
            if _may_stand(pod, node, labels) and all(
                used_there[key] + amount <= most.get(key, 0) for key, amount in needs.items()
            ):
                return str(name)
        return None


def _stands(pod: Mapping[str, Any]) -> bool:
    return bool(pod["spec"].get("nodeName")) and (pod.get("status") or {}).get("phase") not in _ENDS


def _may_stand(pod: Object, node: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    spec = node.get("spec") or {}
    taints = [taint for taint in spec.get("taints") or () if taint["effect"] in KEEPS_OUT]
    selector, tolerations = pod["spec"]["nodeSelector"], pod["spec"]["tolerations"]
    return (
        not spec.get("unschedulable")
        and all(labels.get(key) == value for key, value in selector.items())
        and all(tolerates(tolerations, taint) for taint in taints)
    )


def _pod(instance: Mapping[str, Any]) -> Object:
    """The pod of an instance: it asks for the guest's resources, and for memory of the programs around it."""
    meta, spec = instance["metadata"], instance["spec"]
    domain = spec["domain"]
    cpu = domain.get("cpu") or {}
    wished = dict((domain.get("resources") or {}).get("requests") or {})
    memory = milli(wished.get("memory") or (domain.get("memory") or {}).get("guest") or 0) // 1000
    vcpus = cpu.get("cores", 1) * cpu.get("sockets", 1) * cpu.get("threads", 1)
    if not cpu:
        vcpus = max(1, -(-milli(wished.get("cpu", 1)) // 1000))
    around = (220 + 8 + 32 + 8 * vcpus) * _MIB + memory // 512
    wished = {"cpu": f"{vcpus * 100}m", **wished, "memory": str(memory + around)}
    for device in (*(domain["devices"].get("gpus") or ()), *(domain["devices"].get("hostDevices") or ())):
        wished[device["deviceName"]] = str(int(wished.get(device["deviceName"], 0)) + 1)
    limits = {name: text for name, text in wished.items() if name not in ("cpu", "memory")}
    container = {"name": "compute", "image": "virt-launcher", "resources": {"requests": wished, "limits": limits}}
    selector = {**(spec.get("nodeSelector") or {}), SCHEDULABLE: "true"}
    labels = {**(meta.get("labels") or {}), "kubevirt.io": "virt-launcher"}
    about = {"name": f"{PREFIX}{meta['name']}", "namespace": meta["namespace"], "labels": labels}
    inner = {"containers": [container], "nodeSelector": selector, "tolerations": spec.get("tolerations") or []}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": inner}
