"""A small catalogue: three families whose prices are linear in size, but for one bargain and one that is too dear."""

from __future__ import annotations

import pytest

from stockyard.scheduling.packing.price import EVERY, FreeProblem, Offer, Shape

GIB = 1024


def family(name, sizes, memory, price):
    return [Offer(f"{name}-{size}", (1000 * size, memory * GIB * size, 20 * size), price * size) for size in sizes]


@pytest.fixture
def catalogue():
    return (
        *family("c", (1, 2, 4, 8, 16), 2, 40),
        *family("m", (1, 2, 4, 8, 16), 4, 50),
        *family("r", (1, 2, 4, 8), 8, 66),
        Offer("dear", (2000, 4 * GIB, 20), 200),
    )


@pytest.fixture
def problem(catalogue):
    """A function that makes a problem of (cpu, memory, count) triples, or with a mask of offers as a fourth."""

    def make(*shapes, offers=catalogue, **fields):
        return FreeProblem(
            tuple(
                Shape((cpu, memory, 1), count, masks[0] if masks else EVERY, masks[1] if masks[1:] else EVERY)
                for cpu, memory, count, *masks in shapes
            ),
            tuple(offers),
            **fields,
        )

    return make
