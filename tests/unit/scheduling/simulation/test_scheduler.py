"""The scheduler of a replay: required rules keep pods from nodes, preferred ones and room rank what is left."""

from __future__ import annotations

from stockyard.domain.values.requirements import HOSTNAME, ZONE
from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.model import (
    PREFER_NO_SCHEDULE,
    Node,
    PlacedPod,
    Pod,
    PodTerm,
    Preference,
    Selector,
    Spread,
    Taint,
    term,
)
from stockyard.scheduling.simulation.scheduler import KubeScheduler

WEB = (("app", "web"),)
OWN = Selector(term([{"key": "app", "operator": "In", "values": ["web"]}]))
TOTAL = {"cpu": 4000, "memory": 8000, "pods": 10_000}


def node(name, zone="a", cpu=4000, pods=(), **fields):
    labels = {ZONE: zone, HOSTNAME: name, **fields.pop("labels", {})}
    return Node(name, labels, {**TOTAL, "cpu": cpu}, pods=tuple(pods), **fields)


def pod(cpu=1000, **fields):
    return Pod("default", WEB, (("cpu", cpu), ("memory", cpu), ("pods", 1000)), **fields)


def bound(nodes, *pods):
    scheduler = KubeScheduler(nodes, {each.name: TOTAL for each in nodes}, pods)
    node_names = [scheduler.place(each) for each in pods]
    assert scheduler.spent > 0
    return node_names


def beside(weight=0, key=HOSTNAME):
    return (PodTerm(key, OWN, None, weight=weight),)


def test_the_emptiest_node_is_taken_and_a_full_one_is_none():
    nodes = [node("n1", cpu=2000), node("n2", cpu=3500), node("n3", cpu=500)]
    assert bound(nodes, pod(), pod(), pod(), pod(), pod(), pod()) == ["n2", "n2", "n1", "n2", "n1", None]


def test_required_rules_keep_pods_from_nodes():
    there = PlacedPod("default", WEB, ())
    nodes = [node("n1", pods=[there]), node("n2", cpu=2000)]
    assert bound(nodes, pod(anti_affinity=beside()), pod(anti_affinity=beside())) == ["n2", None]
    # Who is there already may want to be alone as well; who only prefers it keeps nobody away.
    for weight, node_name in ((0, "n2"), (1, "n1")):
        holder = PlacedPod("default", WEB, beside(weight))
        assert bound([node("n1", pods=[holder]), node("n2", cpu=2000)], pod()) == [node_name]
    assert bound(nodes, pod(affinity=beside())) == ["n1"]
    port_pod = pod(ports=(HostPort(80),))
    assert bound([node("n1", ports=(HostPort(80),)), node("n2", cpu=2000)], port_pod, port_pod) == ["n2", None]
    assert bound([node("n1", taints=(Taint("gpu"),)), node("n2", cpu=2000)], pod(), pod(), pod()) == ["n2", "n2", None]


def test_a_required_spread_counts_the_hosts_that_are_there():
    spread = pod(spreads=(Spread(HOSTNAME, 1, OWN),))
    there = PlacedPod("default", WEB, ())
    full = node("n2", cpu=0, pods=[there])
    # With one pod on each host a second one may come to either.
    assert bound([node("n1"), full], spread, spread, spread) == ["n1", "n1", None]
    zones = pod(spreads=(Spread(ZONE, 1, OWN),))
    assert bound([node("n1"), node("n2", "b", cpu=1000)], zones, zones, zones, zones) == ["n1", "n2", "n1", None]


def test_preferred_rules_only_rank():
    there = PlacedPod("default", WEB, ())
    crowded, free = node("n1", pods=[there]), node("n2", "b", cpu=2500)
    labelled = node("n2", cpu=2500, labels={"disk": "ssd"})
    soft = node("n1", taints=(Taint("old", "", PREFER_NO_SCHEDULE),))
    ssd = term([{"key": "disk", "operator": "In", "values": ["ssd"]}])
    for nodes, wish in (
        ([crowded, free], {"anti_affinity": beside(1)}),
        ([crowded, free], {"spreads": (Spread(HOSTNAME, 1, OWN, hard=False),)}),
        ([crowded, free], {"spreads": (Spread(ZONE, 1, OWN, hard=False),)}),
        ([node("n1"), labelled], {"preferences": (Preference(1, ssd),)}),
        ([soft, free], {}),
    ):
        wishing = pod(2000, **wish)
        assert bound(nodes, wishing, wishing, wishing) == ["n2", "n1", "n1"]
    # A label that no node has keeps nobody away.
    assert bound([free], pod(spreads=(Spread("rack", 1, OWN, hard=False),), anti_affinity=beside(1, "rack"))) == ["n2"]


def test_of_many_nodes_a_part_is_ranked_and_all_are_used():
    nodes = [node(f"n{number:03}", cpu=1000) for number in range(130)]
    apart = pod(anti_affinity=beside(1))
    node_names = bound(nodes, *[apart] * 131)
    assert (len(set(node_names[:130])), node_names[130]) == (130, None)


def test_a_spread_over_hosts_counts_nodes_by_its_policies():
    nodes = [node("n1", pods=[PlacedPod("default", WEB, ())]), node("n2", taints=(Taint("only"),))]
    for honors_taints, node_name in ((False, None), (True, "n1")):
        assert bound(nodes, pod(spreads=(Spread(HOSTNAME, 1, OWN, honors_taints=honors_taints),))) == [node_name]
