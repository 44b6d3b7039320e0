"""Random problems of packing for price as plain data, and the same as the packer reads it."""

from __future__ import annotations

from random import Random
from typing import Any

from stockyard.scheduling.packing.price import Answer, FreeProblem, Offer, Preferences, Shape, Space

GIB = 2**30


def small(chance: Random) -> dict[str, Any]:
    """At most 6 pods and 8 offers, with prices that follow size in no way."""
    shapes = []
    remaining = chance.randint(1, 6)
    while remaining:
        count = min(remaining, chance.choice((1, 1, 2, 3)))
        shapes.append(_shape(chance, count, 8))
        remaining -= count
    offers = [_offer(chance, price=chance.randint(1, 400)) for _ in range(chance.randint(1, 8))]
    return _only_existing({"shapes": shapes, "offers": offers, "spaces": []})


def larger(chance: Random) -> dict[str, Any]:
    """Up to some 120 pods, several classes of them, offers of which there are few, and nodes that are there."""
    offers = [_offer(chance, price=chance.randint(1, 2000)) for _ in range(chance.randint(2, 14))]
    for offer in offers:
        if chance.random() < 0.1:
            offer["limit"] = chance.randint(0, 3)
    classes = [chance.sample(range(len(offers)), chance.randint(1, len(offers))) for _ in range(3)]
    shapes = [_shape(chance, chance.choice((1, 2, 5, 12)), len(offers)) for _ in range(chance.randint(1, 12))]
    for shape in shapes:
        if chance.random() < 0.4:
            shape["offers"] = sorted(chance.choice(classes))
    spaces = [[chance.randint(0, 8000), chance.randint(0, 16) * GIB, chance.randint(0, 20)] for _ in range(3)]
    spaces = spaces if chance.random() < 0.4 else []
    for shape in shapes:
        shape["spaces"] = [number for number in range(len(spaces)) if chance.random() < 0.8]
    return {"shapes": shapes, "offers": offers, "spaces": spaces}


def read(data: dict[str, Any], preferences: Preferences | None = None) -> FreeProblem:
    """The problem as the packer takes it."""
    return FreeProblem(
        tuple(
            Shape(tuple(shape["requests"]), shape["count"], _mask(shape["offers"]), _mask(shape["spaces"]))
            for shape in data["shapes"]
        ),
        tuple(
            Offer(f"offer-{number}", tuple(offer["room"]), offer["price"], offer["limit"])
            for number, offer in enumerate(data["offers"])
        ),
        tuple(Space(f"space-{number}", tuple(room)) for number, room in enumerate(data["spaces"])),
        preferences or Preferences(),
    )


def written(answer: Answer) -> dict[str, Any]:
    """An answer as plain data."""
    proof = answer.certificate
    return {
        "bins": [{"offer": node.offer, "space": node.space, "counts": list(node.counts)} for node in answer.bins],
        "unplaced": list(answer.unplaced),
        "price": answer.price,
        "bound": answer.bound,
        "certificate": {
            "classes": proof.classes,
            "values": proof.values,
            "scale": proof.scale,
            "worst": proof.worst,
            "bound": proof.bound,
        },
    }


def _mask(numbers: list[int]) -> int:
    return sum(1 << number for number in numbers)


def _shape(chance: Random, count: int, offers: int) -> dict[str, Any]:
    cpu = chance.choice((100, 250, 500, 1000, 1500, chance.randint(50, 4000)))
    memory = chance.choice((GIB // 4, GIB, 2 * GIB, 4 * GIB, chance.randint(1, 8 * GIB)))
    return {"requests": [cpu, memory, 1], "count": count, "offers": list(range(offers)), "spaces": []}


def _offer(chance: Random, price: int) -> dict[str, Any]:
    room = [
        chance.randint(500, 16000),
        chance.randint(1, 64) * GIB - chance.randint(0, GIB),
        chance.choice((4, 29, 110)),
    ]
    return {"room": room, "price": price, "limit": None}


def _only_existing(data: dict[str, Any]) -> dict[str, Any]:
    for shape in data["shapes"]:
        shape["offers"] = [number for number in shape["offers"] if number < len(data["offers"])]
    return data
