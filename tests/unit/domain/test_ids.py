"""Identifiers sort by their moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stockyard.domain import ids

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [-3600, -61, -59, 0, 1, 3600])
def test_what_is_a_minute_older_or_more_sorts_before_what_is_told_of_a_thing(seconds: int) -> None:
    """The clocks of those who made the two may differ."""
    cluster = ids.make(ids.CLUSTER, NOON, b"\xff" * 10)
    event = ids.make(ids.EVENT, NOON + timedelta(seconds=seconds), b"\x00" * 10)
    assert (event > ids.moment(ids.EVENT, cluster)) == (seconds > -60)


def test_identifiers_have_their_form_and_follow_from_the_same_input() -> None:
    made = ids.make(ids.CLUSTER, NOON, b"\x01" * 10)
    derived = ids.derive(ids.NODE_ENVIRONMENT, made, "npr_1")
    assert ids.is_id(made)
    assert ids.is_id(derived)
    assert derived == ids.derive(ids.NODE_ENVIRONMENT, made, "npr_1") != ids.derive(ids.NODE_ENVIRONMENT, made, "x")
    assert derived[4:14] == made[4:14]
    with pytest.raises(ValueError, match="10 random bytes"):
        ids.ulid(NOON, b"short")
