"""A replay keeps to the numbers of the product's passes."""

from __future__ import annotations

from stockyard.operations.fleet.disruption import carry_out, give_up, hopeless, run
from stockyard.operations.machines import pending_pods
from stockyard.scheduling.consolidation import pace

OWNERS = (carry_out, give_up, hopeless, run, pending_pods)
DIFFER = {"LONGEST_SECONDS"}
"""The module ``run`` has a number of this name that means something else: it is compared by itself."""


def test_each_number_of_a_replay_is_that_of_the_passes():
    numbers = {name for name in vars(pace) if name.endswith(("_SECONDS", "_NODES"))}
    assert len(numbers) > 10
    for name in sorted(numbers - DIFFER):
        own = {owner.__name__: vars(owner)[name] for owner in OWNERS if name in vars(owner)}
        assert own, f"no pass knows {name}"
        assert set(own.values()) == {getattr(pace, name)}, (name, own)


def test_what_is_held_back_longest_is_the_same_by_reason():
    assert {reason: give_up.LONGEST_SECONDS[reason] for reason in pace.LONGEST_SECONDS} == pace.LONGEST_SECONDS
