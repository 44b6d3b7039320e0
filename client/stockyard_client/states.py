"""States of operations and pools, as programs ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockyard_client.base_models import READY, STATIC

if TYPE_CHECKING:
    from stockyard_client.part_models import Condition, PoolNodes


class OperationState:
    """State of an operation, in a word."""

    if TYPE_CHECKING:
        status: str

    @property
    def done(self) -> bool:
        """Whether nothing more will happen without a person."""
        return self.status in {"succeeded", "failed", "cancelled", "reverted"}


class PoolState:
    """State of a pool, in a word."""

    if TYPE_CHECKING:
        kind: str
        nodes: PoolNodes
        conditions: tuple[Condition, ...]

    @property
    def condition(self) -> Condition | None:
        """The condition that says whether it has its nodes; None until the pool was looked at."""
        return next((condition for condition in self.conditions if condition.type == READY), None)

    @property
    def ready(self) -> bool:
        """Whether it has the nodes that it has to have now.

        The condition alone may be of a moment before the pool was changed, so the nodes are counted as well.
        """
        counted = self.nodes.available >= self.nodes.desired
        exact = self.kind != STATIC or self.nodes.claims == self.nodes.desired
        return counted and exact and self.condition is not None and self.condition.status == "True"
