"""Packings with machines of one's own: nothing is rented for what these take, and money counts as owners say it."""

from __future__ import annotations

from random import Random

from stockyard.domain.nodes.node_types import NodeType, Offering
from stockyard.domain.values.requirements import INSTANCE_TYPE
from stockyard.scheduling.packing.model import Pod, Pool, Problem
from stockyard.scheduling.packing.plan import grouped, pack

FEW, MANY = 150, 5000


def node_type(chance: Random, name: str, *, owned: bool) -> NodeType:
    cores = chance.choice((2, 4, 8, 64))
    room = {"cpu": cores * 1000, "memory": cores * 4000, "pods": 110_000}
    cost, own_price = chance.choice((0.0, 36.0, 1e7)), chance.choice((None, 0.0, 3.0))
    offering = Offering("on-demand", ("a",), own_price if owned else chance.choice((0.001, 0.01, 0.4)))
    return NodeType(f"lab.{name}", "lab", {INSTANCE_TYPE: (name,)}, room, room, cost, (offering,), owned=owned)


def test_nothing_is_rented_for_what_own_machines_take(seed: int, soaking: bool) -> None:
    chance, rented_pods = Random(seed), 0
    for _ in range(MANY if soaking else FEW):
        own = [node_type(chance, f"own{n}", owned=True) for n in range(chance.randint(1, 2))]
        rented = [node_type(chance, f"rented{n}", owned=False) for n in range(chance.randint(1, 3))]
        cpus = [chance.choice((500, 1000, 3000, 20_000)) for _ in range(chance.randint(1, 12))]
        pods = [
            (f"p{n}", Pod("default", (), (("cpu", cpu), ("memory", cpu), ("pods", 1000)))) for n, cpu in enumerate(cpus)
        ]
        problem = Problem(grouped(pods), (Pool("default", (*own, *rented)),))
        plan = pack(problem)
        largest = max(each.allocatable["cpu"] for each in own)
        placed = {name: claim for claim in plan.claims for name in claim.pods}
        for name, pod in pods:
            claim = placed.get(name)
            if claim is not None and dict(pod.requests)["cpu"] <= largest and not claim.row.node_type.owned:
                # Only beside a pod that no own machine takes, which has paid for the node.
                requests = [dict(each.requests)["cpu"] for other, each in pods if other in claim.pods]
                assert max(requests) > largest
                rented_pods += 1
        money = sum(row.own_usd_hour if row.node_type.owned else row.price for row in (c.row for c in plan.claims))
        assert plan.usd_hour == money
