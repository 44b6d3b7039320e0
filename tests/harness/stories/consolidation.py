"""Nodes of a story become fewer when its pods do, and no pod that stays is without a node."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any

from tests.harness.stories.pools import GROUP, PODS, Story, pod

STAYING = 4
"""Pods that are left; one node has room for them."""


def nodes_become_fewer(story: Story, count: int) -> dict[str, Any]:
    """All but ``STAYING`` of so many pods end. The nodes that are not needed any more leave. Returns figures.

    Those that stay are on two nodes: where all are on one, the others are empty, and nothing has to be saved by moving
    pods.
    """
    # Before the agent has told that pods are gone, they may still bring nodes.
    story.served.wait("room", lambda: story.condition("PodsHaveRoom")["status"] == "True", 60)
    began, path = time.monotonic(), f"clusters/{story.cluster['id']}"
    before = story.pool(GROUP)["nodes"]
    claims = {claim["id"]: claim["name"] for claim in story.claims(GROUP)}
    story.good("PUT", f"{path}/disruption", {"paused": True})
    story.change(GROUP, {"limits": {"usd_hour": 10}, "disruption": {"consolidate_after": "1s", "budgets": []}})
    staying = _pods_of_two_nodes(story)
    for name in (f"web-{number}" for number in range(count)):
        if name not in staying:
            story.kube.call("DELETE", f"{PODS}/{name}")

    def preview() -> Any:
        answer = story.good("GET", f"{path}/disruption/preview")
        reasons = {node["why"] for node in answer["nodes"] if node["pool"] == GROUP}
        return answer if reasons == {"the disruption of the cluster is paused"} else None

    assert story.served.wait("the preview", preview, 60)["decision"] is None
    assert story.pool(GROUP)["nodes"] == before
    story.good("PUT", f"{path}/disruption", {"paused": False})

    def fewer() -> bool:
        # As the schedule does each minute.
        story.served.aws("lambda").invoke(FunctionName="stockyard-dev-disruptor", Payload=b"{}")
        _replace_evicted(story, staying)
        running = [phase for phase, _ in story.phases("web")]
        # Those that leave cost money until they have left.
        return len(story.claims(GROUP)) == 1 and running == ["Running"] * STAYING

    story.served.wait("fewer nodes", fewer, 300)
    after, state = story.pool(GROUP)["nodes"], story.good("GET", f"{path}/disruption")
    assert after["usd_hour"] < before["usd_hour"]
    assert 0 < state["usd_month_saved"] <= 730 * before["usd_hour"], (state, before)
    assert [saving["pool"] for saving in state["savings"]] == [GROUP]
    reasons = story.reasons(f"disruption/{story.cluster['id']}")
    assert {"DisruptionDecided", "Disrupted"} <= set(reasons), reasons
    ids_now = {claim["id"] for claim in story.claims(GROUP)}
    story.consolidated = True
    # The newest of those that have left: the first one was there before the pods.
    story.for_pods = max(claim_id for claim_id in claims if claim_id not in ids_now)
    return {
        "nodes_before": before["available"],
        "usd_hour_before": before["usd_hour"],
        "usd_hour_after": after["usd_hour"],
        "decisions": reasons.count("Disrupted"),
        "given_up": reasons.count("DisruptionAbandoned"),
        "seconds": round(time.monotonic() - began, 1),
    }


def _pods_of_two_nodes(story: Story) -> list[str]:
    """The names of ``STAYING`` pods that run, half of them on one node and half on another."""
    by_node: defaultdict[str, list[str]] = defaultdict(list)
    for item in story.kube.call("GET", PODS)["items"]:
        if item["metadata"]["labels"].get("app") == "web":
            by_node[item["spec"]["nodeName"]].append(item["metadata"]["name"])
    first, second, *_ = sorted(by_node.values(), key=len, reverse=True)
    return [name for name in chain(*zip_longest(first, second)) if name][:STAYING]


def _replace_evicted(story: Story, staying: Sequence[str]) -> None:
    """Replace evicted pods as their controller does: nobody owns those of a story."""
    names = {item["metadata"]["name"] for item in story.kube.call("GET", PODS)["items"]}
    for name in staying:
        if name not in names:
            story.kube.call("POST", PODS, pod(name, {"workload": "general"}, "250m"))
