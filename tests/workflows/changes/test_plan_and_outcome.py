"""The nodes that the plan of a change names are those that are replaced or given back, no more and no less: for each
field that may change of clusters of each driver, and in every order of its lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from stockyard.domain.cloud_kinds import drivers, settings_models
from stockyard.domain.nodes.node_types import ON_DEMAND
from stockyard.errors import InvalidInput
from tests.workflows.changes.cases import BEGINNINGS, VERSION, Case, cases, changeable_fields
from tests.workflows.changes.fleet import (
    CHANGES,
    Beginning,
    Ec2Fleet,
    Fleet,
    ec2_fleet,
    eks_fleet,
    node_names,
    played_pods,
    settle,
)

BUILD = {"ec2": ec2_fleet, "eks": eks_fleet}
CASES = cases()
LAST_ORDERS = list({(case.beginning, case.field): case for case in CASES if case.is_order and not case.still}.values())
"""Of the orders of a list that mean something the one that is carried out; in the soak all are."""


class Fleets:
    """A cluster of each beginning, as it was at first; the one that was taken last is looked at."""

    def __init__(self, looked_at: list[Fleet]) -> None:
        self._looked_at = looked_at
        self._beginnings: dict[str, Beginning] = {}

    def again(self, name: str) -> Fleet:
        if name not in self._beginnings:
            driver, settings, workers = BEGINNINGS[name]
            self._looked_at.clear()
            self._beginnings[name] = Beginning(BUILD[driver](settings, workers))
        fleet = self._beginnings[name].again()
        self._looked_at[:] = [fleet]
        return fleet


@pytest.fixture(scope="module")
def fleets() -> Iterator[Fleets]:
    # Nobody sells capacity blocks here: a group of one is served by ordinary machines.
    with (
        played_pods() as looked_at,
        patch("stockyard.providers.clusters.eks.groups.capacity_type", lambda _: ON_DEMAND),
    ):
        yield Fleets(looked_at)


def named(plan: dict[str, Any]) -> set[str]:
    return {entry["name"] for entry in plan["deletes"] if entry["kind"] in ("node", "member")}


def carry_out(fleet: Fleet, case: Case) -> None:
    before = fleet.cluster.operation_id
    fleet.patch(case.patch)
    upgrades = case.field == VERSION
    if upgrades and isinstance(fleet, Ec2Fleet):
        fleet.serves("v1.35.4")
    if fleet.cluster.operation_id != before and fleet.operation.kind != "retag_cluster":
        change, upgrade = CHANGES[fleet.driver]
        last_state = fleet.drive(upgrade if upgrades else change)
        assert last_state in ("changed", "upgraded"), (str(case), last_state, fleet.operation.error)
    settle(fleet)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_plan_names_the_nodes_that_leave(
    fleets: Fleets, beginning: str, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    figures, wrong = Counter[str](), dict[str, object]()
    for case in (case for case in CASES if case.beginning == beginning and not (case.refused or case.still)):
        fleet = fleets.again(beginning)
        plan, before = fleet.plan(case.patch), node_names(fleet)
        names = named(plan)
        ordered = case.is_order and not plan["changes"]
        if case.is_order and case not in LAST_ORDERS and not soaking:
            wrong |= {str(case): "the order means something, and the plan does not say so"} if ordered else {}
            continue
        carry_out(fleet, case)
        left_nodes = before - node_names(fleet)
        if ordered or left_nodes != names or fleet.cluster.status != "ready":
            wrong[str(case)] = {"named": sorted(names), "left": sorted(left_nodes), "changes": plan["changes"]}
        figures.update(cases=1, replacing=bool(names), nodes=len(names))
    record_property(f"figure:changes_{beginning}", dict(figures))
    assert wrong == {}


def test_another_order_of_a_set_is_no_change(fleets: Fleets) -> None:
    wrong = {}
    for case in (case for case in CASES if case.still):
        fleet = fleets.again(case.beginning)
        plan, operation = fleet.plan(case.patch), fleet.cluster.operation_id
        fleet.patch(case.patch)
        if plan["changes"] or plan["deletes"] or plan["creates"] or fleet.cluster.operation_id != operation:
            wrong[str(case)] = plan
    assert wrong == {}


def test_what_cannot_change_is_refused_by_its_name(fleets: Fleets) -> None:
    for case in (case for case in CASES if case.refused):
        fleet = fleets.again(case.beginning)
        with pytest.raises(InvalidInput) as refused:
            fleet.plan(case.patch)
        assert all(
            fault.pointer.startswith(f"/settings/{case.field.partition('.')[0]}") for fault in refused.value.errors
        )


def test_each_field_that_may_change_has_a_case() -> None:
    for driver in drivers():
        (model,) = set(settings_models(driver=driver))
        own = {name for name, (each, *_) in BEGINNINGS.items() if each == driver}
        told_fields = {_without_group(case.field) for case in CASES if case.beginning in own}
        assert bool(model.CHANGEABLE) == bool(own), f"clusters of {driver} may change, and no case has one"
        assert not own or changeable_fields(driver) - told_fields == set()


def _without_group(name: str) -> str:
    parts = name.split(".")
    return f"{parts[0]}.{parts[2]}" if len(parts) > 2 else name
