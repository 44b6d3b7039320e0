"""Clusters that machines of a Kubernetes host reach: where their network is routed, by an overlay, or on the host."""

from __future__ import annotations

import base64
from contextlib import ExitStack
from dataclasses import replace

import pytest

from stockyard.operations.node_providers.reach import out_of_reach
from tests.contracts.test_node_source import World
from tests.harness.bare_metal.yard import ROUTED
from tests.harness.worlds.node_source_cases import cluster_of

KINDS = {"metal3": "userData", "kubeVirt": "userdata"}
"""Kinds of such machines, and the key of user data in their Secrets."""
OVERLAY = {"range": "100.64.0.0/16", "node_to_node": False}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_elsewhere_needs_a_routed_network_or_an_overlay(kind: str) -> None:
    world = World(kind, ExitStack())
    source, provider, elsewhere = world.case.source, world.provider, cluster_of("aws", 1)
    assert out_of_reach(source, provider, world.cluster) is None
    assert "private network" in str(out_of_reach(source, provider, elsewhere))
    assert out_of_reach(source, replace(provider, properties=ROUTED), elsewhere) is None
    assert out_of_reach(source, provider, replace(elsewhere, settings={"overlay": OVERLAY})) is None
    assert "the claim names none" in str(out_of_reach(source, provider, None))


@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_of_a_cluster_with_an_overlay_is_told_how_to_join_it(kind: str) -> None:
    sizes = {}
    for settings in ({}, {"overlay": OVERLAY}):
        world = World(kind, ExitStack())
        world.prepare()
        world.case.source.launch(world.work(cluster=replace(world.cluster, settings=settings), machine_token="0" * 64))
        (secret,) = world.case.machines.__self__.objects("secrets").values()  # type: ignore[attr-defined]
        sizes[bool(settings)] = len(base64.b64decode(secret["data"][KINDS[kind]]))
    assert sizes[True] > sizes[False]
