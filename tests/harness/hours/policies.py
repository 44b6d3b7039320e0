"""Policies that decide in simulated hours what is consolidated: the product, nobody, or Karpenter's rule of
prefixes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from local.testing.prefix_rule import prefix_decision
from stockyard.operations.fleet.disruption import decide
from stockyard.scheduling.consolidation.model import Decision, Fleet, Settings
from stockyard.scheduling.consolidation.search import consolidate

PRODUCT, NEVER, PREFIX = "product", "never", "prefix"
POLICIES = (PRODUCT, NEVER, PREFIX)
Rule = Callable[[Fleet, Settings | None], Decision | None]


@contextmanager
def deciding(policy: str) -> Iterator[None]:
    """Within it decisions are those of the policy. Of ``NEVER`` the pools have to say that nothing is consolidated."""
    rule: Rule = (lambda fleet, _: prefix_decision(fleet)) if policy == PREFIX else consolidate
    with patch.object(decide, "consolidate", _Remembered(rule)):
        yield


class _Remembered:
    """A rule of what to consolidate. Of a fleet that was asked about just before it is not asked again: it has no other
    answer for the same fleet."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._last: deque[tuple[Fleet, Settings | None, Decision | None]] = deque(maxlen=3)

    def __call__(self, fleet: Fleet, settings: Settings | None = None) -> Decision | None:
        """The decision for the fleet."""
        for earlier, earlier_settings, decision in self._last:
            if (earlier, earlier_settings) == (fleet, settings):
                return decision
        decision = self._rule(fleet, settings)
        self._last.append((fleet, settings, decision))
        return decision
