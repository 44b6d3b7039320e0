"""The cluster whose agent reports its pods and nodes, as passes over pools have it."""

from __future__ import annotations

from tests.unit.operations.fleet.pools.conftest import agent, yard

__all__ = ["agent", "yard"]
