"""Mapping of the node groups of a kind of cluster to pools: what each kind of cluster with groups has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from stockyard.domain.pools.records import NewPool, Pool

Group = Mapping[str, Any]
"""An entry of a cluster's checked settings."""


class GroupMapping(Protocol):
    """Mapping of the node groups of a kind of cluster to pools."""

    def pool_of_group(self, group: Group, provider: str = "") -> NewPool:
        """The pool of a worker group; ``provider`` is who serves it."""
        ...

    def group_of_pool(self, pool: NewPool | Pool) -> dict[str, Any]:
        """The pool as an entry of ``autoscaler_node_groups``: what such an entry can say of it."""
        ...

    def remakes(self, before: NewPool | Pool, after: NewPool | Pool) -> bool:
        """Whether this change replaces all machines of the pool, and not only those with another template or other
        requirements."""
        ...
