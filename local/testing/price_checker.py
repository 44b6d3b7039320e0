"""Check of a packing for price from plain data: it imports nothing of what it judges.

A problem is ``{"shapes": [{"requests", "count", "offers", "spaces"}], "offers": [{"room", "price", "limit"}],
"spaces": [room]}``: ``offers`` and ``spaces`` of a shape are lists of numbers. An answer is ``{"bins": [{"offer",
"space", "counts"}], "unplaced", "price", "bound", "certificate"}``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

Problem = dict[str, Any]
Answer = dict[str, Any]


def faults(problem: Problem, answer: Answer) -> list[str]:
    """Everything that is wrong with where the pods are and with what that is said to cost."""
    wrong, price = [], 0
    placed = [0] * len(problem["shapes"])
    for number, node in enumerate(answer["bins"]):
        bought = node["offer"] is not None
        room = problem["offers"][node["offer"]]["room"] if bought else problem["spaces"][node["space"]]
        price += problem["offers"][node["offer"]]["price"] if bought else 0
        for shape, count in node["counts"]:
            placed[shape] += count
            usable = problem["shapes"][shape]["offers" if bought else "spaces"]
            if count < 1 or (node["offer"] if bought else node["space"]) not in usable:
                wrong.append(f"bin {number} may not have shape {shape}")
        load = [
            sum(count * problem["shapes"][shape]["requests"][resource] for shape, count in node["counts"])
            for resource in range(len(room))
        ]
        if not fits(load, room):
            wrong.append(f"bin {number} has too much in it")
    for shape, count in answer["unplaced"]:
        placed[shape] += count
    if placed != [shape["count"] for shape in problem["shapes"]]:
        wrong.append("pods are missing or twice")
    if price != answer["price"]:
        wrong.append("the price is another")
    if answer["bound"] > answer["price"]:
        wrong.append("the bound is above the price")
    return [*wrong, *_repeated(problem, answer)]


def _repeated(problem: Problem, answer: Answer) -> list[str]:
    """Spaces that are there twice, and offers that are bought more often than there are of them."""
    spaces = [node["space"] for node in answer["bins"] if node["offer"] is None]
    offers = [node["offer"] for node in answer["bins"]]
    return [f"space {number} is there twice" for number in set(spaces) if spaces.count(number) > 1] + [
        f"offer {number} is bought too often"
        for number, offer in enumerate(problem["offers"])
        if offer["limit"] is not None and offers.count(number) > offer["limit"]
    ]


def certificate_faults(problem: Problem, answer: Answer) -> list[str]:
    """Faults of the proof of the linear bound: every offer is looked at, in exact numbers."""
    proof, wrong = answer["certificate"], []
    values = [[Fraction(value, proof["scale"]) for value in row] for row in proof["values"]]
    if any(value < 0 for row in values for value in row):
        wrong.append("a value is below zero")
    if proof["bound"] and proof["worst"] <= 0:
        return [*wrong, "there is no factor"]
    for number, offer in enumerate(problem["offers"]):
        classes = {
            proof["classes"][index]
            for index, shape in enumerate(problem["shapes"])
            if number in shape["offers"] and fits(shape["requests"], offer["room"])
        }
        worth = sum(
            max((values[group][resource] for group in classes), default=Fraction(0)) * max(amount, 0)
            for resource, amount in enumerate(offer["room"])
        )
        if proof["bound"] and worth > proof["worst"] * offer["price"]:
            wrong.append(f"the room of offer {number} is worth more than its price")
    placed = [shape["count"] for shape in problem["shapes"]]
    for shape, count in answer["unplaced"]:
        placed[shape] -= count
    total = Fraction(0)
    for index, shape in enumerate(problem["shapes"]):
        group = proof["classes"][index]
        total += sum(
            placed[index] * value * amount for value, amount in zip(values[group], shape["requests"], strict=True)
        )
    for room in problem["spaces"]:
        total -= sum(
            max((row[resource] for row in values), default=Fraction(0)) * max(amount, 0)
            for resource, amount in enumerate(room)
        )
    if proof["bound"] and total < proof["bound"] * proof["worst"]:
        wrong.append("the pods are not worth the bound")
    return wrong


def greedy(problem: Problem) -> tuple[int, list[int]]:
    """Karpenter's rule pod by pod, without limits: the price, and how many pods of each shape have a place."""
    shapes, offers = problem["shapes"], problem["offers"]
    order = sorted(range(len(shapes)), key=lambda n: ([-amount for amount in shapes[n]["requests"]], n))
    spaces = [list(room) for room in problem["spaces"]]
    nodes: list[dict[str, Any]] = []
    placed = [0] * len(shapes)
    for shape in order:
        request = shapes[shape]["requests"]
        for _ in range(shapes[shape]["count"]):
            space = next(
                (n for n, room in enumerate(spaces) if n in shapes[shape]["spaces"] and fits(request, room)), None
            )
            if space is not None:
                spaces[space] = [amount - part for amount, part in zip(spaces[space], request, strict=True)]
                placed[shape] += 1
                continue
            for node in sorted(nodes, key=lambda node: node["pods"]):
                load = [amount + part for amount, part in zip(node["load"], request, strict=True)]
                able = [n for n in node["able"] if n in shapes[shape]["offers"] and fits(load, offers[n]["room"])]
                if able:
                    node.update(load=load, able=able, pods=node["pods"] + 1)
                    placed[shape] += 1
                    break
            else:
                able = [n for n in shapes[shape]["offers"] if n < len(offers) and fits(request, offers[n]["room"])]
                if able:
                    nodes.append({"load": list(request), "able": able, "pods": 1})
                    placed[shape] += 1
    return sum(min(offers[n]["price"] for n in node["able"]) for node in nodes), placed


def fits(load: list[int], room: list[int]) -> bool:
    """Whether a room holds a load; what is not requested need not be there."""
    return all(part <= amount or not part for part, amount in zip(load, room, strict=True))


def optimum(problem: Problem) -> int | None:
    """The least price by trying every way to split the pods; None when a pod fits nowhere. Without spaces."""
    pods = [shape for shape, data in enumerate(problem["shapes"]) for _ in range(data["count"])]

    @cache
    def node(members: tuple[int, ...]) -> int | None:
        resources = range(len(problem["shapes"][0]["requests"]))
        load = [sum(problem["shapes"][shape]["requests"][resource] for shape in members) for resource in resources]
        prices = [
            offer["price"]
            for number, offer in enumerate(problem["offers"])
            if fits(load, offer["room"]) and all(number in problem["shapes"][shape]["offers"] for shape in members)
        ]
        return min(prices, default=None)

    @cache
    def best(remaining: tuple[int, ...]) -> int | None:
        if not remaining:
            return 0
        prices = []
        for mask in range(1 << len(remaining) - 1):
            inside = (remaining[0], *(pod for n, pod in enumerate(remaining[1:]) if mask >> n & 1))
            outside = tuple(pod for n, pod in enumerate(remaining[1:]) if not mask >> n & 1)
            own = node(inside)
            further = None if own is None else best(outside)
            if own is not None and further is not None:
                prices.append(own + further)
        return min(prices, default=None)

    return best(tuple(pods))
