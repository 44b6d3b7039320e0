"""Time that a change takes here."""

from __future__ import annotations

import pytest

from local.aws.corrections.pace import MANAGED, SECONDS, scaled

OF_MACHINES = frozenset({"size sync", "rebalance", "launch", "next zone", "join", "end", "shutdown"})


def test_seconds_are_those_of_aws_scaled() -> None:
    assert {kind: scaled(0.5)(kind) for kind in SECONDS} == {kind: seconds / 2 for kind, seconds in SECONDS.items()}
    assert scaled(1)("other") == 0


@pytest.mark.parametrize("kind", SECONDS)
def test_managed_services_have_a_pace_of_their_own(kind: str) -> None:
    """Machines keep theirs: a node that joins is a program, which a test cannot hurry."""
    share = scaled(1, managed=0.25)(kind) / SECONDS[kind]
    assert share == (1 if kind in OF_MACHINES else 0.25)
    assert all(any(each.startswith(name) for each in SECONDS) for name in MANAGED)
