"""A month's budget on the local cloud that is reached in the middle of a scale-up, of a replacement and of an upgrade:
nothing that runs ends, and the reason is on every claim that waits. What waits goes on when the budget is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.stories.pools import MACHINES

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(900)

TYPE = {"name": "box", "resources": {"cpu": "2", "memory": "4Gi"}, "usdPerHour": 1.0}
PROVIDER = {"name": "budgeted", "kind": "simulated", "spec": {"nodeTypes": [TYPE]}}
REACHED = "BudgetReached"


class Pool:
    """The static pool of a cluster, by HTTP."""

    def __init__(self, served: Served, cluster: dict[str, Any]) -> None:
        self.served, self.cluster = served, cluster
        self.path = f"/v1/clusters/{cluster['id']}/pools/web"

    def patch(self, body: dict[str, Any], query: str = "") -> Any:
        return self.served.change("PATCH", self.path + query, body)

    def budget(self, usd: float | None) -> None:
        answer = self.patch({"limits": {"usd_month": None if usd is None else f"{usd:.4f}"}})
        assert answer.status == 200, answer.text

    def forecast(self) -> tuple[float, float]:
        """Forecast of the pool's month, and how much one node more would add."""
        self.budget(10**7)
        costs = self.served.call("GET", f"/v1/costs?cluster={self.cluster['id']}").body
        (budget,) = [each for each in costs["budgets"] if each["scope"] == "pool"]
        hours = (budget["forecast"] - budget["spent"]) / len(self.nodes())
        return budget["forecast"], hours

    def claims(self) -> list[dict[str, Any]]:
        path = f"/v1/node-claims?cluster={self.cluster['id']}&label=stockyard.dev/pool%3Dweb"
        return [claim for claim in self.served.call("GET", path).body["items"] if not claim["deleting"]]

    def nodes(self) -> set[str]:
        return {claim["id"] for claim in self.claims() if claim["phase"] == "Available"}

    def waiting(self) -> list[dict[str, Any]]:
        return [claim for claim in self.claims() if claim["phase"] == "Pending" and claim["reason"] == REACHED]

    def reached(self, count: int) -> list[dict[str, Any]]:
        """So many claims that wait, once there are; each says which budget is why."""
        waiting = self.wait("claims that wait", lambda: claims if len(claims := self.waiting()) == count else None)
        assert all("pool web of cluster budgeted" in claim["message"] for claim in waiting)
        return list(waiting)

    def lose(self) -> str:
        """The claim of a node whose machine its owner ends; a sweep finds that out."""
        lost = min((claim for claim in self.claims() if claim["phase"] == "Available"), key=lambda claim: claim["id"])
        key = {"pk": {"S": MACHINES}, "sk": {"S": lost["machine_id"]}}
        self.served.aws("dynamodb").delete_item(TableName="stockyard-dev", Key=key)
        self.invoke("reaper")
        return str(lost["id"])

    def invoke(self, function: str) -> None:
        """Run a scheduled function now."""
        event = {"FunctionName": f"stockyard-dev-{function}", "Payload": b"{}", "InvocationType": "Event"}
        self.served.aws("lambda").invoke(**event)

    def wait(self, subject: str, look: Callable[[], Any]) -> Any:
        return self.served.wait(subject, look, 300)


@pytest.fixture(scope="module")
def pool(
    served: Served, body: Callable[..., dict[str, Any]], remove: Callable[[str], dict[str, Any]]
) -> Iterator[Pool]:
    provider = served.call("POST", "/v1/node-providers", PROVIDER)
    assert provider.status == 201, provider.text
    cluster = served.call("POST", "/v1/clusters", body(name="budgeted")).body
    new_pool = {"name": "web", "quantity": 2, "provider": "budgeted"}
    assert served.call("POST", f"/v1/clusters/{cluster['id']}/pools", new_pool).status == 201
    assert served.operation(cluster["operation_id"])["status"] == "succeeded"
    pool = Pool(served, cluster)
    pool.wait("two nodes", lambda: len(pool.nodes()) == 2)
    yield pool
    assert remove(cluster["id"])["status"] == "succeeded"
    # Claims of other tests that name no provider would get its nodes.
    assert served.call("DELETE", "/v1/node-providers/budgeted").status == 202


def test_scale_up_stops_in_the_middle_and_goes_on(pool: Pool) -> None:
    forecast, adds = pool.forecast()
    pool.budget(forecast + 1.5 * adds)
    plan = pool.patch({"quantity": 5}, "?dry_run=true")
    assert "pool web of cluster budgeted has no room for this" in plan.body["plan"]["warnings"][0]["detail"]
    before = pool.nodes()
    assert pool.patch({"quantity": 5}).status == 200
    waiting = pool.reached(2)
    pool.wait("the third node", lambda: len(pool.nodes()) == 3)
    assert before <= pool.nodes()
    explanation = pool.served.call("GET", f"/v1/node-claims/{waiting[0]['id']}/explanation").body
    assert "budget" in explanation["message"]
    events = pool.served.call("GET", f"/v1/events?subject={pool.cluster['id']}/web").body["items"]
    assert [event["reason"] for event in events].count(REACHED) == 1
    pool.budget(None)
    pool.wait("five nodes", lambda: len(pool.nodes()) == 5)


def test_replacement_of_a_lost_node_waits_and_the_others_stay(pool: Pool) -> None:
    forecast, adds = pool.forecast()
    # Where its own room is given back, the others alone are above the budget.
    pool.budget(forecast - 1.5 * adds)
    before, lost = pool.nodes(), pool.lose()
    pool.reached(1)
    assert pool.nodes() == before - {lost}
    pool.budget(None)
    pool.wait("five nodes", lambda: len(pool.nodes()) == 5)


def test_upgrade_stops_in_the_middle_and_goes_on(pool: Pool, soaking: bool) -> None:
    if not soaking:
        pytest.skip("its nodes are looked at once a minute: the soak tells it, and a unit test in virtual time")
    forecast, adds = pool.forecast()
    before = pool.nodes()
    assert pool.patch({"labels": {"tier": "new"}}).status == 200
    pool.wait("the first new node", lambda: pool.nodes() - before)
    pool.budget(forecast - 0.5 * adds)
    pool.reached(1)
    standing = pool.nodes()
    assert len(standing) == 5
    assert before & standing != before
    pool.budget(None)
    pool.wait("the next new node", lambda: pool.nodes() - standing)
