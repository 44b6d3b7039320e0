"""Settings of clusters of earlier releases, as their pools can follow them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from stockyard.domain.pools.node_groups import AUTOSCALER_GROUPS, GROUPS
from stockyard.domain.records import Cluster
from stockyard.operations.clusters.changes.alignment import aligned
from tests.unit.operations.conftest import make_world

GROUP = {"name": "a", "role": "worker"}


def cluster_with(**settings: Any) -> Cluster:
    cluster = make_world().create("demo")
    return replace(cluster, driver="ec2", pools_follow=False, settings={**cluster.settings, **settings})


def test_a_cluster_whose_groups_stand_in_the_other_setting_stays_as_it_is() -> None:
    """To align groups that were pools from the beginning would make a second list of them."""
    nothing = cast(Any, None)
    cluster = cluster_with(**{GROUPS: [GROUP], AUTOSCALER_GROUPS: [GROUP]})
    assert aligned(nothing, cluster) is cluster
    following = replace(cluster_with(), pools_follow=True)
    assert aligned(nothing, following) is following


def test_a_cluster_of_an_earlier_release_has_the_groups_that_its_pools_are() -> None:
    world = make_world()
    cluster = replace(world.create("demo"), driver="ec2", pools_follow=False)
    changed = aligned(world.services, cluster)
    assert changed is not cluster
    assert changed.settings[AUTOSCALER_GROUPS] == []
