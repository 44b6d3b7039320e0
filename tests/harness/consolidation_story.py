"""How the nodes of a story become fewer when its pods do, and no pod that stays is without a node."""

from __future__ import annotations

import time
from typing import Any

from tests.harness.pool_story import GROUP, PODS, Story, pod

STAYING = 4
"""Pods that are left; one node has room for them."""


def nodes_become_fewer(story: Story, count: int) -> dict[str, Any]:
    """All but ``STAYING`` of so many pods end. The nodes that are not needed any more leave. Returns figures."""
    # Before the agent has told that pods are gone, they may still bring nodes.
    story.served.wait("room", lambda: story.condition("PodsHaveRoom")["status"] == "True", 60)
    began, path = time.monotonic(), f"clusters/{story.cluster['id']}"
    before = story.pool(GROUP)["nodes"]
    claims = {claim["id"]: claim["name"] for claim in story.claims(GROUP)}
    story.good("PUT", f"{path}/disruption", {"paused": True})
    story.change(GROUP, {"limits": {"usd_hour": 10}, "disruption": {"consolidate_after": "1s", "budgets": []}})
    for number in range(STAYING, count):
        story.kube.call("DELETE", f"{PODS}/web-{number}")

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
        _replace_evicted(story)
        running = [phase for phase, _ in story.phases("web")]
        # Those that leave cost money until they have left.
        return len(story.claims(GROUP)) == 1 and running == ["Running"] * STAYING

    story.served.wait("fewer nodes", fewer, 300)
    after, state = story.pool(GROUP)["nodes"], story.good("GET", f"{path}/disruption")
    assert after["usd_hour"] < before["usd_hour"]
    assert 0 < state["usd_month_saved"] <= 730 * before["usd_hour"]
    assert [saving["pool"] for saving in state["savings"]] == [GROUP]
    reasons = story.reasons(f"disruption/{story.cluster['id']}")
    assert {"DisruptionDecided", "Disrupted"} <= set(reasons), reasons
    ids_now = {claim["id"] for claim in story.claims(GROUP)}
    story.consolidated = True
    story.for_pods = next(claim_id for claim_id in claims if claim_id not in ids_now)
    return {
        "nodes_before": before["available"],
        "usd_hour_before": before["usd_hour"],
        "usd_hour_after": after["usd_hour"],
        "decisions": reasons.count("Disrupted"),
        "given_up": reasons.count("DisruptionAbandoned"),
        "seconds": round(time.monotonic() - began, 1),
    }


def _replace_evicted(story: Story) -> None:
    """What the controller of the pods does: nobody owns those of a story."""
    items = story.kube.call("GET", PODS)["items"]
    names = {item["metadata"]["name"] for item in items}
    for number in range(STAYING):
        if f"web-{number}" not in names:
            story.kube.call("POST", PODS, pod(f"web-{number}", {"workload": "general"}, "250m"))
