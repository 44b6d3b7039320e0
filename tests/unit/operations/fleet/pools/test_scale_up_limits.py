"""Limits and quotas end the making of nodes, and pods that wait are told why."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.records import Quota
from stockyard.operations.fleet.pools import pools
from stockyard.operations.fleet.state import Workload
from stockyard.operations.node_claims.delete import delete_claim
from stockyard.operations.node_providers.catalog import load, own_scope
from stockyard.ports import Put, Replace
from tests.unit.operations.fleet.pools.conftest import Yard
from tests.unit.operations.fleet.pools.reports import living, pod, tell


def test_a_limit_of_nodes_money_or_cpu_stops_the_next_node_and_is_named(yard: Yard, report: Workload) -> None:
    for name, limits in (("nodes", {"nodes": 2}), ("money", {"usd_hour": 0.25}), ("cpu", {"cpu": 4})):
        selector = {"pool-kind": name}
        small = [{"key": "vcluster.com/node-type", "values": ["sim.small"]}]
        yard.dynamic_pool(name, limits=limits, labels=selector, requirements=small)
        tell(report, (pod("2", "1Gi", nodeSelector=selector), 5))
        yard.settle()
        assert len(living(yard, name)) == 2, name
        status, reason, message = yard.condition(yard.current(), "PodsHaveRoom")
        assert (status, reason) == ("False", "NoPoolFits")
        assert message.startswith("default/web-0 and 2 like it: ")
        assert f"{name}: The pool's limit of {name} is reached." in message


def test_no_more_claims_are_made_for_a_limited_type_than_it_has_slots(yard: Yard, report: Workload) -> None:
    """Claims that wait for a place count as room, so their pods would wait with them."""
    kind = {"name": "rack", "resources": {"cpu": "8", "memory": "32Gi"}, "usdPerHour": 0.01, "maxCapacity": 1}
    yard.nodes.provider("own", kind)
    yard.dynamic_pool("racks", provider="own", weight=2)
    yard.dynamic_pool("burst", provider="sim")
    tell(report, (pod("7", "1Gi"), 3))
    yard.settle()
    claims = [*living(yard, "racks"), *living(yard)]
    assert [(claim.type_ref, claim.phase) for claim in claims] == [
        ("own.rack", "Available"), ("sim.large", "Available"), ("sim.large", "Available")
    ]  # fmt: skip


def test_reasons_of_many_pools_are_one_sentence(yard: Yard, report: Workload) -> None:
    for name in ("first", "other"):
        yard.dynamic_pool(name, requirements=[{"key": "vcluster.com/node-type", "values": ["sim.small"]}])
    tell(report, (pod("7", "1Gi"), 1))
    yard.look()
    message = yard.condition(yard.current(), "PodsHaveRoom")[2]
    assert "; first: " in message
    assert ".;" not in message
    assert message.endswith(".")


def test_a_pod_that_fits_no_pool_is_told_with_the_rule(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    tell(report, (pod(), 1))
    yard.look()
    assert not living(yard)
    assert "gpu" in yard.condition(yard.current(), "PodsHaveRoom")[2]
    assert yard.reasons(yard.cluster.id).count("NoPoolFits") == 1
    yard.look()
    assert yard.reasons(yard.cluster.id).count("NoPoolFits") == 1, "it is told once"
    tell(report, (pod(tolerations=[{"operator": "Exists"}]), 1))
    yard.look()
    assert len(living(yard)) == 1
    assert yard.condition(yard.current(), "PodsHaveRoom")[0] == "True"


def test_a_pod_that_cannot_be_read_is_named_with_the_reason(yard: Yard, report: Workload) -> None:
    """Whether it waits alone or beside others."""
    yard.dynamic_pool("burst")
    text = "default/odd-1: no node is made for it, as it cannot be read: /spec/x must be a number."
    tell(report, unread={"default/odd-1": "/spec/x must be a number"})
    yard.settle()
    assert yard.condition(yard.current(), "PodsHaveRoom") == ("False", "NoPoolFits", text)
    tell(report, (pod(), 1), unread={f"default/odd-{n}": "/spec/x must be a number" for n in range(1, 5)})
    yard.settle()
    status, _, message = yard.condition(yard.current(), "PodsHaveRoom")
    assert (status, len(living(yard))) == ("False", 1)
    assert message.endswith(
        "default/odd-3: no node is made for it, as it cannot be read: /spec/x must be a number "
        "(and 1 more kinds of pods)."
    )


def test_nothing_is_said_of_pods_once_the_last_dynamic_pool_is_gone(yard: Yard, report: Workload) -> None:
    yard.dynamic_pool("burst")
    yard.pool("workers", quantity=1)
    tell(report, (pod("99"), 1))
    yard.settle()
    assert yard.condition(yard.current(), "PodsHaveRoom")[0] == "False"
    pools.delete_pool(yard.nodes.services, yard.current(), "burst", "user:ann")
    yard.settle()
    assert [condition.type for condition in yard.current().conditions if condition.type.startswith("Po")] == [
        "PoolsReady"
    ]
    version = yard.current().version
    yard.look()
    assert yard.current().version == version, "written once"


def test_a_dynamic_pool_pauses_after_claims_that_became_no_node(yard: Yard, report: Workload) -> None:
    """Or a broken image would be launched, and paid for, once a minute."""
    yard.dynamic_pool("burst", weight=2)
    tell(report, (pod(), 1))
    yard.look()
    (claim,) = living(yard)
    failed = replace(claim, phase="Failed", due_at=None, version=claim.version + 1)
    yard.nodes.services.store.commit(Replace(failed))
    yard.look()
    assert not living(yard)
    until = yard.now("burst").retry_at
    text, more = "default/web-0: no other dynamic pool is there.", f"burst makes no node until {until}"
    assert yard.condition(yard.current(), "PodsHaveRoom")[2] == f"{text}; {more}, because its claims became none once."
    # No rule is known that keeps the pod waiting, but to the cluster's scheduler.
    tell(report, (pod(), 1), message="Insufficient cpu")
    yard.look()
    assert (
        f"{text} The cluster's scheduler says: Insufficient cpu.; " in yard.condition(yard.current(), "PodsHaveRoom")[2]
    )
    yard.dynamic_pool("other")
    yard.look()
    assert (len(living(yard)), len(living(yard, "other"))) == (0, 1), "another pool may make the node"
    delete_claim(yard.nodes.services, living(yard, "other")[0].id, "user:ann")
    pools.delete_pool(yard.nodes.services, yard.current(), "other", "user:ann")
    yard.nodes.clock.advance(31)
    yard.look()
    assert len(living(yard)) == 1


def test_the_quota_of_nodes_in_a_pool_is_its_limit(yard: Yard, report: Workload) -> None:
    yard.nodes.services.store.commit(Put(Quota("nodes_per_group", 3, yard.nodes.services.now())))
    small = [{"key": "vcluster.com/node-type", "values": ["sim.small"]}]
    yard.dynamic_pool("burst", requirements=small)
    tell(report, (pod("2"), 10))
    yard.settle()
    assert len(living(yard)) == 3


def test_pods_are_named_for_which_a_quota_leaves_no_node(yard: Yard, report: Workload) -> None:
    yard.nodes.services.store.commit(Put(Quota("nodeclaims", 0, yard.nodes.services.now())))
    yard.dynamic_pool("burst")
    tell(report, (pod("2"), 3))
    yard.look()
    text = "Cannot create nodeclaim, because project nodeclaims limit of 0 would be exceeded."
    assert yard.condition(yard.current(), "PodsHaveRoom") == (
        "False",
        "NoPoolFits",
        f"default/web-0 and 2 like it: {text}",
    )


def test_the_pool_that_fits_best_is_named_first_and_others_are_counted(yard: Yard, report: Workload) -> None:
    """The limit of that pool refuses the pods last; what refuses them in other pools nobody needs to read."""
    taint = [{"key": "own", "effect": "NoSchedule"}]
    for name in ("a", "b", "c"):
        yard.dynamic_pool(name, taints=taint, weight=50)
    yard.dynamic_pool("small", requirements=[{"key": "vcluster.com/node-type", "values": ["sim.small"]}], weight=60)
    yard.dynamic_pool("burst", limits={"nodes": 1})
    tell(report, (pod("6"), 3))
    yard.settle()
    _, _, message = yard.condition(yard.current(), "PodsHaveRoom")
    parts = message.partition(": ")[2].split("; ")
    assert parts[0] == "burst: The pool's limit of nodes is reached"
    assert [part.partition(":")[0] for part in parts] == ["burst", "small", "c", "and 2 more pools."]


def test_a_pass_looks_soon_whether_refused_types_can_be_tried_again(yard: Yard, report: Workload) -> None:
    """Nothing tells when a refusal is forgotten: what else waits is looked at after five minutes."""
    services = yard.nodes.services
    assert services.unavailable_offerings is not None
    yard.dynamic_pool("burst", provider="sim")
    tell(report, (pod("99"), 1))
    yard.look()
    seconds = [-round(services.seconds_since(str(yard.now("burst").due_at)))]
    tell(report, (pod("3"), 1))
    scope = own_scope(load(services).providers["sim"].id)
    services.unavailable_offerings.remember(scope, [("large", "on-demand", "*")], "x", services.clock.now())
    yard.look()
    assert "(sim.large); they are tried again" in yard.condition(yard.current(), "PodsHaveRoom")[2]
    seconds.append(-round(services.seconds_since(str(yard.now("burst").due_at))))
    assert seconds == [300, 60]
