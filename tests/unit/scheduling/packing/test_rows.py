"""Ways to make a node: what DaemonSets take of it, and where it can be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import ARCH, ZONE, Requirements
from stockyard.scheduling.host_ports import HostPort
from stockyard.scheduling.packing.model import (
    Node,
    Pod,
    PodGroup,
    Pool,
    Problem,
    Selector,
    Spread,
    Taint,
    Toleration,
    term,
)
from stockyard.scheduling.packing.plan import Plan, pack

ROOM = {"cpu": 2000, "pods": 9000}
TYPES = tuple(
    NodeType(f"p.{arch}", "p", {ARCH: (arch,)}, ROOM, ROOM, 0, (Offering("on-demand", ("za",), price),))
    for arch, price in (("amd64", 0.1), ("arm64", 0.2))
)
POD = Pod("default", (), (("cpu", 500), ("pods", 1000)), ports=(HostPort(9000), HostPort(8080)))
DAEMON = replace(POD, ports=(HostPort(8080),))
ONLY_AMD = (term([{"key": ARCH, "operator": "In", "values": ["amd64"]}]),)


def packed(pod: Pod, daemon: Pod, *pools: Pool) -> Plan:
    return pack(Problem((PodGroup(pod, ("p",)),), pools or (Pool("pool", TYPES),), daemons=(daemon,)))


def test_a_pod_gets_no_node_whose_daemon_set_has_its_port() -> None:
    plan = packed(POD, DAEMON)
    assert [(reason.pool, reason.rule, reason.subject) for reason in plan.left_out[0].reasons] == [
        ("pool", "HostPort", "8080/TCP")
    ]
    assert "8080/TCP" in plan.left_out[0].reasons[0].message
    for free in (replace(DAEMON, ports=(HostPort(8080, "UDP"),)), replace(DAEMON, ports=(HostPort(80),))):
        assert len(packed(POD, free).claims) == 1
    with_address = replace(POD, ports=(HostPort(8080, address="10.0.0.1"),))
    assert packed(with_address, DAEMON).left_out[0].reasons[0].subject == "8080/TCP on 10.0.0.1"


def test_only_nodes_on_which_the_daemon_set_runs_have_its_port() -> None:
    amd = replace(DAEMON, terms=ONLY_AMD)
    assert [claim.row.node_type.bare for claim in packed(POD, amd).claims] == ["arm64"]
    pools = (
        Pool("here", TYPES, Requirements.of([{"key": ARCH, "operator": "In", "values": ["amd64"]}])),
        Pool("tainted", TYPES, taints=(Taint("only"),)),
    )
    tolerant = replace(POD, tolerations=(Toleration("only", "Exists"),))
    assert [claim.pool.name for claim in packed(tolerant, DAEMON, *pools).claims] == ["tainted"]


def anywhere(name: str, price: float) -> NodeType:
    return NodeType(f"q.{name}", "q", {}, ROOM, ROOM, 0, (Offering("on-demand", ("*",), price),))


SPREAD = Spread(ZONE, 1, Selector(term([])))
NEAR = NodeType("p.near", "p", {}, ROOM, ROOM, 0, (Offering("on-demand", ("za", "zb"), 0.1),))


@pytest.mark.parametrize("hard", [True, False])
def test_a_zone_that_is_not_known_is_one_of_those_that_are(hard: bool) -> None:
    spreading = replace(POD, ports=(), spreads=(replace(SPREAD, hard=hard),))
    for price in (0.05, 0.2):
        problem = Problem((PodGroup(spreading, tuple("pqrstuvw")),), (Pool("pool", (NEAR, anywhere("t", price))),))
        counts = Counter[str]()
        for claim in pack(problem).claims:
            counts[claim.row.zone] += len(claim.pods)
            assert claim.price == min(price, 0.1)
        assert counts == {"za": 4, "zb": 4}


def test_zones_of_nodes_are_known_and_an_open_one_stays_so_without_any() -> None:
    spreading = replace(POD, ports=(), spreads=(SPREAD,))
    pools = (Pool("pool", (anywhere("t", 0.1),)),)
    group = PodGroup(spreading, ("p", "q"))
    nodes = (Node("n", {ZONE: "zc"}, {}), Node("m", {ZONE: "*"}, {}))
    assert [claim.row.zone for claim in pack(Problem((group,), pools, nodes)).claims] == ["zc"]
    assert [claim.row.zone for claim in pack(Problem((group,), pools)).claims] == ["*"]


def test_a_zone_has_one_key_in_pools_and_pods() -> None:
    of_driver = "topology.disk.csi.example.com/zone"
    pool = Pool("pool", (NEAR,), labels={"failure-domain.beta.kubernetes.io/zone": "zb"})
    bound = replace(POD, ports=(), volumes=(term([{"key": of_driver, "operator": "In", "values": ["zb"]}]),))
    assert [claim.row.zone for claim in pack(Problem((PodGroup(bound, ("p",)),), (pool,))).claims] == ["zb"]


def test_pods_that_name_a_zone_by_its_id_get_a_node_there() -> None:
    key, zones = "topology.lab/zone-id", (Offering("on-demand", ("za", "zb"), 0.1),)
    types = (replace(TYPES[0], offerings=zones),)
    pool = Pool("pool", types, zone_ids={"za": "id-1", "zb": "id-2"})
    for values, zone in ((["id-2"], "zb"), (["id-1"], "za"), (["id-9"], None)):
        pod = replace(POD, ports=(), terms=(term([{"key": key, "operator": "In", "values": values}]),))
        plan = pack(Problem((PodGroup(pod, ("p",)),), (pool,)))
        assert [claim.row.zone for claim in plan.claims] == ([zone] if zone else [])
        # While the ids are not known the claim asks for what its pods name; where there will be none, nothing fits.
        (claim,) = pack(Problem((PodGroup(pod, ("p",)),), (Pool("pool", types, opens_zone_ids=True),))).claims
        assert claim.row.values[key] == values[0]
        assert pack(Problem((PodGroup(pod, ("p",)),), (Pool("pool", types),))).left_out
