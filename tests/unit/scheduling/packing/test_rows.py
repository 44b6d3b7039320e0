"""What DaemonSets take of nodes that are to be made."""

from __future__ import annotations

from dataclasses import replace

from stockyard.domain.node_types import NodeType, Offering
from stockyard.domain.requirements import ARCH, Requirements
from stockyard.scheduling.packing.model import HostPort, Pod, PodGroup, Pool, Problem, Taint, Toleration, term
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
