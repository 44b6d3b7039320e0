"""Contents of posts: the wire's names, paging, what fits."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agent.stockyard_agent.observation import LIMIT, TooLarge, encoded
from local.kubernetes.api import Fault
from tests.unit.agent.rig import PIN, START, Rig


def test_post_has_documented_members(rig: Rig) -> None:
    rig.add_node(
        "a", claim="ncl_1", providerID="aws:///us-east-1a/i-0abc", taints=[{"key": "x", "effect": "NoSchedule"}]
    )
    rig.add_node("b", ready="Unknown", unschedulable=True)
    for name, phase in (("one", "Running"), ("two", "Pending"), ("three", "Succeeded"), ("four", "Failed")):
        rig.add_pod(name, "a", phase=phase)
    rig.add_pod("waiting", "", phase="Pending")
    rig.platform.order("c", "cordon", node="a")
    rig.rounds(rig.agent(), 2)
    first, second = rig.platform.posts
    a, b = first.pop("nodes")
    uid = a["uid"]
    assert first == {
        "sequence": int(START.timestamp() * 1000),
        "observed_at": "2026-01-02T03:04:05.678Z",
        "agent_version": "2",
        "kubernetes_version": "v1.34.1",
        "ca_hash": PIN,
        "results": [],
        "pods": None,
        "overlay": None,
    }
    assert a == {
        "name": "a",
        "uid": uid,
        "provider_id": "aws:///us-east-1a/i-0abc",
        "created_at": "2026-01-02T03:04:05Z",
        "claim": "ncl_1",
        "ready": "True",
        "unschedulable": False,
        "taints": [{"key": "x", "value": "", "effect": "NoSchedule"}],
        "labels": {"kubernetes.io/hostname": "a", "kubernetes.io/os": "linux", "stockyard.dev/claim": "ncl_1"},
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "pods": 2,
    }
    assert (b["claim"], b["ready"], b["unschedulable"], b["pods"]) == (None, "Unknown", True, 0)
    assert second["results"] == [{"id": "cmd_c", "status": "done", "message": "The node a is cordoned.", "data": {}}]


def test_sequence_rises_over_restart_and_stopped_clock(rig: Rig) -> None:
    first = rig.agent()
    first.round()
    first.round()
    rig.clock.later(1)
    rig.agent().round()
    numbers = [post["sequence"] for post in rig.platform.posts]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 1000]


def test_observation_reads_large_clusters_in_pages(rig: Rig) -> None:
    for number in range(230):
        rig.add_node(f"n{number:03}")
    for number in range(1100):
        rig.add_pod(f"p{number}", f"n{number % 100:03}")
    rig.rounds(rig.agent(), 1)
    nodes = rig.platform.posts[0]["nodes"]
    assert len({node["name"] for node in nodes}) == len(nodes) == 230
    assert sum(node["pods"] for node in nodes) == 1100
    calls = [call.action.resource for call in rig.kube.calls if call.action.verb == "list"]
    assert calls == ["pods"] * 3 + ["nodes"] * 3


def test_observation_restarts_list_with_expired_continue_token(rig: Rig) -> None:
    for number in range(230):
        rig.add_node(f"n{number:03}")
    expired: list[int] = []

    def around(request: Any, deliver: Any) -> Any:
        if "continue=" in request.url and len(expired) < 2:
            expired.append(1)
            rig.kube.store.compact()
        return deliver(request)

    rig.around = around
    agent = rig.agent()
    rig.rounds(agent, 1)
    assert len(rig.platform.posts[0]["nodes"]) == 230
    assert [call.status for call in rig.kube.calls].count(410) == 2
    rig.kube.faults.append(Fault("list", "nodes", 410, times=3))
    rig.rounds(agent, 1)
    assert len(rig.platform.posts) == 1
    assert "410" in rig.logs[-1]


@pytest.mark.parametrize("resource", ["nodes", "pods", "/version"])
@pytest.mark.parametrize("status", [403, 429, 500])
def test_incomplete_observation_is_not_posted(rig: Rig, resource: str, status: int) -> None:
    rig.add_node("a")
    rig.kube.faults.append(Fault("*", resource, status))
    agent = rig.agent()
    rig.rounds(agent, 1)
    assert rig.platform.posts == []
    rig.rounds(agent, 1)
    assert len(rig.platform.posts[0]["nodes"]) == 1


def posted(count: int, labels: dict[str, str]) -> dict[str, Any]:
    node = {"name": "ip-10-0-0-1.ec2.internal", "labels": labels, "capacity": {"cpu": "4"}, "pods": 3}
    return {"kubernetes_version": "v1.34.1", "nodes": [node] * count}


def test_large_post_drops_labels_that_scheduling_does_not_need(rig: Rig) -> None:
    needed = {"stockyard.dev/claim": "ncl_1", "topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "arm64"}
    noise = {f"example.test/noise-{number}": "x" * 60 for number in range(20)}
    small = json.loads(encoded(posted(10, needed | noise), [], sequence=1, moment=START, pin=PIN))
    assert small["nodes"][0]["labels"] == needed | noise
    data = encoded(posted(5000, needed | noise), [], sequence=1, moment=START, pin=PIN)
    assert len(data) <= LIMIT
    post = json.loads(data)
    assert len(post["nodes"]) == 5000
    assert post["nodes"][0]["labels"] == needed


def test_paths_that_a_machine_tells_are_posted_unless_they_are_too_long(rig: Rig) -> None:
    for name, text in (("a", '{"direct": 1}'), ("b", "x" * 5_000), ("c", None)):
        rig.add_node(name)["metadata"]["annotations"] = {"stockyard.dev/overlay": text} if text else None
    rig.rounds(rig.agent(), 1)
    assert [node.get("overlay") for node in rig.platform.posts[0]["nodes"]] == ['{"direct": 1}', None, None]
    large = posted(5000, {f"kubernetes.io/noise-{number}": "x" * 60 for number in range(9)})
    large["nodes"] = [{**node, "overlay": "x" * 4_000} for node in large["nodes"]]
    post = json.loads(encoded(large, [], sequence=1, moment=START, pin=PIN))
    assert "overlay" not in post["nodes"][0]


def test_post_that_stays_too_large_raises_too_large(rig: Rig) -> None:
    with pytest.raises(TooLarge, match=re.escape("60000 nodes")):
        encoded(posted(60_000, {"stockyard.dev/claim": "ncl_1"}), [], sequence=1, moment=START, pin=PIN)
    for number in range(8):
        rig.add_node(f"n{number}")["metadata"]["labels"]["kubernetes.io/" + "x" * 700_000] = ""
    rig.rounds(rig.agent(), 1)
    assert rig.platform.posts == []
    assert "8 nodes and 0 results make" in rig.logs[-1]
