"""Equal pods are one group: what counts, what does not, where volumes can be, and what is told when there are many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.stockyard_agent.cluster import pod_state
from agent.stockyard_agent.cluster.daemon_sets import DaemonSet
from agent.stockyard_agent.cluster.pod_state import PodState, pod_state_of, without_news
from agent.stockyard_agent.cluster.pod_templates import (
    canonical,
    claims_of,
    daemon_part,
    nominated_node,
    refusal_of,
    scheduling_part,
    waits,
)
from agent.stockyard_agent.cluster.pods import KnownPod
from agent.stockyard_agent.cluster.volumes import Volumes
from agent.stockyard_agent.kubernetes import Object
from local.kubernetes import pods as kube_pods
from stockyard.scheduling.packing.manifests import read_pod


def known_pod(name: str, node: str = "", *, labels: Any = None, daemon_set: str = "", **spec: Any) -> KnownPod:
    part = canonical(scheduling_part(spec, daemon=bool(daemon_set)))
    return KnownPod("web", name, tuple(sorted((labels or {}).items())), part, node, not node, (), daemon_set)


def drawn(*pods: KnownPod, daemons: Iterable[DaemonSet] = ()) -> PodState:
    return pod_state_of(pods, daemons, lambda *_: ())


def cpu(amount: str) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "x", "resources": {"requests": {"cpu": amount}}}]


def test_names_images_and_labels_that_no_rule_reads_make_no_difference() -> None:
    first, second = (
        known_pod(f"web-{n}", containers=[{**cpu("1")[0], "image": f"x:{n}"}], labels={"index": str(n)}, nodeName=None)
        for n in (1, 2)
    )
    state = drawn(first, second)
    assert list(state.pending.values()) == [{"count": 2, "names": ["web/web-1", "web/web-2"]}]
    (template,) = state.groups.values()
    assert template == {
        "namespace": "web", "labels": {}, "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
    }  # fmt: skip


RULES: dict[str, Any] = {
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    "priority": 10,
    "overhead": {"cpu": "1"},
    "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    "resources": {"limits": {"cpu": "2"}},
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "web-gpu"}],
    "containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}],
}


@pytest.mark.parametrize("name", RULES)
def test_what_scheduling_reads_makes_another_group_and_arrives(name: str) -> None:
    state = drawn(known_pod("plain"), known_pod("special", **{name: RULES[name]}))
    assert len(state.pending) == 2
    template = next(template for template in state.groups.values() if template["spec"])
    assert read_pod({"spec": template["spec"]}) == read_pod({"spec": {name: RULES[name]}})


def test_ports_count_on_the_node_alone() -> None:
    ports = [{"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]
    assert scheduling_part({"containers": ports}) == {}
    on_node = scheduling_part({"containers": ports, "hostNetwork": True})
    assert read_pod({"spec": on_node}).ports == read_pod({"spec": {"containers": ports, "hostNetwork": True}}).ports


@pytest.mark.parametrize(
    "rules",
    [
        {"topologySpreadConstraints": [{"topologyKey": "z", "labelSelector": {"matchLabels": {"app": "web"}}}]},
        {"topologySpreadConstraints": [{"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["app"]}]},
        *(
            {"affinity": {kind: {f"{strength}DuringSchedulingIgnoredDuringExecution": [term]}}}
            for kind in ("podAffinity", "podAntiAffinity")
            for selector in ({"matchExpressions": [{"key": "app", "operator": "Exists"}]},)
            for strength, term in (
                ("required", {"labelSelector": selector, "topologyKey": "z"}),
                ("preferred", {"weight": 1, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "z"}}),
                ("required", {"labelSelector": {}, "mismatchLabelKeys": ["app"], "topologyKey": "z"}),
            )
        ),
    ],
)
def test_labels_that_a_rule_of_any_pod_selects_by_are_told_of_all(rules: dict[str, Any]) -> None:
    labels = {"app": "web", "hash": "x"}
    state = drawn(known_pod("one", labels=labels, **rules), known_pod("two", "n1", labels=labels))
    assert [template["labels"] for template in state.groups.values()] == [{"app": "web"}] * 2


def test_gangs_are_told_apart() -> None:
    label = "scheduling.x-k8s.io/pod-group"
    state = drawn(*(known_pod(name, labels={label: name}) for name in ("a", "b")))
    assert len(state.pending) == 2


def test_pods_with_a_node_are_counted_by_it() -> None:
    state = drawn(*(known_pod(f"web-{n}", f"n{n % 2}", containers=cpu("1")) for n in range(5)))
    (group,) = state.groups
    assert state.running == {"n0": {group: 3}, "n1": {group: 2}}


def test_pods_that_end_are_told_apart() -> None:
    stays = known_pod("web-1", "n1", containers=cpu("1"))
    state = drawn(stays, replace(stays, name="web-2", ending=True), replace(stays, name="web-3", ending=True))
    counts = {state.groups[group].get("ending", False): count for group, count in state.running["n1"].items()}
    assert counts == {False: 1, True: 2}


def test_pods_of_a_daemon_set_are_one_group_wherever_they_run() -> None:
    def pod(node: str) -> KnownPod:
        fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        own = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
        return known_pod(f"proxy-{node}", node, daemon_set="web/proxy", affinity={"nodeAffinity": own})

    state = drawn(pod("n1"), pod("n2"))
    (template,) = state.groups.values()
    assert (template["daemon_set"], template["spec"]) == ("web/proxy", {})


def test_a_daemon_set_tolerates_what_its_controller_adds() -> None:
    part = daemon_part({"containers": cpu("1"), "tolerations": [{"key": "mine", "operator": "Exists"}]})
    state = drawn(daemons=[DaemonSet("web/proxy", "web", (), part)])
    template = state.groups[state.daemon_sets["web/proxy"]]
    keys = [toleration["key"] for toleration in template["spec"]["tolerations"]]
    assert keys[:2] == ["mine", "node.kubernetes.io/not-ready"]
    assert "node.kubernetes.io/unschedulable" in keys


# --- what waits -------------------------------------------------------------------------------------------------------

WAITING = kube_pods.waiting("web-1")


def changed(**members: Any) -> Object:
    """The pod that waits with other members, each given as ``part__name``."""
    pod = json.loads(json.dumps(WAITING))
    for path, value in members.items():
        part, name = path.split("__")
        pod[part][name] = value
    return pod


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (WAITING, True),
        (changed(spec__nodeName="n1"), False),
        (changed(status__phase="Running"), False),
        (changed(status__nominatedNodeName="n1"), True),
        (changed(metadata__deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (changed(spec__schedulingGates=[{"name": "wait"}]), False),
        (changed(status__conditions=[]), False),
        (changed(status__conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]), False),
        (kube_pods.waiting("web-1", owner="DaemonSet"), False),
        (kube_pods.waiting("web-1", owner=""), True),
    ],
)
def test_pods_wait_that_a_new_node_might_help(pod: Object, expected: bool) -> None:
    assert waits(pod) is expected


def refused(message: str) -> str:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return refusal_of(changed(status__conditions=[{"type": "Initialized", "status": "True"}, condition]))


def test_what_the_scheduler_says_is_told_without_counts_and_in_one_line() -> None:
    taint = "node(s) had untolerated taint {example.com/x: 2}"
    after = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    for message, expected in {
        f"0/12 nodes are available: 10 Insufficient cpu, 2 {taint}.": f"Insufficient cpu; {taint}",
        f"0/12 nodes are available: 2 {taint}, 3 Insufficient cpu. {after}": f"Insufficient cpu; {taint}",
        f"0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, {after}": "Insufficient cpu",
        "0/1 nodes are available: 1 node(s) had taint {a: b}, that the pod didn't tolerate.": (
            "node(s) had taint {a: b}, that the pod didn't tolerate"
        ),
        f"0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. {after}": (
            "pod has unbound immediate PersistentVolumeClaims"
        ),
        "no nodes available to schedule pods": "no nodes available to schedule pods",
        "one\nline\x1b[31m \u202e\ud800 only": "one line [31m only",
        "x" * 600: "x" * 512,
        "": "",
    }.items():
        assert refused(message) == expected
    assert refusal_of(changed(status__conditions=[])) == ""


def test_of_equal_pods_that_wait_the_first_by_name_says_why() -> None:
    pods = [
        replace(known_pod(name), refusal=text)
        for name, text in (("web-3", "third"), ("web-1", ""), ("web-2", "second"))
    ]
    state = drawn(*pods)
    ((group, waiting),) = state.pending.items()
    assert waiting == {"count": 3, "names": ["web/web-1", "web/web-2", "web/web-3"], "message": "second"}
    assert drawn(*(replace(pod, refusal="") for pod in pods)).pending.keys() == {group}
    # A Stockyard of before does not know of it.
    assert "message" not in without_news(state.whole())["pending"][group]


def test_a_pod_that_neither_waits_nor_has_a_node_is_not_told() -> None:
    assert drawn(replace(known_pod("gated"), waits=False)).whole()["groups"] == {}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (WAITING, ""),
        (changed(status__nominatedNodeName="n1"), "n1"),
        (changed(status__nominatedNodeName="n1", status__conditions=[]), "n1"),
        (changed(status__nominatedNodeName="n1", spec__nodeName="n1"), ""),
        (changed(status__nominatedNodeName="n1", metadata__deletionTimestamp="2026-01-01T00:00:00Z"), ""),
    ],
)
def test_nodes_that_pods_are_given_before_they_are_bound(pod: Object, expected: str) -> None:
    assert nominated_node(pod) == expected


def test_a_pod_with_a_nominated_node_keeps_its_room_there_and_does_not_wait() -> None:
    pods = [replace(known_pod("web-1"), nominated="n1"), replace(known_pod("web-2"), nominated="gone")]
    state = pod_state_of(pods, (), lambda *_: (), {"n1"})
    (group,) = state.groups
    assert state.nominated == {"n1": {group: 1}}
    assert state.pending == {group: {"count": 1, "names": ["web/web-2"]}}
    assert state.changes(PodState())["nominated"] == state.nominated


# --- volumes ----------------------------------------------------------------------------------------------------------


def zone(*values: str) -> dict[str, Any]:
    return {"key": "zone", "operator": "In", "values": list(values)}


VOLUMES = Volumes(
    claims={
        "web/bound": {"volumeName": "pv-a"}, "web/local": {"volumeName": "pv-b"}, "web/anywhere": {"volumeName": "pv"},
        "web/new": {"storageClassName": "zonal"}, "web/default": {}, "web/eager": {"storageClassName": "eager"},
        "web/lost": {"volumeName": "gone"},
    },
    volumes={"pv-a": [[zone("a")]], "pv-b": [[zone("a")], [zone("b")]], "pv": []},
    classes={"zonal": [[zone("a", "b")]], "": [], "eager": None},
)  # fmt: skip


@pytest.mark.parametrize(
    ("claims", "places"),
    [
        ((), []),
        (("bound",), [[zone("a")]]),
        (("local",), [[zone("a")], [zone("b")]]),
        (("anywhere", "default"), []),
        (("new",), [[zone("a", "b")]]),
        (("bound", "local"), [[zone("a"), zone("a")], [zone("a"), zone("b")]]),
        (("missing",), None),
        (("eager",), None),
        (("bound", "lost"), None),
    ],
)
def test_places_of_volumes(claims: Sequence[str], places: Any) -> None:
    assert VOLUMES.places("web", claims) == places


def test_places_of_many_volumes_are_bounded() -> None:
    each = [[zone(str(n))] for n in range(10)]
    volumes = Volumes({f"web/{n}": {"volumeName": "pv"} for n in range(4)}, {"pv": each})
    assert len(volumes.places("web", ["0", "1", "2", "3"]) or ()) == 32


def test_claims_of_a_pod_are_those_it_names_and_those_made_for_it() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "c", "emptyDir": {}},
    ]
    assert claims_of(kube_pods.waiting("web-1", volumes=volumes)) == ("data", "web-1-b")


def test_pods_are_told_with_the_places_of_their_volumes_or_not_at_all() -> None:
    pods = [replace(known_pod(name), claims=(name,)) for name in ("bound", "missing")]
    state = pod_state_of(pods, (), VOLUMES.places)
    (template,) = state.groups.values()
    assert template["volumes"] == [[zone("a")]]
    assert [waiting["names"] for waiting in state.pending.values()] == [["web/bound"]]


# --- many -------------------------------------------------------------------------------------------------------------


def test_of_too_many_different_pods_on_nodes_the_room_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_state, "MOST_GROUPS", 4)
    running = [known_pod(f"r{n}", "n1", nodeSelector={"a": str(n)}, containers=cpu("1")) for n in range(6)]
    state = drawn(known_pod("w", nodeSelector={"a": "b"}), *running)
    ((group, count),) = state.running["n1"].items()
    assert count == 6
    assert state.groups[group]["spec"] == {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    assert (len(state.groups), state.omitted) == (2, 0)


def test_of_too_many_different_pods_that_wait_the_largest_groups_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_state, "MOST_GROUPS", 3)
    waiting = [known_pod(f"w{n}-{m}", nodeSelector={"a": str(n)}) for n in range(5) for m in range(n + 1)]
    state = drawn(known_pod("r", "n1", containers=cpu("1")), *waiting)
    assert sorted(entry["count"] for entry in state.pending.values()) == [4, 5]
    assert (state.omitted, len(state.groups)) == (1 + 2 + 3, 3)
    assert {*state.pending, *state.running["n1"]} == state.groups.keys()


def test_changes_lead_from_one_picture_to_the_next() -> None:
    before = drawn(known_pod("a"), known_pod("b", "n1", containers=cpu("1")), known_pod("c", "n2"))
    after = drawn(known_pod("a"), known_pod("d"), known_pod("c", "n2"), known_pod("e", nodeSelector={"a": "b"}))
    changes, merged = after.changes(before), before.whole()
    for name in pod_state.MAPS:
        entries = {**merged[name], **changes[name]}
        merged[name] = {key: value for key, value in entries.items() if value is not None}
    assert merged == after.whole()
    assert changes["running"] == {"n1": None}
    assert not any(after.changes(after).values())
