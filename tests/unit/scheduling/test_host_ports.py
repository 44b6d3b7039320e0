"""Ports of nodes as bits say the same as ports one by one, and cost a plan next to nothing."""

from __future__ import annotations

from random import Random

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.scheduling.host_ports import HostPort, PortsInUse, PortTable, conflict
from stockyard.scheduling.packing.model import Node, Pod, PodGroup, Pool, Problem, Settings
from stockyard.scheduling.packing.plan import pack

ADDRESSES = ("", "10.0.0.1", "10.0.0.2")
ROOM = {"cpu": 64_000, "memory": 256 * 2**30 * 1000, "pods": 110_000}
TYPE = NodeType("p.large", "p", {}, ROOM, ROOM, 0, (Offering("on-demand", ("a",), 1.0),))


def drawn(chance: Random) -> tuple[HostPort, ...]:
    return tuple(
        {
            HostPort(chance.randrange(1, 6), chance.choice(("TCP", "UDP")), chance.choice(ADDRESSES))
            for _ in range(chance.randrange(4))
        }
    )


def test_bits_say_what_ports_say() -> None:
    chance = Random(1)
    outcomes = set()
    for _ in range(300):
        pods, nodes = [drawn(chance) for _ in range(4)], [drawn(chance) for _ in range(3)]
        table = PortTable(pods, nodes)
        for pod in pods:
            for other in (*pods, *nodes):
                expected = any(port.conflicts(port_in_use) for port in pod for port_in_use in other)
                bits = bool(table.of(pod).refused & table.of(other).own)
                assert bits == table.conflict(pod, other) == conflict(pod, other) == expected
                assert PortsInUse(other).conflict(pod) == expected
                outcomes.add(expected)
            unknown = (HostPort(2), HostPort(7, "UDP"))
            assert table.conflict(pod, unknown) == conflict(pod, unknown)
    assert outcomes == {True, False}


def test_there_are_no_more_bits_than_tell_the_holders_apart() -> None:
    pods = [tuple(HostPort(1000 * kind + number) for number in range(100)) for kind in range(1, 20)]
    table = PortTable(pods, [tuple(HostPort(number) for number in range(1, 900))])
    assert max(table.of(ports).own.bit_length() for ports in pods) == len(pods)
    assert table.of(pods[0]).own == table.of(pods[0]).refused


def kinds(count: int, copies: int, ports: int) -> tuple[PodGroup, ...]:
    return tuple(
        PodGroup(
            Pod(
                "default",
                (("app", f"k{kind}"),),
                (("cpu", 100 + kind), ("memory", 2**30), ("pods", 1000)),
                ports=tuple(HostPort(1 + (kind * ports + number) % 60_000) for number in range(ports)),
            ),
            tuple(f"k{kind}-{copy}" for copy in range(copies)),
        )
        for kind in range(count)
    )


def test_ports_cost_a_plan_hardly_more_steps_than_the_same_pods_without() -> None:
    """Each step is one comparison, whatever ports a pod has: what is counted is what it costs."""
    groups = kinds(40, 10, 100)
    node = Node("n", {}, ROOM, ports=groups[0].pod.ports)
    plan = pack(Problem(groups, (Pool("p", (TYPE,)),), (node,), settings=Settings(steps=400_000)))
    assert not plan.left_out
    (placement,) = plan.placements
    assert not any(name.startswith("k0-") for name in placement.pods)
    for claim in plan.claims:
        apps = [name.partition("-")[0] for name in claim.pods]
        assert len(apps) == len(set(apps))
    assert plan.steps < 60_000
