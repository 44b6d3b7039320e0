"""Members of a control plane that takes pods are room like any other node, and no pass makes one of them leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockyard.domain.clusters.control_plane import ROLE
from stockyard.domain.nodes.records import Placement
from stockyard.domain.pools.records import CONTROL_PLANE, cluster_claim
from stockyard.domain.pools.workload_records import NodeFacts
from stockyard.domain.records import Fact, NodeClaim
from stockyard.operations.fleet.disruption import run
from stockyard.operations.fleet.disruption.run import next_decision, view_now
from stockyard.operations.fleet.pools import placements
from stockyard.operations.fleet.pools.pools import claims_of, pools_of
from stockyard.operations.fleet.pools.scale_up import plan_of
from stockyard.operations.fleet.state import PendingGroup, Workload
from stockyard.operations.listing import every
from stockyard.operations.machines.first_node import FIRST_ROOM, first_node, note_first_node
from stockyard.operations.machines.member_plan import PLAN
from stockyard.ports import Create, Put, Replace
from stockyard.scheduling.packing.manifests import read_pod
from stockyard.scheduling.packing.model import Pod
from stockyard.scheduling.packing.plan import Plan
from tests.unit.operations.fleet.pools.conftest import Yard, make_yard

TAINT = {"key": ROLE, "effect": "NoSchedule"}
TOLERATES = {"tolerations": [{"key": ROLE, "operator": "Exists"}]}
NOW = "2026-01-01T00:00:00.000Z"
DECLARED = {"name": "burst", "disruption": {"consolidate_after": "0s", "budgets": []}}


def pod(cpu: str = "1", **spec: Any) -> Pod:
    containers = [{"resources": {"requests": {"cpu": cpu}}}]
    metadata = {"namespace": "default", "labels": {"app": f"needs-{cpu}"}}
    return read_pod({"metadata": metadata, "spec": {"containers": containers, **spec}})


def facts(**fields: Any) -> NodeFacts:
    values: dict[str, Any] = dict.fromkeys(("protected_count", "doubly_guarded"), 0)
    values |= {"ready_since": NOW, "created_at": NOW, "unschedulable": False, "do_not_disrupt": False, "budgets": {}}
    return NodeFacts(**{"ready": "True", **values, "pod_event_at": None, "protected": (), **fields})


def cluster_with(workloads: bool = True) -> Yard:
    """A ready cluster with a dynamic pool, whose first machine has the node ``ip-1`` of 4 cores."""
    yard = make_yard()
    yard.cluster = yard.put(settings={**yard.cluster.settings, "control_plane_workloads": workloads}, instance_id="i-1")
    yard.dynamic_pool(**DECLARED)
    return yard


def observed(**fields: Any) -> dict[str, Any]:
    node = {"name": "ip-1", "provider_id": "aws:///us-east-1a/i-1", "uid": "u", "taints": []}
    labels = {"kubernetes.io/os": "linux", ROLE: ""}
    return {**node, "labels": labels, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, **fields}


def note(yard: Yard, node: dict[str, Any]) -> None:
    services = yard.nodes.services
    known_facts = {fact.id: fact for fact in every(services.store, Fact, f"{yard.cluster.id}/observed")}
    note_first_node(services, yard.current(), [node], known_facts)


def member(yard: Yard, name: str = "cp-2", **fields: Any) -> NodeClaim:
    """A claim of the control plane, a ``sim.large`` of 8 cores."""
    yard.nodes.clock.advance(1)
    services = yard.nodes.services
    claim = NodeClaim(
        id=f"ncl_{name}",
        name=name,
        node_name=name,
        created_at=services.now(),
        updated_at=services.now(),
        cluster_id=yard.cluster.id,
        control_plane=True,
        pool=CONTROL_PLANE,
        phase="Available",
        machine_id=f"i-{name}",
        placement=Placement("p", "sim.large", "on-demand", ("*",), 0.3, ""),
    )
    claim = replace(claim, **fields)
    services.store.commit(Create(claim), Create(cluster_claim(yard.cluster.id, CONTROL_PLANE, claim.id, NOW)))
    return claim


def workload(*waiting: Pod, running: dict[str, Any] | None = None, nodes: Any = ("ip-1", "cp-2")) -> Workload:
    groups = tuple(PendingGroup(each, 1, f"g{n}", (f"default/w-{n}",)) for n, each in enumerate(waiting))
    facts_by_node = nodes if isinstance(nodes, dict) else {name: facts() for name in nodes}
    picture = Workload(groups, running or {}, {}, {}, NOW, 1)
    return replace(picture, nodes=facts_by_node, budgets={}, reschedulable=running or {})


def plan(yard: Yard, picture: Workload) -> Plan:
    services, cluster = yard.nodes.services, yard.current()
    return plan_of(services, cluster, pools_of(services, cluster.id), claims_of(services, cluster.id), picture)


def where(yard: Yard, picture: Workload) -> tuple[list[str], int]:
    """The nodes that take pods, and how many new ones are planned."""
    planned = plan(yard, picture)
    return [placement.node for placement in planned.placements], len(planned.claims)


def test_a_pod_that_fits_on_the_first_machine_launches_none() -> None:
    yard = cluster_with()
    note(yard, observed())
    assert where(yard, workload(pod("2"))) == (["ip-1"], 0)
    # Its static pods and what else runs on it count.
    assert where(yard, workload(pod("2"), running={"ip-1": [(pod("2500m"), 1)]})) == ([], 1)


@pytest.mark.parametrize("node_facts", [facts(ready="False"), facts(unschedulable=True)])
def test_a_machine_that_is_not_ready_or_cordoned_is_no_room(node_facts: NodeFacts) -> None:
    yard = cluster_with()
    note(yard, observed())
    assert where(yard, workload(pod("2"), nodes={"ip-1": node_facts})) == ([], 1)
    assert where(yard, workload(pod("2"), nodes={})) == ([], 1)


def test_pods_that_do_not_tolerate_the_taint_go_nowhere_near_a_control_plane_that_takes_none() -> None:
    yard = cluster_with(workloads=False)
    note(yard, observed(taints=[TAINT]))
    assert yard.nodes.services.store.get(Fact, f"{yard.cluster.id}/{FIRST_ROOM}") is None
    assert first_node(yard.nodes.services, yard.cluster) == "ip-1"
    member(yard, taints=(TAINT,))
    assert where(yard, workload(pod("2"))) == ([], 1)
    assert where(yard, workload(pod("2", **TOLERATES))) == (["cp-2"], 0)


def test_a_taint_that_somebody_gave_the_first_machine_counts() -> None:
    yard = cluster_with()
    note(yard, observed())
    note(yard, observed(taints=[{"key": "mine", "value": "x", "effect": "NoSchedule"}]))
    assert where(yard, workload(pod("2"))) == ([], 1)


def test_quantities_that_nobody_can_read_are_nothing() -> None:
    yard = cluster_with()
    note(yard, observed(allocatable={"cpu": "4", "memory": "lots"}))
    assert where(yard, workload(pod("2"))) == (["ip-1"], 0)
    note(yard, observed(allocatable={"cpu": "-4"}))
    assert where(yard, workload(pod("2"))) == ([], 1)


def test_a_first_machine_with_too_much_to_tell_is_no_room_and_disturbs_no_post() -> None:
    yard = cluster_with()
    note(yard, observed(labels={f"k{n}": "v" * 60 for n in range(2000)}))
    assert where(yard, workload(pod("2"))) == ([], 1)


def test_members_that_are_claims_have_room_and_the_first_counts_once() -> None:
    yard = cluster_with()
    note(yard, observed())
    member(yard, "ip-1", machine_id="i-1")
    member(yard, "cp-2")
    nodes, launched = where(yard, workload(*[pod("3")] * 4))
    assert (sorted(nodes), launched) == (["cp-2", "ip-1"], 0)
    # 8 cores on each of two claims, and not 4 more.
    assert where(yard, workload(*[pod("3500m")] * 5))[1] == 1


LEAVES: dict[str, Callable[[Yard, NodeClaim], None]] = {
    "it is on its way out": lambda yard, claim: _put(yard, claim, deleting=True),
    "it is lost": lambda yard, claim: _put(yard, claim, phase="Failed", reason="MachineGone"),
    "it has not joined": lambda yard, claim: _put(yard, claim, phase="Pending"),
    "it is to be taken out of etcd": lambda yard, claim: _plan(yard, claim, "remove_after"),
    "it is taken out before another joins": lambda yard, claim: _plan(yard, claim, "remove_before"),
    "it is to be replaced": lambda yard, _: _renewed(yard),
}


@pytest.mark.parametrize("happen", LEAVES.values(), ids=LEAVES)
def test_a_member_that_does_not_stay_is_no_room(happen: Callable[[Yard, NodeClaim], None]) -> None:
    yard = cluster_with()
    claim = member(yard)
    assert where(yard, workload(pod("2"))) == (["cp-2"], 0)
    happen(yard, claim)
    assert where(yard, workload(pod("2"))) == ([], 1)


def test_the_first_machine_is_no_room_when_it_is_to_be_replaced() -> None:
    yard = cluster_with()
    note(yard, observed())
    _renewed(yard)
    assert where(yard, workload(pod("2"))) == ([], 1)


def test_what_pods_would_need_is_told_with_the_members_room(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = cluster_with()
    note(yard, observed())
    monkeypatch.setattr(placements, "workload_of", lambda *_: workload())
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "a"}]}}
    answer = placements.plan_placements(yard.nodes.services, yard.current(), [manifest])
    assert [entry["node"] for entry in answer["existing"]] == ["ip-1"]
    assert answer["nodes"] == []


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.sampled_from(["500m", "1", "2", "3500m"]), max_size=6),
    empty=st.booleans(),
    first=st.booleans(),
    workloads=st.booleans(),
)
def test_no_pass_proposes_a_member(sizes: list[str], empty: bool, first: bool, workloads: bool) -> None:
    """Whatever runs where: a member is nobody's candidate, though the pods of others may come to it."""
    yard = cluster_with(workloads)
    taints = [] if workloads else [TAINT]
    note(yard, observed(taints=taints))
    member(yard, taints=tuple(taints))
    member(yard, "w-1", control_plane=False, pool="burst")
    members = {"cp-2", *(["ip-1"] if first else [])}
    pods = [(pod(size), 1) for size in sizes]
    running = {"w-1": [(pod("1"), 1)], **({} if empty else {"cp-2": pods})}
    names = [*members, "w-1"]
    services, cluster = yard.nodes.services, yard.current()
    picture = workload(running=running, nodes=names)
    yard.nodes.clock.advance(3600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "workload_of", lambda *_: picture)
        view, _ = view_now(services, cluster, None, pools_of(services, cluster.id), claims_of(services, cluster.id))
    assert view is not None
    decision = next_decision(services, None, view)
    assert decision is None or {node.name for node in decision.nodes} <= {"w-1"}
    blockers = {node.name: node.blocker for node in view.fleet.nodes}
    shown_members = members if workloads else members - {"ip-1"}
    assert {name for name, why in blockers.items() if why == "it is a member of the control plane"} == shown_members
    assert {claim.pool for claim in view.unready} <= {"burst"}
    if workloads and empty:
        # The member has room for the pod of the dear node.
        assert decision is not None


def _put(yard: Yard, claim: NodeClaim, **fields: Any) -> None:
    yard.nodes.services.store.commit(Replace(replace(claim, version=claim.version + 1, **fields)))


def _plan(yard: Yard, claim: NodeClaim, when: str) -> None:
    removals = {"claim": "ncl_x", "remove_before": [], "remove_after": [], "done": False, when: [claim.node_name]}
    yard.nodes.services.store.commit(Put(Fact(f"{yard.cluster.id}/{PLAN}", json.dumps(removals), NOW)))


def _renewed(yard: Yard) -> None:
    yard.nodes.clock.advance(60)
    yard.put(members_since=yard.nodes.services.now())
