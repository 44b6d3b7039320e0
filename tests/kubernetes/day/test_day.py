"""A person's day with kubectl on real control planes: each act of the list in docs/real-control-planes.md once.

Three clusters are served at once. What takes a minute or more is begun first, on ``three``, which has three members;
it is looked at when the acts on ``demo`` are over. ``two`` is there, and nothing is done to it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.kubernetes.day.conftest import FAMILY, INSTANCE_SIZE, NONE_LEFT, SMALL, TYPE, Saving, SlowActs
from tests.kubernetes.day.manifests import (
    HOST,
    ZONE,
    among,
    apart,
    budget,
    daemon_set,
    deployment,
    job,
    node_pool,
    priority_class,
    spread,
    stateful_set,
    storage_class,
    volume,
)
from tests.kubernetes.day.people import MINUTE, PROGRAM_SECONDS, Day
from tests.kubernetes.test_served import good, programs_of, succeeded

if TYPE_CHECKING:
    from local.testing.serving import Served

pytestmark = pytest.mark.timeout(600)

LIMITS = {"batch": 20, "data": 20, "few": 1, "held": 20}
"""Pools of the second half of the day, and how many nodes they may have."""
Record = Callable[[str, object], None]


def test_clusters_that_come_at_once_know_nothing_of_each_other(days: dict[str, Day]) -> None:
    assert {name: len(day.members()) for name, day in days.items()} == {"demo": 1, "two": 1, "three": 3}
    assert len({day.kube.address for day in days.values()}) == 3
    (node,) = days["demo"].members()
    assert days["demo"].kubectl("get", "nodes", "-o", "name").split() == [f"node/{node}"]


def test_pods_and_a_daemon_set_bring_three_nodes(slow_acts: SlowActs, demo: Day, record_property: Record) -> None:
    """``slow_acts`` begins before, so that its minutes pass meanwhile."""
    compute = [among(FAMILY, "c5", "c6g"), among(INSTANCE_SIZE, "large", "xlarge")]
    demo.open_pools(node_pool("any"), node_pool("compute", *compute))
    picky = deployment("picky", 1, "100m", "any", nodeSelector={"karpenter.sh/nodepool": "any", TYPE: "m6i.large"})
    large = [deployment("heavy", 1, "2500m", "compute"), deployment("light", 1, "500m", "compute")]
    began = time.monotonic()
    demo.make(deployment("web", 6, "700m", "dyn"), daemon_set("log", "100m"), picky, *large)
    demo.make(deployment("plain", 1, "1500m", "any"))
    demo.run(web=6, picky=1, plain=1, heavy=1, light=1)
    record_property("figure:day_pods_to_nodes", round(time.monotonic() - began, 1))
    assert sorted(map(demo.where("web").count, set(demo.where("web")))) == [2, 2, 2]
    (node,) = demo.where("picky")
    assert demo.nodes()[node]["metadata"]["labels"][TYPE] == "m6i.large"
    are_of_types_with_an_image(demo, "any", "compute")


def test_rules_that_nodes_with_room_keep_bring_none(demo: Day) -> None:
    """Zones count only where nodes are that the pods may have."""
    before, hard = demo.ids("dyn"), {"whenUnsatisfiable": "DoNotSchedule"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [apart("apart")]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": apart("rather")}]}
    rules: dict[str, Any] = {
        "zones": {"topologySpreadConstraints": [spread("zones", ZONE, **hard)]},
        "hosts": {"topologySpreadConstraints": [spread("hosts", HOST, minDomains=3, **hard)]},
        "apart": {"affinity": {"podAntiAffinity": terms}},
        "rather": {"affinity": {"podAntiAffinity": wish}},
        "soft": {"topologySpreadConstraints": [spread("soft", ZONE), spread("soft", HOST)]},
    }
    demo.make(*(deployment(app, 3, "20m", "dyn", **rule) for app, rule in rules.items()))
    demo.run(**dict.fromkeys(rules, 3))
    assert [len(set(demo.where(app))) for app in ("hosts", "apart")] == [3, 3]
    assert demo.ids("dyn") == before
    demo.kubectl("delete", "deployment", *rules)


def test_a_soft_spread_brings_one_node_where_one_has_room_for_all(demo: Day) -> None:
    before = demo.ids("dyn")
    demo.make(
        deployment("even", 4, "450m", "dyn", topologySpreadConstraints=[spread("even", ZONE), spread("even", HOST)])
    )
    demo.run(even=4)
    assert len(demo.ids("dyn") - before) == 1
    demo.kubectl("delete", "deployment", "even")


def test_pods_of_a_node_that_is_drained_by_hand_run_elsewhere(demo: Day, drained: str) -> None:
    assert drained not in demo.where("web")
    assert drained in {claim["node_name"] for claim in demo.claims("dyn")}, "its claim stays"


def test_three_pods_beside_a_cordoned_node_get_exactly_one_node(
    demo: Day, drained: str, record_property: Record
) -> None:
    """The node has room for them, and no other node has room for one."""
    before, began = demo.ids("dyn"), time.monotonic()
    demo.make(deployment("three", 3, "600m", "dyn"))
    demo.run(three=3)
    record_property("figure:day_beside_a_cordoned_node", round(time.monotonic() - began, 1))
    assert len(demo.ids("dyn") - before) == 1
    assert len(set(demo.where("three"))) == 1
    assert demo.condition("PodsHaveRoom")["status"] == "True"


def test_a_tainted_node_is_for_pods_that_tolerate_it(demo: Day, drained: str) -> None:
    before = demo.ids("dyn")
    demo.kubectl("taint", "node", drained, "mine=yes:NoSchedule")
    demo.kubectl("uncordon", drained)
    bears = [{"key": "mine", "operator": "Exists"}]
    demo.make(deployment("more", 1, "600m", "dyn"), deployment("mine", 1, "600m", "dyn", tolerations=bears))
    demo.run(more=1, mine=1)
    assert demo.where("mine") == [drained]
    assert len(demo.ids("dyn") - before) == 1
    assert demo.where("more") != [drained]
    demo.kubectl("annotate", "pod", "-l", "app=mine", "karpenter.sh/do-not-disrupt=true")
    demo.kubectl("cordon", drained)
    demo.kubectl("taint", "node", drained, "mine-")


def test_a_job_brings_nodes_and_they_leave_after_it(demo: Day) -> None:
    """The job can complete on no other nodes. That they leave is seen when others do."""
    demo.open_pools(*(node_pool(name, SMALL, limit=limit) for name, limit in LIMITS.items()))
    demo.make(job("sums", 5, "1", "batch"))
    demo.kubectl("wait", "--for=condition=Complete", "job/sums", f"--timeout={PROGRAM_SECONDS - 5}s")


def test_a_volume_that_is_being_made_keeps_the_room_of_its_pod(
    saving: Saving, demo: Day, record_property: Record
) -> None:
    """The test plays the provisioner, and takes its time. Nodes leave for their price meanwhile."""
    zone, began = "us-east-1b", time.monotonic()
    demo.make(storage_class("late", zone), stateful_set("db", 1, "1500m", "data", "late"))
    demo.served.wait("its node", lambda: len(demo.nominated("db")) == 1, MINUTE)
    demo.kubectl("scale", "statefulset/db", "--replicas=2")
    demo.served.wait("another node", lambda: len(set(demo.nominated("db"))) == 2, MINUTE)
    record_property("figure:day_volumes", round(time.monotonic() - began, 1))
    nodes = demo.nodes()
    zones_by_node = {name: nodes[name]["metadata"]["labels"][ZONE] for name in demo.nominated("db")}
    assert set(zones_by_node.values()) == {zone}
    demo.make(*(volume(f"data-db-{number}", "late", zone) for number in range(2)))
    demo.run(db=2)
    assert demo.where("db") == sorted(zones_by_node), "where they were promised a place"


def test_who_is_more_important_gets_the_last_room_and_the_limit_is_told(saving: Saving, demo: Day) -> None:
    demo.make(
        priority_class("low", -10),
        priority_class("high", 1000),
        deployment("low", 2, "800m", "few", priorityClassName="low"),
    )
    demo.run(low=2)
    demo.make(deployment("high", 1, "800m", "few", priorityClassName="high"))
    demo.run(high=1)
    reason = demo.served.wait("the reason", demo.refusal, MINUTE)
    assert reason.startswith("default/low-")
    assert "few: The pool's limit of nodes is reached" in reason
    assert "dyn: No node of the pool has karpenter.sh/nodepool In few" in reason
    conditions = {each["type"]: each for each in demo.pool("few")["conditions"]}
    assert conditions["WithinLimits"]["status"] == "False"
    assert conditions["Ready"]["message"] == "1 node is available."
    assert sorted(demo.where("low")) == ["", *demo.where("high")]


def test_a_pool_goes_while_pods_wait_for_it(saving: Saving, demo: Day) -> None:
    (node,) = demo.where("high")
    demo.good("DELETE", f"clusters/{demo.cluster['id']}/pools/few?confirm=few")
    path = f"/v1/clusters/{demo.cluster['id']}/pools/few"
    demo.served.wait("its end", lambda: demo.served.call("GET", path).status == 404, MINUTE)
    demo.served.wait("the Node's end", lambda: node not in demo.nodes(), MINUTE)
    demo.served.wait(
        "another reason", lambda: "few: " not in (reason := demo.refusal()) and "default/high-" in reason, MINUTE
    )
    demo.kubectl("delete", "deployment", "low", "high")
    demo.served.wait("room", lambda: not demo.refusal(), MINUTE)


def test_what_is_mirrored_is_not_changed_by_hand(demo: Day) -> None:
    claim = demo.claims("dyn")[0]["name"]
    merge = ("--type=merge", "-p")
    for arguments in (
        ("patch", "nodepool", "dyn", *merge, '{"spec": {"weight": 7}}'),
        ("label", "nodepool", "dyn", "stockyard.dev/mirrored-"),
        ("annotate", "nodeclaim", claim, "mine=1"),
        ("patch", "nodeclaim", claim, "--subresource=status", *merge, '{"status": {"nodeName": "x"}}'),
        ("delete", "nodeclaim", claim, "--wait=false"),
        ("delete", "nodepool", "dyn", "--wait=false"),
    ):
        done = demo.tries(*arguments)
        assert (done.returncode, "change them in Stockyard" in done.stderr) == (1, True), (arguments, done.stderr)
    edited = demo.tries("edit", "nodepool", "dyn", editor="sed -i s/consolidateAfter.*/consolidateAfter:\\ 9s/")
    assert (edited.returncode, "no valid changes were saved" in edited.stderr) == (1, True), edited.stderr
    own = demo.tries("apply", "-f", "-", text=json.dumps(node_pool("own", SMALL)))
    assert (own.returncode, "apply it to Stockyard (stockyard apply -f FILE)" in own.stderr) == (0, True), own.stderr


def test_an_agent_that_is_killed_misses_nothing(saving: Saving, demo: Day, record_property: Record) -> None:
    """Pods are made in the same second; then it is killed while a budget holds its drain."""
    began = time.monotonic()
    os.kill(demo.agent(), signal.SIGKILL)
    demo.make(deployment("held", 1, "1500m", "held"), budget("held", minAvailable=1))
    demo.run(held=1)
    record_property("figure:day_agent_killed", round(time.monotonic() - began, 1))
    (claim,) = demo.served.wait(
        "its node", lambda: [c for c in demo.claims("held") if c["phase"] == "Available"], MINUTE
    )
    demo.good("DELETE", f"node-claims/{claim['id']}")
    (message,) = demo.served.wait("the budget", lambda: demo.messages(claim["id"], "DrainHeld"), MINUTE)
    assert "default/held-" in message
    assert "budget default/held" in message
    os.kill(demo.agent(), signal.SIGKILL)
    demo.kubectl("delete", "pdb", "held")
    demo.served.wait("its end", lambda: demo.claim_is_gone(claim["id"]), 2 * MINUTE)
    demo.run(held=1)
    assert demo.where("held") != [claim["node_name"]]


def test_a_replacement_that_fails_holds_no_other_node(slow_acts: SlowActs, record_property: Record) -> None:
    day = slow_acts.day
    day.saved(
        "the failure", lambda: any(NONE_LEFT in text for text in day.messages(day.decided(), "DisruptionAbandoned"))
    )
    (calm,), (spare,) = day.where("calm"), day.where("spare")
    day.scale(0, "spare")
    began = time.monotonic()
    day.saved("the empty node's end", lambda: len(day.ids("dear")) == 1)
    record_property("figure:day_after_a_failure", round(time.monotonic() - began, 1))
    day.run(calm=1)
    assert (day.where("calm"), spare in day.nodes()) == ([calm], False)


def test_nodes_leave_and_nobody_counts_on_the_cordoned_one(
    saving: Saving, drained: str, demo: Day, record_property: Record
) -> None:
    demo.saved("one node less", lambda: len(demo.ids("dyn")) == len(saving.dyn) - 1)
    demo.run(web=6, three=1, more=1, mine=1)
    record_property("figure:day_one_node_leaves", demo.seconds(demo.decided(), "Disrupted", saving.at))
    assert demo.ids("dyn") < saving.dyn, "none was bought for pods that had lost their place"
    assert drained in {claim["node_name"] for claim in demo.claims("dyn")}
    assert drained not in {*demo.where("web"), *demo.where("three"), *demo.where("more")}


def test_a_replacement_is_of_a_type_that_there_is_an_image_for(saving: Saving, demo: Day) -> None:
    """The node's pool names no architecture, and the cheapest types are of one without an image."""
    demo.saved("a cheaper node", lambda: len(ids := demo.ids("compute")) == 1 and not ids & saving.compute)
    demo.run(light=1)
    are_of_types_with_an_image(demo, "compute")
    assert not any("A replacement" in text for text in demo.messages(demo.decided(), "DisruptionAbandoned"))
    demo.saved("the end of the Job's nodes", lambda: not demo.ids("batch"))


def are_of_types_with_an_image(day: Day, *pools: str) -> None:
    """Whether each claim of these pools names its launched type, with the same architecture as the image."""
    for pool in pools:
        day.served.wait(f"nodes of {pool}", partial(day.are_available, pool), MINUTE)
    nodes = day.nodes()
    for claim in (claim for pool in pools for claim in day.claims(pool)):
        assert claim["placement"]["type"].endswith(f".{day.launched(claim)}"), claim["placement"]
        assert nodes[claim["node_name"]]["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"


def test_a_deleted_node_is_replaced_and_its_machine_ends(slow_acts: SlowActs, record_property: Record) -> None:
    day, ghost = slow_acts.day, str(slow_acts.claims["ghost"]["id"])
    day.run(ghost=1)
    (claim,) = slow_acts.living("ghost")
    assert day.where("ghost") == [claim["node_name"]]
    day.served.wait("the end of its claim", lambda: day.claim_is_gone(ghost), 3 * MINUTE)
    seconds = {
        reason: day.seconds(ghost, reason, slow_acts.at) for reason in ("NodeGone", "DeletionRequested", "Deleted")
    }
    replaced = day.seconds(claim["id"], "Available", slow_acts.at)
    record_property("figure:day_deleted_node", {**seconds, "replaced": replaced})
    assert replaced < 2 * MINUTE
    assert seconds["Deleted"] < 4 * MINUTE


def test_a_node_that_is_not_ready_is_no_room_and_stays(slow_acts: SlowActs, record_property: Record) -> None:
    """The node is repaired when it has not been ready for half an hour."""
    day, silent = slow_acts.day, slow_acts.claims["silent"]

    def runs_elsewhere() -> list[str]:
        return [node for phase, node in day.phases("silent") if phase == "Running" and node != slow_acts.name("silent")]

    (node,) = day.served.wait("a pod elsewhere", runs_elsewhere, 3 * MINUTE)
    (claim,) = slow_acts.living("silent")
    assert claim["node_name"] == node
    record_property("figure:day_not_ready", day.seconds(claim["id"], "Available", slow_acts.at))
    assert day.good("GET", f"node-claims/{silent['id']}")["phase"] == "Available"
    preview = day.good("GET", f"clusters/{day.cluster['id']}/disruption/preview")
    (why,) = (each["why"] for each in preview["nodes"] if each["claim_id"] == silent["id"])
    assert "ready" in why


def test_terminated_machines_are_replaced_the_members_too(slow_acts: SlowActs, record_property: Record) -> None:
    day, lost = slow_acts.day, str(slow_acts.claims["lost"]["id"])
    day.run(lost=1)
    (claim,) = slow_acts.living("lost")
    assert day.where("lost") == [claim["node_name"]]
    day.served.wait(
        "the end of both", lambda: day.claim_is_gone(lost) and day.claim_is_gone(slow_acts.member["id"]), 2 * MINUTE
    )
    assert day.messages(lost, "MachineGone")
    day.served.wait("three members", lambda: len(day.members() - {slow_acts.member["node_name"]}) == 3, 2 * MINUTE)
    seconds = {"node": day.seconds(claim["id"], "Available", slow_acts.at)}
    seconds["member"] = day.seconds(slow_acts.member["id"], "Deleted", slow_acts.at)
    record_property("figure:day_terminated", seconds)


def test_clusters_are_deleted_at_once_whatever_budgets_say(cloud: Served, days: dict[str, Day]) -> None:
    demo = days["demo"]
    demo.make(budget("web", maxUnavailable=0))
    deletions = [good(cloud, "DELETE", f"clusters/{days[name].cluster['id']}") for name in ("demo", "three")]
    for deletion in deletions:
        succeeded(cloud, deletion["id"])
    own = f"{days['two'].kube.address.partition(':')[0]}-"
    cloud.wait("the end of their programs", lambda: all(own in line for line in programs_of(cloud)), MINUTE)
    cloud.wait("the end of their files", lambda: len(list((cloud.home / "planes").iterdir())) == 1, MINUTE)
    cloud.wait("the end of their machines", lambda: len(list((cloud.home / "machines").iterdir())) == 1, MINUTE)
    assert days["two"].kube.call("GET", "/api/v1/nodes")["items"]


def test_ctrl_c_leaves_logs_alone(cloud: Served, days: dict[str, Day]) -> None:
    assert programs_of(cloud), "a cluster is there"
    assert cloud.stop() == 0
    assert programs_of(cloud) == []
    # What was called is recorded for tests alone.
    names = {path.name for path in cloud.home.iterdir() if path.suffix != ".jsonl"}
    assert names == {"lock", "logs", "serve.out"}
