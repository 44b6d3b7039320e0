"""Pools by HTTP on the local cloud: a cluster comes up with its nodes, pods that wait bring more, a limit in money
stops the next, a deleted pool and a deleted cluster leave nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from local.aws.server import ACME_ACCOUNT
from tests.harness.example import example_body

if TYPE_CHECKING:
    from tests.harness.serving import Served

pytestmark = pytest.mark.timeout(1200)

LAB = {"name": "pool-lab", "kind": "simulated"}
KINDS = [{"name": "n", "resources": {"cpu": "4", "memory": "16Gi"}, "usdPerHour": 0.5}]
GROUP = "0123456789abcdef"


def good(served: Served, method: str, path: str, body: Any = None, **options: Any) -> Any:
    answer = served.call(method, f"/v1/{path}", body, **options)
    assert answer.status in (200, 201, 202), answer.text
    return answer.body


def nodes(served: Served, cluster: dict[str, Any], pool: str) -> dict[str, Any]:
    counts: dict[str, Any] = good(served, "GET", f"clusters/{cluster['id']}/pools/{pool}")["nodes"]
    return counts


def condition(served: Served, cluster: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = good(served, "GET", f"clusters/{cluster['id']}")["conditions"]
    return next((dict(each) for each in conditions if each["type"] == kind), {})


@pytest.fixture(scope="module")
def cluster(served: Served, remove: Callable[[str], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The README's cluster with a static pool besides. After its deletion nothing is left of it."""
    good(served, "POST", "node-providers", {**LAB, "spec": {"nodeTypes": KINDS}})
    created = good(served, "POST", "clusters", {**example_body(), "name": "pooled"})
    good(served, "POST", "clusters/pooled/pools", {"name": "base", "quantity": 2, "provider": "pool-lab"})
    assert served.operation(created["operation_id"])["status"] == "succeeded"
    served.wait("its pools", lambda: condition(served, created, "PoolsReady").get("status") == "True", 120)
    yield created
    assert remove(created["id"])["status"] == "succeeded"
    claims = good(served, "GET", "node-claims?page_size=200")["items"]
    assert [claim["name"] for claim in claims if claim["cluster_id"] == created["id"]] == []
    assert "ec2-1-us-east-1" not in [each["name"] for each in good(served, "GET", "node-providers")["items"]]
    marks = [{"Name": "tag:vantage-cluster", "Values": [created["client_id"]]}]
    reservations = served.aws("ec2", ACME_ACCOUNT).describe_instances(Filters=marks)["Reservations"]
    states = {instance["State"]["Name"] for group in reservations for instance in group["Instances"]}
    assert states <= {"terminated", "shutting-down"}
    good(served, "DELETE", "node-providers/pool-lab")


@pytest.fixture(scope="module")
def agent(served: Served, cluster: dict[str, Any]) -> Callable[[int, str], None]:
    """Reports so many pods that wait. The cluster's own agent, which knows of none, reports too, and the last report
    counts: a test repeats its own until it sees what follows from it."""
    secret = good(served, "GET", f"clusters/{cluster['id']}/client-secret")
    token = served.client_token(secret["client_id"], secret["client_secret"])

    def report(count: int, cpu: str) -> None:
        requests = {"cpu": cpu, "memory": "1Gi"}
        spec = {
            "nodeSelector": {"stockyard.dev/pool": "burst"},
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        }
        waiting = {GROUP: {"count": count, "names": ["default/web-1"]}} if count else {}
        moment = time.time()
        report = {
            "sequence": int(moment * 1000),
            "observed_at": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(moment)),
            "agent_version": "2",
            "groups": {GROUP: {"namespace": "default", "labels": {"app": "web"}, "spec": spec}} if count else {},
            "pending": waiting,
        }
        answer = served.call("POST", f"/v1/clusters/{cluster['id']}/pending-pods", report, token=token)
        assert answer.status in (200, 429), answer.text

    return report


def test_a_cluster_comes_up_with_the_nodes_of_its_pools(served: Served, cluster: dict[str, Any]) -> None:
    pools = {pool["name"]: pool for pool in good(served, "GET", f"clusters/{cluster['id']}/pools")["items"]}
    assert {name: pool["nodes"]["available"] for name, pool in pools.items()} == {"base": 2, "workers": 1}
    assert (pools["workers"]["form"], pools["workers"]["provider"]) == ("group", "ec2-1-us-east-1")
    providers = {each["name"]: each["implicit"] for each in good(served, "GET", "node-providers")["items"]}
    assert providers["ec2-1-us-east-1"] is True
    claims = good(served, "GET", f"node-claims?cluster={cluster['id']}")["items"]
    (worker,) = [claim for claim in claims if claim["name"].startswith("workers-")]
    assert worker["node_labels"]["workload"] == "general"
    assert worker["placement"]["type"] == "ec2-1-us-east-1.t3.large"


def test_pods_that_wait_bring_nodes_until_the_money_is_spent(
    served: Served, cluster: dict[str, Any], agent: Callable[[int, str], None]
) -> None:
    good(
        served,
        "POST",
        f"clusters/{cluster['id']}/pools",
        {"name": "burst", "provider": "pool-lab", "limits": {"usd_hour": 1.5}},
    )

    def available() -> bool:
        agent(6, "2")
        return bool(nodes(served, cluster, "burst")["available"] == 3)

    def refusal() -> str:
        agent(8, "2")
        current = condition(served, cluster, "PodsHaveRoom")
        return str(current["message"]) if current.get("status") == "False" else ""

    served.wait("three nodes", available, 60)
    assert nodes(served, cluster, "burst")["usd_hour"] == 1.5
    message = served.wait("the refusal", refusal, 60)
    assert message.startswith("default/web-1 and 1 like it: ")
    assert "burst: The pool's limit of money is reached." in message
    assert nodes(served, cluster, "burst")["claims"] == 3

    def room() -> bool:
        agent(0, "2")
        return bool(condition(served, cluster, "PodsHaveRoom")["status"] == "True")

    served.wait("room", room, 60)


def test_a_deleted_pool_gives_its_nodes_back(served: Served, cluster: dict[str, Any]) -> None:
    path = f"clusters/{cluster['id']}/pools/base"
    plan = good(served, "DELETE", f"{path}?dry_run=true")["plan"]
    assert [item["kind"] for item in plan["deletes"]] == ["node-claim", "node-claim", "pool"]
    good(served, "DELETE", path)
    served.wait("the end of the pool", lambda: served.call("GET", f"/v1/{path}").status == 404, 60)
    events = good(served, "GET", f"events?subject={cluster['id']}/base&page_size=100")["items"]
    reasons = [event["reason"] for event in events]
    assert reasons[0] == "Created"
    assert reasons[-3:] == ["Satisfied", "DeletionRequested", "Deleted"]
