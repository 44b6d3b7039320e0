"""The agent's contract suite: its commands do the same on the simulated API and on a real control plane."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest

from agent import manifest
from agent.roles import NAME, NAMESPACE
from agent.stockyard_agent.cluster.nodes import NODES, Nodes
from agent.stockyard_agent.commands.drain import LAST_GRACE
from agent.stockyard_agent.kubernetes import Kubernetes
from local.kubernetes.api import MERGE
from local.kubernetes.store import stamp
from tests.kubernetes.rigs import ContractRig
from tests.unit.agent.rig import API, CLUSTER, KUBE, TOKEN, TOKEN_URL

CRITICAL = "system-cluster-critical"
GPU = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
JOINS = {"key": "stockyard.dev/unregistered", "effect": "NoExecute"}
CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = "/api/v1/namespaces/kube-system/secrets"


def carry_out(rig: ContractRig, kind: str, **more: Any) -> dict[str, Any]:
    """The result of a command that ends."""
    rig.platform.order(kind, kind, **more)
    rig.until_ended(rig.agent())
    return rig.platform.results_by_id[f"cmd_{kind}"]


def order_drain(rig: ContractRig, *, seconds: float | None = None, **more: Any) -> None:
    deadline = None if seconds is None else stamp(rig.clock.now + timedelta(seconds=seconds))
    rig.platform.order("d", "drain", node="a", **{"grace_seconds": None, "deadline": deadline, **more})


def drained(rig: ContractRig) -> dict[str, Any]:
    return rig.platform.results_by_id.get("cmd_d") or rig.platform.results["d"]


# --- nodes ---------------------------------------------------------------------------------------------------------


def test_cordon_and_uncordon_are_idempotent(rig: ContractRig) -> None:
    rig.add_node("a")
    for _ in range(2):
        assert carry_out(rig, "cordon", node="a")["status"] == "done"
        assert rig.node("a")["spec"]["unschedulable"] is True
    for _ in range(2):
        assert carry_out(rig, "uncordon", node="a")["status"] == "done"
        assert "unschedulable" not in rig.node("a")["spec"]


@pytest.mark.parametrize("kind", ["cordon", "taint", "label"])
def test_a_command_for_a_missing_node_fails_with_its_name(rig: ContractRig, kind: str) -> None:
    result = carry_out(rig, kind, node="a", taints=[JOINS], labels={"x": "y"})
    assert result["status"] == "failed"
    assert 'nodes "a" not found' in result["message"]


def test_taints_are_set_by_key_and_effect_and_removed_by_key(rig: ContractRig) -> None:
    prefers = {"key": "gpu", "effect": "PreferNoSchedule"}
    rig.add_node("a", taints=[GPU, prefers, JOINS])
    team = {"key": "team", "value": "x", "effect": "NoSchedule"}
    for _ in range(2):
        assert carry_out(rig, "taint", node="a", taints=[GPU, team], remove=[JOINS["key"]])["status"] == "done"
        assert rig.taints("a") == [GPU, prefers, team]


def test_labels_are_set_and_removed(rig: ContractRig) -> None:
    rig.add_node("a")
    labels = {"stockyard.dev/claim": "ncl_1", "kubernetes.io/os": None}
    assert carry_out(rig, "label", node="a", labels=labels)["status"] == "done"
    after = rig.node("a")["metadata"]["labels"]
    assert after["stockyard.dev/claim"] == "ncl_1"
    assert "kubernetes.io/os" not in after


def test_what_changes_of_nodes_is_heard(rig: ContractRig) -> None:
    rig.add_node("a")
    nodes = Nodes(Kubernetes(KUBE, rig.exchange, lambda: rig.account), rig.clock.monotonic, rig.logs.append)
    nodes.follow()
    assert nodes.facts["a"]["uid"] == rig.node("a")["metadata"]["uid"]
    assert nodes.facts["a"]["labels"].items() >= {"kubernetes.io/os": "linux"}.items()
    news = nodes.news
    rig.administer("PATCH", f"{NODES}/a", {"spec": {"unschedulable": True}}, MERGE)
    rig.settled()
    nodes.follow()
    assert nodes.facts["a"]["unschedulable"] is True
    assert nodes.news > news
    rig.administer("DELETE", f"{NODES}/a")
    rig.settled()
    nodes.follow()
    assert "a" not in nodes.facts
    assert rig.logs == []


def test_deletion_of_a_node_is_idempotent_and_spares_another_of_its_name(rig: ContractRig) -> None:
    uid = rig.add_node("a")["metadata"]["uid"]
    assert carry_out(rig, "delete_node", node="a", uid=uid)["message"] == "The node a is deleted."
    assert carry_out(rig, "delete_node", node="a", uid=uid)["message"] == "There is no node a."
    rig.add_node("a")
    result = carry_out(rig, "delete_node", node="a", uid=uid)
    assert (result["status"], result["message"]) == ("done", "The node a is another machine's; it stays.")


def test_deletion_of_a_node_runs_until_its_finalizers_are_gone(rig: ContractRig) -> None:
    rig.add_node("a")
    path, keepers = "/api/v1/nodes/a", ["example.test/volumes"]
    rig.administer("PATCH", path, {"metadata": {"finalizers": keepers}}, MERGE)
    rig.platform.order("d", "delete_node", node="a", uid=rig.node("a")["metadata"]["uid"])
    agent = rig.agent()
    rig.rounds(agent, 2)
    assert rig.platform.results["d"]["status"] == "running"
    assert "example.test/volumes" in rig.platform.results["d"]["message"]
    rig.administer("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    if rig.exists(path):  # the simulation does not remove an object with its last finalizer
        rig.administer("DELETE", path)
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_d"]["status"] == "done"


# --- drain ---------------------------------------------------------------------------------------------------------


def test_a_drain_evicts_ordinary_then_critical_pods_and_leaves_others(rig: ContractRig) -> None:
    rig.add_node("a")
    rig.put("dns", "a", "kube-system", priority=CRITICAL)
    for name in ("web-1", "web-2"):
        rig.put(name, "a")
    rig.put("bare", "a", owner="")
    rig.put("cni", "a", owner="DaemonSet", everywhere=True)
    rig.put("job-1", "a", phase="Succeeded")
    rig.put("elsewhere", "b")
    evicted: list[str] = []

    def around(request: Any, deliver: Any) -> Any:
        response = deliver(request)
        if request.url.endswith("/eviction?") or request.url.endswith("/eviction"):
            assert response.status == 201, response.body
            evicted.append(request.url.split("/")[-2])
        return response

    rig.around = around
    order_drain(rig)
    rig.until_ended(rig.agent())
    assert drained(rig)["data"] == {"evicted": 4, "deleted": 0, "left": 0, "held": []}
    assert evicted == ["bare", "web-1", "web-2", "dns"]
    assert rig.pods("a") == ["cni", "job-1"]
    assert rig.pods("b") == ["elsewhere"]
    assert rig.node("a")["spec"]["unschedulable"] is True


def test_a_drain_waits_for_a_disruption_budget(rig: ContractRig) -> None:
    rig.add_node("a")
    for name in ("db-1", "db-2"):
        rig.put(name, "a", labels={"app": "db"})
    rig.put("web", "a")
    budget = rig.budget("db", {"app": "db"}, 2)
    order_drain(rig)
    agent = rig.agent()
    rig.rounds(agent, 3)
    assert rig.pods("a") == ["db-1", "db-2"], "what the budget does not cover has left"
    assert drained(rig)["status"] == "running"
    assert "2 held back" in drained(rig)["message"]
    assert "web/db-1: The disruption budget db needs 2 healthy pods and has 2 currently" in drained(rig)["message"]
    rig.administer("PATCH", budget, {"spec": {"minAvailable": 1}}, MERGE)
    rig.settled()
    rig.rounds(agent, 1)
    assert rig.pods("a") == ["db-2"], "one at a time, as the budget says"
    rig.put("db-3", "b", labels={"app": "db"})
    rig.settled()
    rig.until_ended(agent)
    assert drained(rig)["data"] == {"evicted": 3, "deleted": 0, "left": 0, "held": []}


def test_a_drain_waits_when_two_budgets_cover_a_pod(rig: ContractRig) -> None:
    rig.add_node("a")
    rig.put("db", "a", labels={"app": "db"})
    budgets = [rig.budget(name, {"app": "db"}, 0) for name in ("one", "two")]
    order_drain(rig)
    agent = rig.agent()
    rig.rounds(agent, 2)
    for _ in range(3):
        if "the object has been modified" in drained(rig)["message"]:  # by a kubelet's heartbeat: it is tried again
            rig.rounds(agent, 1)
    assert rig.pods("a") == ["db"]
    assert "more than one PodDisruptionBudget" in drained(rig)["message"]
    rig.administer("DELETE", budgets[1])
    rig.until_ended(agent)
    assert drained(rig)["status"] == "done"


def test_a_drain_past_its_deadline_deletes_despite_budgets(rig: ContractRig) -> None:
    rig.add_node("a")
    rig.put("db", "a", labels={"app": "db"})
    rig.put("cni", "a", owner="DaemonSet", everywhere=True)
    rig.budget("db", {"app": "db"}, 1)
    order_drain(rig, seconds=40, grace_seconds=5)
    agent = rig.agent()
    rig.rounds(agent, 1)
    assert rig.pods("a") == ["cni", "db"]
    rig.clock.later(40)
    rig.until_ended(agent)
    assert rig.pods("a") == ["cni"]
    assert drained(rig)["data"] == {"evicted": 0, "deleted": 1, "left": 0, "held": []}


def test_a_later_deadline_shortens_a_long_grace(rig: ContractRig) -> None:
    rig.add_node("a")
    path = rig.put("web", "a", grace=300)
    order_drain(rig)
    agent = rig.agent()
    rig.rounds(agent, 1, kubelets=False)
    assert rig.administer("GET", path)["metadata"]["deletionGracePeriodSeconds"] == 300
    rig.platform.commands["cmd_d"]["deadline"] = stamp(rig.clock.now)
    rig.rounds(agent, 1, kubelets=False)
    assert rig.administer("GET", path)["metadata"]["deletionGracePeriodSeconds"] == LAST_GRACE
    rig.until_ended(agent)
    assert drained(rig)["data"] == {"evicted": 1, "deleted": 0, "left": 0, "held": []}


def test_a_drain_takes_daemons_behind_pods_and_critical_ones_last(rig: ContractRig) -> None:
    """With the taint that keeps DaemonSets from making their pods anew."""
    rig.add_node("a")
    rig.put("log", "a", owner="DaemonSet")
    rig.put("csi", "a", "kube-system", owner="DaemonSet", priority="system-node-critical")
    rig.put("dns", "a", "kube-system", priority=CRITICAL)
    rig.put("web", "a")
    order_drain(rig)
    agent, stays = rig.agent(), []
    while rig.platform.commands:
        rig.rounds(agent, 1)
        stays.append(rig.pods("a"))
    assert rig.taints("a") == [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
    assert stays[:4] == [["csi", "dns", "log"], ["csi", "dns"], ["csi"], []]


def test_a_drain_waits_for_what_is_not_to_be_disrupted_until_the_grace_has_to_begin(rig: ContractRig) -> None:
    rig.add_node("a")
    rig.put("job", "a", annotations={"karpenter.sh/do-not-disrupt": "true"}, grace=60)
    rig.put("db", "a", labels={"app": "db"}, grace=20)
    rig.budget("db", {"app": "db"}, 1)
    order_drain(rig)
    agent = rig.agent()
    rig.rounds(agent, 2)
    rig.clock.later(86_400)
    rig.rounds(agent, 1)
    assert rig.pods("a") == ["db", "job"], "without a deadline it waits for ever"
    assert drained(rig)["data"]["held"] == ["web/db: budget web/db", "web/job: karpenter.sh/do-not-disrupt"]
    rig.platform.commands["cmd_d"]["deadline"] = stamp(rig.clock.now + timedelta(seconds=100))
    rig.rounds(agent, 1)
    assert rig.pods("a") == ["db", "job"]
    rig.clock.later(40)
    rig.rounds(agent, 1)
    assert rig.pods("a") == ["db"]
    rig.clock.later(40)
    rig.until_ended(agent)
    assert rig.pods("a") == []
    assert drained(rig)["data"] == {"evicted": 0, "deleted": 2, "left": 0, "held": []}


def test_a_drain_names_the_finalizers_that_keep_a_pod_and_counts_it_once(rig: ContractRig) -> None:
    rig.add_node("a")
    path = rig.put("web", "a", grace=1)
    rig.administer("PATCH", path, {"metadata": {"finalizers": ["example.com/held"]}}, MERGE)
    order_drain(rig, seconds=0)
    agent = rig.agent()
    rig.rounds(agent, 4)
    assert drained(rig)["status"] == "running"
    assert "web/web: kept by its finalizers example.com/held" in drained(rig)["message"]
    holders = ["web/web: its finalizers example.com/held"]
    assert drained(rig)["data"] == {"evicted": 0, "deleted": 1, "left": 1, "held": holders}
    rig.administer("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    rig.until_ended(agent)
    assert drained(rig)["data"] == {"evicted": 0, "deleted": 1, "left": 0, "held": []}


def test_a_drain_leaves_a_node_with_another_uid_alone(rig: ContractRig) -> None:
    rig.add_node("a")
    rig.put("web", "a")
    order_drain(rig, uid="uid-of-another")
    rig.until_ended(rig.agent())
    assert rig.pods("a") == ["web"]
    assert "unschedulable" not in rig.node("a")["spec"]


# --- join tokens -----------------------------------------------------------------------------------------------------


def secret_of(rig: ContractRig) -> dict[str, Any]:
    return rig.administer("GET", f"{SECRETS}/bootstrap-token-abcdef")


def test_a_join_token_is_made_once_and_replaced_by_another_of_its_id(rig: ContractRig) -> None:
    rig.order_token()
    agent = rig.agent()
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_t"]["data"]["token_id"] == "abcdef"
    secret = secret_of(rig)
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    data = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    assert (data["token-id"], data["token-secret"]) == tuple(TOKEN.split("."))
    expires = rig.platform.results_by_id["cmd_t"]["data"]["expires_at"]
    rig.platform.order("again", "bootstrap_token", token=TOKEN, expires_at=expires, claim="ncl_1", node="worker-1")
    rig.until_ended(agent)
    assert rig.platform.results_by_id["cmd_again"]["status"] == "done"
    assert secret_of(rig)["metadata"]["resourceVersion"] == secret["metadata"]["resourceVersion"]
    rig.order_token("new", token="abcdef.ffffffffffffffff")
    rig.until_ended(agent)
    assert base64.b64decode(secret_of(rig)["data"]["token-secret"]) == b"f" * 16
    for name in ("one", "two"):
        rig.platform.order(name, "remove_token", token_id="abcdef")
        rig.until_ended(agent)
        assert rig.platform.results_by_id[f"cmd_{name}"]["status"] == "done"
        assert not rig.exists(f"{SECRETS}/bootstrap-token-abcdef")


def test_a_secret_of_another_type_is_not_replaced(rig: ContractRig) -> None:
    meta = {"name": "bootstrap-token-abcdef"}
    rig.administer("POST", SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque"})
    rig.order_token()
    rig.until_ended(rig.agent())
    assert rig.platform.results_by_id["cmd_t"]["status"] == "failed"
    assert "422" in rig.platform.results_by_id["cmd_t"]["message"]
    assert "data" not in secret_of(rig)


# --- manifests -------------------------------------------------------------------------------------------------------


def config(**data: Any) -> dict[str, Any]:
    meta = {"name": "site", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def test_apply_is_idempotent_and_takes_away_what_is_no_longer_sent(rig: ContractRig) -> None:
    assert carry_out(rig, "apply", manifests=[config(a="1")])["data"] == {"applied": 1}
    first = rig.administer("GET", f"{CONFIGMAPS}/site")["metadata"]
    assert [entry["manager"] for entry in first["managedFields"]] == ["stockyard-agent"]
    carry_out(rig, "apply", manifests=[config(a="1")])
    assert rig.administer("GET", f"{CONFIGMAPS}/site")["metadata"]["resourceVersion"] == first["resourceVersion"]
    carry_out(rig, "apply", manifests=[config(c="3")])
    assert rig.administer("GET", f"{CONFIGMAPS}/site")["data"] == {"c": "3"}


def test_the_agent_upgrades_itself_but_not_its_roles(rig: ContractRig) -> None:
    settings = manifest.Settings(API, CLUSTER, TOKEN_URL, "python:3.14-slim")
    assert carry_out(rig, "apply", manifests=manifest.upgrade(settings))["status"] == "done"
    deployed = rig.administer("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}")
    assert deployed["spec"]["template"]["spec"]["containers"][0]["image"] == "python:3.14-slim"
    for document in manifest.documents(settings):
        if document not in manifest.upgrade(settings):
            refused = carry_out(rig, "apply", manifests=[document])
            assert refused["status"] == "failed", document["kind"]
            assert "is forbidden" in refused["message"]


@pytest.mark.parametrize("changes", [{"data1": {"a": "1"}}, {"data": {"a": 1}}], ids=["field", "type"])
def test_a_manifest_that_the_schema_refuses_fails_for_good(rig: ContractRig, changes: dict[str, Any]) -> None:
    result = carry_out(rig, "apply", manifests=[{**config(), **changes}])
    assert result["status"] == "failed"
    assert "failed to create typed patch object" in result["message"], json.dumps(result)
