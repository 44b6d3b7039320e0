"""Posts of agents whose nodes are as in their last one: such a list is read once, and charged each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from benchmarks.virtual_fleet.shortcuts import Cost
from stockyard.edge import serve

PLAYED = "played"
"""The member of a played event that has the post."""


@dataclass(frozen=True, slots=True)
class Post:
    """A post of a cluster's agent. ``nodes`` is the text of its list, which a ``repeated`` one leaves out."""

    cluster: str
    nodes: str
    repeated: bool


@dataclass
class Posts:
    """``charge`` adds CPU seconds to the invocation under way: those that the list would have taken."""

    charge: Callable[[float], None]
    _nodes: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """The last list that was read of each cluster, as text and as models."""
    _cost: Cost = field(default_factory=Cost)

    def of(self, cluster: str, nodes: str) -> Post:
        """The next post of a cluster."""
        return Post(cluster, nodes, cluster in self._nodes and self._nodes[cluster][0] == nodes)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside this context lists that are repeated are not read."""
        read: Callable[[Any], Any] = vars(serve)["read_content"]

        def content(call: Any) -> Any:
            post: Post | None = call.event.get(PLAYED)
            if post is None:
                return read(call)
            if not post.repeated:
                whole = self._cost.timed(lambda: read(call))
                self._nodes[post.cluster] = post.nodes, whole.model.nodes
                return whole
            began = time.thread_time()
            part = read(call)
            self.charge(max(0.0, self._cost.mean - (time.thread_time() - began)))
            return replace(part, model=part.model.model_copy(update={"nodes": self._nodes[post.cluster][1]}))

        with patch.object(serve, "read_content", content):
            yield
