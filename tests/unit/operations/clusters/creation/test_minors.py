"""Minors whose project has stopped to mend them: refused for new clusters, and the way out for those that have one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.clusters.kubernetes_minors import following, number
from stockyard.errors import InvalidInput
from stockyard.kubernetes_versions import DEFAULT, NEW, TESTED
from stockyard.operations.clusters.creation.create import create_cluster, plan_creation
from stockyard.operations.clusters.creation.minors import needed_upgrade


def test_the_table_goes_on_without_a_gap_and_ends_at_its_beginning() -> None:
    minors = list(TESTED)
    assert [following(minor) for minor in minors[:-1]] == minors[1:]
    assert tuple(minors[-len(NEW) :]) == NEW, "older minors end before newer ones"
    assert DEFAULT in NEW
    for minor, tested in TESTED.items():
        assert number(tested.release) == number(minor)


def test_a_new_cluster_has_no_ended_minor_and_each_of_the_others(world: Any) -> None:
    strict = replace(world.services, settings=replace(world.services.settings, ended_minors=False))
    for minor, tested in TESTED.items():
        wish = replace(world.new_cluster(), kubernetes_version=minor)
        if not tested.end_day:
            assert plan_creation(strict, wish)["creates"]
            continue
        for act in (plan_creation, lambda services, wish: create_cluster(services, wish, "user:ann")):
            with pytest.raises(InvalidInput) as refused:
                act(strict, wish)
            (problem,) = refused.value.errors
            assert problem.pointer == "/kubernetes_version"
            assert f"must be {' or '.join(NEW)}: only clusters that have {minor} keep it" in problem.detail
        assert plan_creation(world.services, wish)["creates"], "a stage may allow it"


def test_a_plan_names_the_way_out_of_an_ended_minor(world: Any) -> None:
    cluster = world.create()
    for minor, tested in TESTED.items():
        remarks = [remark["detail"] for remark in needed_upgrade(replace(cluster, kubernetes_version=minor))]
        expected = f"Kubernetes {minor} has had no fixes since {tested.end_day}; the way out is an upgrade to"
        assert remarks == ([f"{expected} {following(minor)}."] if tested.end_day else [])
    assert list(needed_upgrade(replace(cluster, kubernetes_version="1.34", driver="eks"))) == []
