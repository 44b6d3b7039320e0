"""Work that is done once and charged each time: what thousands of clusters repeat, at the CPU time that it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from botocore.client import ClientCreator

from stockyard.adapters.dynamodb import codec

Item = Mapping[str, Any]


@dataclass
class Cost:
    """Mean CPU seconds of what was really done."""

    seconds: float = 0.0
    times: int = 0

    def timed(self, work: Callable[[], Any]) -> Any:
        """The answer of the work, whose time counts."""
        began = time.thread_time()
        answer = work()
        self.seconds, self.times = self.seconds + time.thread_time() - began, self.times + 1
        return answer

    @property
    def mean(self) -> float:
        """Seconds of one time."""
        return self.seconds / self.times


@dataclass
class Shortcuts:
    """``charge`` adds CPU seconds to the invocation under way; ``keeps`` says whether the table has this very item.

    A record is decoded again only when its item has changed, and the class of a service's clients is made once: without
    this botocore makes it for each client.
    """

    charge: Callable[[float], None]
    keeps: Callable[[Item], bool]
    _records: dict[tuple[int, type], Any] = field(default_factory=dict)
    _classes: dict[str, Any] = field(default_factory=dict)
    _costs: dict[object, Cost] = field(default_factory=dict)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside this context the shortcuts are taken."""
        decode: Callable[[Any, Item], Any] = codec.from_item
        make: Callable[[Any, str, Any], Any] = ClientCreator._create_client_class  # type: ignore[attr-defined]

        def record(kind: type, item: Item) -> Any:
            if not self.keeps(item):
                return decode(kind, item)
            return self._once(self._records, (id(item), kind), kind, lambda: decode(kind, item))

        def client_class(creator: Any, service: str, model: Any) -> Any:
            return self._once(self._classes, service, service, lambda: make(creator, service, model))

        with (
            patch.object(codec, "from_item", record),
            patch.object(ClientCreator, "_create_client_class", client_class),
        ):
            yield

    def forget(self, old: Item | None, _: Item | None) -> None:
        """An item is there no more."""
        if old is not None:
            self._records.pop((id(old), codec.KINDS.get(old["kind"]["S"], object)), None)

    def _once(self, there: dict[Any, Any], key: Any, kind: object, work: Callable[[], Any]) -> Any:
        cost = self._costs.setdefault(kind, Cost())
        if key in there:
            self.charge(cost.mean)
        else:
            there[key] = cost.timed(work)
        return there[key]
