"""The rules of placing by themselves: a table of pods, what else is there, and what each node says."""

from __future__ import annotations

from typing import Any

import pytest

from local.kubernetes.placing.board import Board
from local.kubernetes.placing.model import Node, Pod, node_of, pod_of
from local.kubernetes.placing.requests import requests_of
from local.kubernetes.placing.topology import AFFINITY, ANTI, ANTI_OF_OTHERS, NO_LABEL, SKEWED
from local.kubernetes.placing.volumes import Storage

Object = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB, DB = {"app": "web"}, {"app": "db"}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
OTHER_PORT = "node(s) didn't have free ports for the requested pod ports"
SELECTED = "node(s) didn't match Pod's node affinity/selector"


def a_pod(name: str, labels: Object | None = None, namespace: str = "default", **spec: Any) -> Pod:
    containers = spec.pop("containers", [{"resources": {"requests": {"cpu": "1"}}}])
    meta = {"name": name, "namespace": namespace, "labels": labels or {}}
    return pod_of({"metadata": meta, "spec": {"containers": containers, **spec}, "status": {}})


def a_node(name: str, zone: str = "", ready: str = "True", limits: Object | None = None, **spec: Any) -> Node:
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    status = {
        "conditions": [{"type": "Ready", "status": ready}],
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"},
    }
    return node_of({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}, limits)


def to(labels: Object, key: str, **more: Any) -> Object:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key, **more}


def anti(*terms: Object) -> Object:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def near(*terms: Object) -> Object:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def spread(key: str, **more: Any) -> Object:
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **to(WEB, key), **more}
    return {"topologySpreadConstraints": [rule]}


def port(number: int, address: str = "") -> list[Object]:
    return [{"ports": [{"hostPort": number, "containerPort": 80, **({"hostIP": address} if address else {})}]}]


def in_zone(*zones: str) -> Object:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


SIDECAR = {"initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 9000, "containerPort": 1}]}]}
CASES: list[tuple[str, Object, Object, list[str]]] = [
    # a name, the pod, what is on node-1 (zone a); what node-1 and node-2 (zone b) and node-3 (no zone) say
    ("anti-affinity", anti(to(DB, ZONE)), {}, [ANTI, "", ""]),
    ("anti-affinity of the other", {}, anti(to(WEB, HOST)), [ANTI_OF_OTHERS, "", ""]),
    ("anti-affinity in another namespace", anti(to(DB, ZONE)), {"namespace": "dev"}, ["", "", ""]),
    ("anti-affinity to namespaces", anti(to(DB, ZONE, namespaceSelector={})), {"namespace": "dev"}, [ANTI, "", ""]),
    ("affinity", near(to(DB, ZONE)), {}, ["", AFFINITY, AFFINITY]),
    ("affinity to nobody", near(to({"app": "x"}, ZONE)), {}, [AFFINITY] * 3),
    ("affinity to its own", near(to(WEB, ZONE)), {}, ["", "", AFFINITY]),
    ("both affinities", near(to(DB, ZONE), to({"app": "x"}, ZONE)), {}, [AFFINITY] * 3),
    ("mismatching label", anti(to({}, HOST, mismatchLabelKeys=["app"])), {}, [ANTI, "", ""]),
    ("matching label", anti(to({}, HOST, matchLabelKeys=["app"])), {}, ["", "", ""]),
    ("spread", spread(ZONE), {"labels": WEB}, [SKEWED, "", NO_LABEL]),
    ("spread with too few domains", spread(ZONE, minDomains=3), {"labels": WEB}, [SKEWED, "", NO_LABEL]),
    ("spread among nodes it wants", {**spread(ZONE), **in_zone("a")}, {"labels": WEB}, ["", SELECTED, SELECTED]),
    ("spread that ignores what it wants", {**spread(ZONE, nodeAffinityPolicy="Ignore"), **in_zone("a")},
     {"labels": WEB}, [SKEWED, SELECTED, SELECTED]),
    ("soft spread", spread(ZONE, whenUnsatisfiable="ScheduleAnyway"), {"labels": WEB}, ["", "", ""]),
    ("soft spread over an unknown label", spread("rack", whenUnsatisfiable="ScheduleAnyway"), {}, ["", "", ""]),
    ("host port", {"containers": port(80)}, {"containers": port(80)}, [OTHER_PORT, "", ""]),
    ("host port of a sidecar", dict(SIDECAR), dict(SIDECAR), [OTHER_PORT, "", ""]),
    ("host ports of two addresses", {"containers": port(80, "10.0.0.1")}, {"containers": port(80, "10.0.0.2")},
     ["", "", ""]),
    ("port on the network of nodes", {"containers": [{"ports": [{"containerPort": 80}]}], "hostNetwork": True},
     {"containers": port(80)}, [OTHER_PORT, "", ""]),
]  # fmt: skip


def test_rules_about_other_pods() -> None:
    for name, spec, other, expected in CASES:
        nodes = [a_node("node-1", "a"), a_node("node-2", "b"), a_node("node-3")]
        nodes[0].add(a_pod("other", **{"labels": DB, **other}))
        faults = Board(nodes, spaces={"dev": {}, "default": {}}).faults(a_pod("web", WEB, **spec))
        assert list(faults.values()) == expected, name


def test_rules_about_nodes() -> None:
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    liked = {**taint, "effect": "PreferNoSchedule"}
    nodes = [
        a_node("a", "a"), a_node("b", unschedulable=True), a_node("c", ready="False"), a_node("d", ready="Unknown"),
        a_node("e", taints=[taint]), a_node("f", taints=[liked]),
    ]  # fmt: skip
    state = "node(s) had untolerated taint {node.kubernetes.io/%s: }"
    dedicated = "node(s) had untolerated taint {dedicated: batch}"
    assert list(Board(nodes).faults(a_pod("web")).values()) == [
        "", "node(s) were unschedulable", state % "not-ready", state % "unreachable", dedicated, "",
    ]  # fmt: skip
    assert not any(Board(nodes).faults(a_pod("daemon", tolerations=[{"operator": "Exists"}])).values())
    named = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["f"]}]}]}
    faults = Board(nodes).faults(a_pod("web", affinity={"nodeAffinity": {REQUIRED: named}}))
    assert [name for name, fault in faults.items() if not fault] == ["f"]
    assert Board(nodes).best(a_pod("web"), ["a", "f"]).name == "a", "a taint that only ranks"


def test_what_is_preferred_ranks_before_room() -> None:
    nodes = [a_node("full", "a"), a_node("empty", "b")]
    nodes[0].add(a_pod("other", DB, containers=[{"resources": {"requests": {"cpu": "2"}}}]))
    board, names = Board(nodes), ["full", "empty"]
    term, preference = to(DB, HOST), {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
    preferences: list[tuple[Object, str]] = [
        ({}, "empty"),
        ({"podAffinity": {PREFERRED: [{"weight": 9, "podAffinityTerm": term}]}}, "full"),
        ({"podAntiAffinity": {PREFERRED: [{"weight": 9, "podAffinityTerm": term}]}}, "empty"),
        ({"nodeAffinity": {PREFERRED: [{"weight": 9, "preference": preference}]}}, "full"),
    ]
    for affinity, expected in preferences:
        assert board.best(a_pod("web", WEB, affinity=affinity), names).name == expected
    soft = spread(ZONE, whenUnsatisfiable="ScheduleAnyway", labelSelector={"matchLabels": DB})
    assert board.best(a_pod("web", DB, **soft), names).name == "empty"


def test_volumes_have_places_and_numbers() -> None:
    def volume(name: str, zone: str, key: str = ZONE) -> Object:
        zone_term = {"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]}
        spec = {
            "csi": {"driver": "csi", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [zone_term]}},
        }
        return {"metadata": {"name": name}, "spec": spec}

    def claim(**spec: Any) -> Object:
        return {"metadata": {}, "spec": spec}

    late = {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "csi", "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip
    storage = Storage(
        {
            "default/in-a": claim(volumeName="v1"), "default/in-b": claim(volumeName="v2"), "default/late": claim(),
            "default/own": claim(volumeName="v1", accessModes=["ReadWriteOncePod"]),
            "default/soon": claim(storageClassName="soon"),
        },
        {"v1": volume("v1", "a"), "v2": volume("v2", "b", "topology.ebs.csi.aws.com/zone")},
        {"late": late, "soon": {"metadata": {}, "provisioner": "csi", "volumeBindingMode": "Immediate"}},
    )  # fmt: skip

    def of(name: str) -> Object:
        return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}

    nodes = [a_node("node-1", "a", limits={"csi": 1}), a_node("node-2", "b")]
    board = Board(nodes, storage)
    elsewhere, full = "node(s) didn't match PersistentVolume's node affinity", "node(s) exceed max volume count"
    assert list(board.faults(a_pod("web", **of("in-a"))).values()) == ["", elsewhere]
    assert list(board.faults(a_pod("web", **of("in-b"))).values()) == [elsewhere, ""]
    nodes[0].add(a_pod("other", **of("own")))
    assert list(board.faults(a_pod("web", **of("in-a"))).values()) == ["", elsewhere], "the same volume counts once"
    assert list(board.faults(a_pod("web", **of("late"))).values()) == [full, ""]
    for name, words in (("own", "ReadWriteOncePod"), ("soon", "unbound immediate"), ("no", "not found")):
        assert all(words in fault for fault in board.faults(a_pod("web", **of(name))).values()), name


@pytest.mark.parametrize(
    ("spec", "milli"),
    [
        ({"containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}]}, 1000),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}] * 2, "resources": {"limits": {"cpu": "6"}}}, 2000),
        ({"containers": [{}], "resources": {"limits": {"cpu": "6"}}}, 6000),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}], "resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"containers": [{}], "overhead": {"cpu": "250m"}}, 250),
        (
            {
                "containers": [{"resources": {"requests": {"cpu": "100m"}}}],
                "initContainers": [
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                    {"resources": {"requests": {"cpu": "200m"}}},
                ],
            },
            300,
        ),
    ],
)
def test_requests_are_those_of_all_that_runs_at_a_time(spec: Object, milli: int) -> None:
    assert requests_of({"spec": spec})["cpu"] == milli


def test_pods_that_were_given_a_node_keep_their_room_from_those_of_no_higher_priority() -> None:
    nodes = [a_node("node-1")]
    waiting = a_pod("waiting", priority=5, containers=[{"resources": {"requests": {"cpu": "3"}}}])
    waiting.document["status"]["nominatedNodeName"] = "node-1"
    board = Board(nodes, nominated=[waiting])
    for priority, fault in ((4, "Insufficient cpu"), (5, "Insufficient cpu"), (6, "")):
        asking = a_pod("web", priority=priority, containers=[{"resources": {"requests": {"cpu": "2"}}}])
        assert board.faults(asking) == {"node-1": fault}
    assert board.faults(waiting) == {"node-1": ""}
