"""Drains by the agent where everybody else is real: who comes back, who is kept where, and when a deadline beats it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from agent.stockyard_agent.loop import Agent
from local.kubernetes.store import stamp
from tests.kubernetes.rigs import RealRig, until
from tests.kubernetes.workloads import MERGE, SECONDS, Workloads, app_of, witnessed

HELD_BACK = {"karpenter.sh/do-not-disrupt": "true"}
ROUND = 5
"""Seconds between two rounds of the agent."""
DAY = 86_400


@dataclass
class Yard:
    """Drains of nodes. ``ends`` are the evictions and deletions that the agent asked for and got: which, of which
    application, with how many seconds of grace, and how many seconds after ``begin``."""

    rig: RealRig
    workloads: Workloads
    agent: Agent
    ends: list[tuple[str, str, int | None, float]] = field(default_factory=list)
    began: float = 0.0

    def __post_init__(self) -> None:
        self.rig.platform.interval = ROUND
        self.rig.around = self._around

    def order(self, *nodes: str, seconds: float | None = None) -> None:
        """Stockyard wants these nodes drained, with a deadline so many seconds from now."""
        self.began = self.rig.clock.monotonic()
        deadline = None if seconds is None else stamp(self.rig.clock.now + timedelta(seconds=seconds))
        for node in nodes:
            self.rig.platform.order(node, "drain", node=node, grace_seconds=None, deadline=deadline)

    def rounds(self, count: int = 1) -> None:
        """Rounds of the agent, with the time between them, in which kubelets, controllers and the scheduler work."""
        for _ in range(count):
            self.rig.clock.later(self.agent.round())
            self.workloads.settle()

    def until_drained(self, most: int = 40) -> None:
        for _ in range(most):
            if not self.rig.platform.commands:
                return
            self.rounds()
        raise AssertionError(f"still open: {self.rig.platform.results}")

    def result(self, node: str) -> dict[str, Any]:
        """The last word on the drain of a node."""
        return self.rig.platform.results_by_id.get(f"cmd_{node}") or self.rig.platform.results[node]

    def _around(self, request: Any, deliver: Any) -> Any:
        path, *_ = request.url.partition("?")
        is_eviction = path.endswith("/eviction")
        if not is_eviction and request.method != "DELETE":
            return deliver(request)
        pod = self.rig.administer("GET", path.removesuffix("/eviction").removeprefix("https://kube.test"))
        response = deliver(request)
        if response.status in (200, 201):
            options = json.loads(request.body)
            grace = (options["deleteOptions"] if is_eviction else options).get("gracePeriodSeconds")
            after = self.rig.clock.monotonic() - self.began
            self.ends.append(("evicted" if is_eviction else "deleted", app_of(pod), grace, after))
        return response


@pytest.fixture
def yard(real_rig: RealRig) -> Iterator[Yard]:
    workloads = Workloads(real_rig)
    yield Yard(real_rig, workloads, real_rig.agent())
    real_rig.around = None
    workloads.clear()


def test_pods_leave_in_order_and_come_back_elsewhere(yard: Yard) -> None:
    """Ordinary pods, then those of DaemonSets, then critical ones, and each only when those before it have ended. No
    DaemonSet puts its pod back onto the node."""
    here = yard.workloads
    here.add_node("a")
    here.deployment("web", 3)
    here.deployment("dns", 1, priorityClassName="system-cluster-critical")
    here.daemon_set("log")
    here.daemon_set("csi", priorityClassName="system-node-critical")
    here.daemon_set("cni", tolerations=[{"operator": "Exists"}])
    here.run(web=3, dns=1, log=1, csi=1, cni=1)
    here.add_node("b")
    here.run(web=3, dns=1, log=2, csi=2, cni=2)
    seen_on_node: list[list[str]] = []
    around = yard.rig.around

    def looking(request: Any, deliver: Any) -> Any:
        if "/eviction" in request.url:
            seen_on_node.append([app for app in here.on("a") if app != "cni"])
        assert around is not None
        return around(request, deliver)

    yard.rig.around = looking
    yard.order("a")
    yard.until_drained()
    assert [app for _, app, _, _ in yard.ends] == ["web", "web", "web", "log", "dns", "csi"]
    assert seen_on_node[3:] == [["csi", "dns", "log"], ["csi", "dns"], ["csi"]]
    here.run(web=3, dns=1, log=1, csi=1, cni=2)
    assert here.on("a") == ["cni"], "it tolerates everything and stays"
    assert (here.where("web"), here.where("dns")) == (["b"] * 3, ["b"])
    assert yard.result("a")["data"] == {"evicted": 6, "deleted": 0, "left": 0, "held": []}


def test_without_a_deadline_budgets_and_annotations_hold_a_node_for_ever(yard: Yard) -> None:
    here = yard.workloads
    here.add_node("a")
    here.deployment("db", 2)
    job = here.deployment("job", 1, annotations=HELD_BACK)
    here.deployment("web", 2)
    here.run(db=2, job=1, web=2)
    budget = here.budget("db", maxUnavailable=0)
    here.add_node("b")
    yard.order("a")
    yard.rounds(3)
    assert here.on("a") == ["db", "db", "job"]
    yard.rig.clock.later(30 * DAY)
    yard.rounds(2)
    assert here.on("a") == ["db", "db", "job"], "nothing ends its wait"
    holders = yard.result("a")["data"]["held"]
    assert [text.partition(": ")[2] for text in holders] == ["budget web/db"] * 2 + ["karpenter.sh/do-not-disrupt"]
    with witnessed(yard.rig) as witness:
        yard.rig.administer("PATCH", budget, {"spec": {"maxUnavailable": 1}}, MERGE)
        here.budgets_settle()
        yard.rounds(4)
        assert here.on("a") == ["job"]
        assert here.where("db") == ["b"] * 2
    assert witness.fewest["db"] == 1
    # Its owner takes the annotation away, by which the Deployment makes the pod anew, elsewhere.
    template = {"metadata": {"annotations": dict.fromkeys(HELD_BACK)}}
    yard.rig.administer("PATCH", job, {"spec": {"template": template}}, MERGE)
    until(lambda: here.where("job") == ["b"], SECONDS)
    yard.until_drained()
    assert here.on("a") == []
    assert all(kind == "evicted" for kind, *_ in yard.ends)


def test_a_deadline_beats_both_and_each_pod_has_its_own_grace_before_it(yard: Yard) -> None:
    here = yard.workloads
    here.add_node("a")
    here.deployment("db", 1, terminationGracePeriodSeconds=20)
    here.deployment("job", 1, annotations=HELD_BACK, terminationGracePeriodSeconds=60)
    here.deployment("slow", 1, annotations=HELD_BACK, terminationGracePeriodSeconds=900)
    here.deployment("web", 1)
    here.run(db=1, job=1, slow=1, web=1)
    here.budget("db", minAvailable="100%")
    here.add_node("b")
    yard.order("a", seconds=100)
    yard.until_drained()
    assert [(kind, app, grace) for kind, app, grace, _ in yard.ends] == [
        ("deleted", "slow", 100),
        ("evicted", "web", None),
        ("deleted", "job", 60),
        ("deleted", "db", 20),
    ]
    moments = {app: after for _, app, _, after in yard.ends}
    assert moments["slow"] == moments["web"] == 0
    assert 40 <= moments["job"] < 40 + 2 * ROUND, "not before its grace has to begin"
    assert 80 <= moments["db"] < 80 + 2 * ROUND
    here.run(db=1, job=1, slow=1, web=1)
    assert {node for pod in here.pods() for node in [pod["spec"]["nodeName"]]} == {"b"}
    assert yard.result("a")["data"] == {"evicted": 1, "deleted": 3, "left": 0, "held": []}


def test_a_budget_holds_at_each_moment_while_several_nodes_are_drained(yard: Yard) -> None:
    here = yard.workloads
    for name in "abc":
        here.add_node(name)
    here.deployment("db", 6)
    here.deployment("web", 6)
    here.run(db=6, web=6)
    here.budget("db", maxUnavailable=1)
    here.budget("web", minAvailable="50%")
    here.add_node("d")
    with witnessed(yard.rig) as witness:
        yard.order("a", "b", "c")
        yard.until_drained(60)
        here.run(db=6, web=6)
    # How soon a real controller brings the next pod decides how many of the three are used at once.
    assert witness.fewest["db"] == 5
    assert 3 <= witness.fewest["web"] < 6
    assert here.where("db") == here.where("web") == ["d"] * 6
    assert [kind for kind, *_ in yard.ends] == ["evicted"] * 12, "no pod comes to a node that is drained next"


def test_a_protection_that_ends_and_a_finalizer_hold_a_node_no_longer_than_they_have_to(yard: Yard) -> None:
    here = yard.workloads
    here.add_node("a")
    here.deployment("hour", 1, annotations={"karpenter.sh/do-not-disrupt": "1h"})
    here.deployment("kept", 1, terminationGracePeriodSeconds=10)
    here.run(hour=1, kept=1)
    (pod,) = (pod for pod in here.pods() if app_of(pod) == "kept")
    path = f"/api/v1/namespaces/web/pods/{pod['metadata']['name']}"
    yard.rig.administer("PATCH", path, {"metadata": {"finalizers": ["example.com/held"]}}, MERGE)
    here.add_node("b")
    yard.order("a")
    yard.rounds(3)
    assert here.on("a") == ["hour", "kept"]
    assert here.where("kept") == ["b"], "its controller has made another one"
    yard.rig.clock.later(3600)
    yard.until_drained()
    assert here.where("hour") == ["b"]
    assert here.on("a") == ["kept"], "nobody waits for it longer than a minute after its grace"
    assert "1 that do not end are left behind" in yard.result("a")["message"]
    yard.rig.administer("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
