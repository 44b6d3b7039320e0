"""Identifiers sort by their moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stockyard.domain.values import ids

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [-3600, -61, -59, 0, 1, 3600])
def test_lower_bound_includes_ids_up_to_a_minute_older(seconds: int) -> None:
    """The clocks of those who made the two may differ."""
    cluster = ids.make(ids.CLUSTER, NOON, b"\xff" * 10)
    event = ids.make(ids.EVENT, NOON + timedelta(seconds=seconds), b"\x00" * 10)
    assert (event > ids.lower_bound(ids.EVENT, cluster)) == (seconds > -60)


def test_derived_ids_are_valid_and_deterministic() -> None:
    parent = ids.make(ids.CLUSTER, NOON, b"\x01" * 10)
    derived = ids.derive(ids.NODE_ENVIRONMENT, parent, "npr_1")
    assert ids.is_id(parent)
    assert ids.is_id(derived)
    assert derived == ids.derive(ids.NODE_ENVIRONMENT, parent, "npr_1") != ids.derive(ids.NODE_ENVIRONMENT, parent, "x")
    assert derived[4:14] == parent[4:14]
    with pytest.raises(ValueError, match="10 random bytes"):
        ids.ulid(NOON, b"short")
