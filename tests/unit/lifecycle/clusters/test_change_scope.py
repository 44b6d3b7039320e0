"""Faults of a standing cluster, and the changes that each of them refuses."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.lifecycle.clusters.change_scope import speaks_against

GROUP = "/settings/autoscaler_node_groups/1"
LABELS, TYPES = f"{GROUP}/labels", f"{GROUP}/instance_types"
KEY, IMAGE, ACCOUNT = "/settings/key_pair", "/settings/image", "/cloud_account_id"


def change(pointer: str, after: Any = "other") -> dict[str, Any]:
    return {"pointer": pointer, "before": None, "after": after}


@pytest.mark.parametrize(
    ("pointer", "changed", "refused"),
    [
        (f"{TYPES}/0", LABELS, False),
        (f"{TYPES}/0", TYPES, True),
        (f"{TYPES}/0", GROUP, True),
        (f"{TYPES}/0", "/settings/autoscaler_node_groups/10", False),
        (GROUP, LABELS, True),
        (f"{TYPES}/0", "/kubernetes_version", False),
        (IMAGE, LABELS, False),
        (IMAGE, "/kubernetes_version", True),
        (IMAGE, "/settings/control_plane_size", True),
        (IMAGE, "/repave", True),
        (IMAGE, "/profiles", False),
        (ACCOUNT, LABELS, False),
        (ACCOUNT, f"{GROUP}/max_size", False),
        (ACCOUNT, GROUP, True),
        (ACCOUNT, f"{GROUP}/capacity_reservation_id", True),
        (ACCOUNT, "/profiles", False),
        (ACCOUNT, "/settings/zones", True),
        (ACCOUNT, "/kubernetes_version", True),
        ("/settings/zones", "/settings/api_cidrs", False),
    ],
)
def test_a_fault_refuses_the_change_that_touches_it(pointer: str, changed: str, *, refused: bool) -> None:
    assert speaks_against(pointer, [change(changed)]) is refused


def test_what_machines_can_do_without_refuses_a_change_of_itself_alone() -> None:
    assert not speaks_against(KEY, [change("/kubernetes_version"), change(LABELS)], dispensable=True)
    assert speaks_against(KEY, [change(KEY)], dispensable=True)


def test_a_fault_of_the_account_refuses_nothing_that_goes() -> None:
    assert not speaks_against(ACCOUNT, [change(GROUP, None)])
