"""Names of the generations of a node group."""

from __future__ import annotations

import pytest

from stockyard.providers.clusters.eks.nodes.node_groups import Generation


@pytest.mark.parametrize(
    ("pool", "number", "name"),
    [("gpu", 1, "gpu"), ("gpu", 2, "gpu-generation-2-"), ("a.b", 1, "a-b-generation-1-")],
)
def test_names_of_generations_are_names_that_eks_takes(pool: str, number: int, name: str) -> None:
    generation = Generation(pool, number)
    assert generation.name.startswith(name)
    assert len(generation.name) <= 63
    assert "." not in generation.name
    assert generation.key == (pool if number == 1 else f"{pool}/{number}")
