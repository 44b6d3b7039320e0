"""Requests of pods and room of nodes, by the rules of Kubernetes."""

from __future__ import annotations

from typing import Any

from stockyard.providers.clouds.kubernetes.node_room import SCHEDULABLE, requests_of, rooms


def container(restart: str | None = None, limits: dict[str, Any] | None = None, **requests: Any) -> dict[str, Any]:
    always = {"restartPolicy": restart} if restart else {}
    return {"resources": {"requests": requests, "limits": limits or {}}, **always}


def test_a_pod_takes_what_its_containers_and_sidecars_take_or_what_starts_it() -> None:
    spec = {
        "initContainers": [container(cpu="2"), container("Always", cpu="100m"), container(cpu="3", memory="1Gi")],
        "containers": [container(cpu=1), container(limits={"cpu": "500m", "x/y": 1}, memory="bad")],
        "overhead": {"cpu": "10m"},
    }
    assert requests_of(spec) == {"cpu": 3110, "memory": 1024**3 * 1000, "x/y": 1000, "pods": 1000}
    assert requests_of({"containers": [container(cpu=1)], "resources": {"requests": {"cpu": "4"}}})["cpu"] == 4000


def test_nodes_that_take_no_machines_have_no_room() -> None:
    size = {"cpu": "4", "memory": "4Gi", "ephemeral-storage": "9Gi", "x/y": "0"}

    def node(name: str, **spec: Any) -> dict[str, Any]:
        labels = {SCHEDULABLE: "true"} if name != "control" else {}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": size}}

    taints = [{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "NoSchedule"}]
    nodes = [node("one", taints=taints), node("off", unschedulable=True), node("control"), {"metadata": {"name": "x"}}]
    pod = {"node": "one", "amounts": {"cpu": 5000, "memory": 1000, "pods": 1000}}
    (room,) = rooms(nodes, [pod])
    assert room.taints == [{"key": "b", "value": "", "effect": "NoSchedule"}]
    assert room.free == {"cpu": 0, "memory": (4 * 1024**3 - 1) * 1000}
