"""Names of the generations of a node group."""

from __future__ import annotations

import re

import pytest

from stockyard.domain.records import Cluster
from stockyard.providers.clusters.eks.nodes.node_groups import Generation

LONG = "a" * 100


def cluster(prefix: str) -> Cluster:
    texts = dict.fromkeys(("description", "client_id", "status", "created_at", "updated_at"), "")
    fields = {"cluster_type": "k8s", "provider": "aws", "cloud_account_id": 1, "settings": {}, **texts}
    return Cluster("clu_1", "west", group_prefix=prefix, **fields)


@pytest.mark.parametrize(
    ("prefix", "pool", "number", "form"),
    [
        ("", "gpu", 1, "gpu"),
        ("", "gpu", 2, "gpu-generation-2-[0-9a-f]{5}"),
        ("", "a.b", 1, "a-b-generation-1-[0-9a-f]{5}"),
        ("west", "gpu", 1, "west-gpu"),
        ("west", "gpu", 2, "west-[0-9a-f]{5}-gpu"),
        ("west", "a.b", 1, "west-[0-9a-f]{5}-a-b"),
        (LONG, "gpu", 1, "a{53}-[0-9a-f]{5}-gpu"),
        (LONG, "p" * 40, 3, "a{16}-[0-9a-f]{5}-p{40}"),
    ],
)
def test_a_group_is_called_by_its_cluster_and_its_pool_within_what_eks_takes(
    prefix: str, pool: str, number: int, form: str
) -> None:
    generation = Generation(pool, number)
    name = generation.name(cluster(prefix))
    assert re.fullmatch(form, name)
    assert re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z_-]{0,62}", name)
    assert generation.key == (pool if number == 1 else f"{pool}/{number}")


def test_generations_and_pools_have_names_of_their_own() -> None:
    generations = [Generation(pool, number) for pool in ("gpu", "a.b", "a-b") for number in (1, 2, 3)]
    for prefix in ("", "west", LONG):
        assert len({generation.name(cluster(prefix)) for generation in generations}) == len(generations)
