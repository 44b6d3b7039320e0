"""The state of a world in memory at one moment, to which it can be brought back: quicker than to build it again."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.testing.memory_store import MemoryTable


@dataclass(frozen=True)
class Checkpoint:
    """Attributes of some objects at a moment. The objects themselves stay, since others know them."""

    contents: Sequence[tuple[Any, Mapping[str, Any]]]
    originals: Mapping[int, Any]
    """What is never copied, by its ``id``."""

    @classmethod
    def of(cls, *objects: Any, shared: Sequence[Any] = ()) -> Checkpoint:
        """The state of the objects now. What is ``shared`` does not change."""
        originals = {id(each): each for each in (*objects, *shared)}
        return cls([(each, _copied(each, vars(each), originals)) for each in objects], originals)

    def restore(self) -> None:
        """Let the objects be as they were."""
        for each, content in self.contents:
            state = _copied(each, content, self.originals)
            vars(each).clear()
            vars(each).update(state)


def _copied(each: Any, content: Mapping[str, Any], originals: Mapping[int, Any]) -> dict[str, Any]:
    if not isinstance(each, MemoryTable):
        return copy.deepcopy(dict(content), dict(originals))
    # A write puts another item in an item's place, so the items can be shared.
    partitions = copy.copy(content["partitions"])
    partitions.update({name: dict(items) for name, items in content["partitions"].items()})
    return {**content, "partitions": partitions}
