"""Changes of a ready cluster, of records alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import Cluster, Operation, PhaseRecord
from stockyard.errors import IllegalTransition, InvalidInput
from stockyard.lifecycle.clusters.cluster_changes import differences, is_unfinished, kind_of

GROUPS: list[dict[str, Any]] = [{"name": "a", "max_size": 2, "labels": {}}, {"name": "b", "max_size": 1, "labels": {}}]
CLUSTER = Cluster(
    id="clu_1",
    name="demo",
    description="",
    cluster_type="k8s",
    provider="aws",
    cloud_account_id=1,
    client_id="c",
    status="ready",
    settings={"support": "standard", "mirror": True, "node_groups": GROUPS},
    created_at="",
    updated_at="",
    kubernetes_version="1.34",
)


def with_settings(**settings: Any) -> Cluster:
    return replace(CLUSTER, settings={**CLUSTER.settings, **settings})


def operation(
    kind: str = "upgrade_cluster", status: str = "failed", state: str = "pending", attempt: int = 0
) -> Operation:
    phases = (PhaseRecord("checks", "failed", attempt=1), PhaseRecord("control_plane", state, attempt=attempt))
    changes = ({"pointer": "/kubernetes_version", "before": "1.33", "after": "1.34"},)
    return Operation("op_1", kind, "clu_1", status, phases, "", "", "user:ann", changes=changes)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (CLUSTER, None),
        (with_settings(mirror=False), None),
        (replace(CLUSTER, description="x", tags={"a": "b"}), None),
        (with_settings(support="extended"), "change_cluster"),
        (replace(CLUSTER, kubernetes_version="1.35"), "upgrade_cluster"),
        (replace(with_settings(support="extended"), kubernetes_version="1.35"), "upgrade_cluster"),
    ],
)
def test_kind_follows_from_what_differs(target: Cluster, kind: str | None) -> None:
    assert kind_of(CLUSTER, target, None, again=False) == kind


def test_what_has_failed_is_begun_anew_when_it_is_asked_for_again() -> None:
    failed = operation("change_cluster")
    assert kind_of(CLUSTER, CLUSTER, failed, again=True) == "change_cluster"
    assert kind_of(CLUSTER, CLUSTER, failed, again=False) is None
    assert kind_of(CLUSTER, CLUSTER, operation("change_cluster", "succeeded"), again=True) is None
    assert kind_of(CLUSTER, CLUSTER, operation("retag_cluster"), again=True) is None


def test_an_upgrade_is_taken_back_only_while_nothing_is_touched() -> None:
    back = replace(CLUSTER, kubernetes_version="1.33")
    assert kind_of(CLUSTER, back, operation(), again=True) == "change_cluster"
    for touched in (operation(state="failed", attempt=1), operation(state="pending", attempt=1)):
        with pytest.raises(IllegalTransition, match="op_1"):
            kind_of(CLUSTER, back, touched, again=True)
    with pytest.raises(InvalidInput):
        kind_of(CLUSTER, back, operation(status="succeeded"), again=True)


def test_unfinished_are_changes_that_have_failed() -> None:
    assert is_unfinished(operation())
    assert not any(map(is_unfinished, (None, operation(status="running"), operation("create_cluster"))))


def test_differences_are_told_field_by_field() -> None:
    later = [{"name": "c", "max_size": 1, "labels": {}}, {"name": "a", "max_size": 3, "labels": {"x": "y"}}]
    target = replace(with_settings(node_groups=later, support="extended"), kubernetes_version="1.35")
    assert differences(CLUSTER, target) == [
        {"pointer": "/kubernetes_version", "before": "1.34", "after": "1.35"},
        {"pointer": "/settings/support", "before": "standard", "after": "extended"},
        {"pointer": "/settings/node_groups/0", "before": None, "after": later[0]},
        {"pointer": "/settings/node_groups/1/labels", "before": {}, "after": {"x": "y"}},
        {"pointer": "/settings/node_groups/1/max_size", "before": 2, "after": 3},
        {"pointer": "/settings/node_groups/1", "before": GROUPS[1], "after": None},
    ]
    assert differences(CLUSTER, CLUSTER) == []


def test_the_order_of_what_is_a_set_is_no_change() -> None:
    zones, taints = ["b", "a"], [{"key": "y", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"}]
    groups = [{"name": name, "zones": zones, "taints": taints} for name in ("one", "two")]
    before = with_settings(zones=zones, api_cidrs=["198.51.100.0/24", "0.0.0.0/0"], node_groups=groups)
    turned = [{**group, "zones": zones[::-1], "taints": taints[::-1]} for group in groups[::-1]]
    after = with_settings(zones=zones[::-1], api_cidrs=["0.0.0.0/0", "198.51.100.0/24"], node_groups=turned)
    assert differences(before, after) == []
    assert kind_of(before, after, None, again=False) is None
    types = with_settings(node_groups=[{"name": "one", "instance_types": ["m6i.large", "m5.large"]}])
    other = with_settings(node_groups=[{"name": "one", "instance_types": ["m5.large", "m6i.large"]}])
    assert [change["pointer"] for change in differences(types, other)] == ["/settings/node_groups/0/instance_types"]
