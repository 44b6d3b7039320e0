"""Use of nodes: what pods ask for of what each node has, by node and by pool, as the agent has told."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.models.pools.usage import ClusterUsageView
from stockyard.operations.fleet.pools.pools import claims_of
from stockyard.operations.fleet.state import Workload, usage_view
from tests.unit.operations.fleet.pools.conftest import make_yard
from tests.unit.operations.fleet.state.test_members import facts, pod

HAS = {"cpu": "4", "memory": "8Gi", "pods": "20"}


def test_requests_of_pods_are_a_part_of_what_a_node_has() -> None:
    yard = make_yard()
    yard.pool("workers", quantity=2)
    yard.settle()
    claims = claims_of(yard.nodes.services, yard.cluster.id)
    first, second = (claim.node_name for claim in sorted(claims, key=lambda claim: claim.node_name))
    report = facts(allocatable=HAS)
    workload = Workload(
        (),
        running={first: [(pod("500m"), 3), (pod("1"), 1)]},
        daemons_running={},
        daemons={},
        sequence=1,
        nodes={first: report, second: report},
        nominated={second: [(pod("1"), 1)]},
        observed_at="2026-01-01T00:00:00.000Z",
    )
    answer = usage_view(yard.cluster.id, claims, workload)
    ClusterUsageView.model_validate(answer)
    busy, calm = answer["nodes"]
    assert (busy["name"], busy["pool"]) == (first, "workers")
    assert busy["requested"] == {"cpu": "2500m", "memory": "0", "pods": "4"}
    assert busy["used"] == {"cpu": 0.625, "memory": 0.0, "pods": 0.2}
    assert calm["used"]["cpu"] == 0.25, "a pod that was sent there counts"
    (pool,) = answer["pools"]
    assert (pool["nodes"], pool["allocatable"]["cpu"], pool["used"]["cpu"]) == (2, "8", 0.4375)
    later = usage_view(yard.cluster.id, claims, replace(workload, nodes={first: report}))
    assert [node["name"] for node in later["nodes"]] == [first], "what is not reported has no use"
    assert usage_view(yard.cluster.id, claims, None) == {
        "cluster_id": yard.cluster.id,
        "observed_at": None,
        "nodes": [],
        "pools": [],
    }
