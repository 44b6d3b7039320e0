"""Work that is done once and charged each time: what thousands of clusters repeat, at the CPU time that it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from botocore.session import Session

from stockyard.adapters.dynamodb import codec

Item = Mapping[str, Any]
REAL_CLIENTS = 2
"""So many clients of a service are really made: the first one's time has the reading of the service's model in it."""


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
class _Clients:
    """Clients of one service that were really made, and the CPU seconds of the last."""

    real: list[Any] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class Shortcuts:
    """``charge`` adds CPU seconds to the invocation under way; ``keeps`` says whether the table has this very item.

    A record is decoded again only when its item has changed, and a service's client is made twice: that of any further
    session is a copy with the session's keys.
    """

    charge: Callable[[float], None]
    keeps: Callable[[Item], bool]
    _records: dict[tuple[int, type], tuple[Item, Any]] = field(default_factory=dict)
    """Records of items that are in the table, by the item's identity: the item stands beside it, so that it stays."""
    _clients: dict[tuple[object, ...], _Clients] = field(default_factory=dict)
    _costs: dict[object, Cost] = field(default_factory=dict)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside this context the shortcuts are taken."""
        decode: Callable[[Any, Item], Any] = codec.from_item
        make: Callable[..., Any] = Session.create_client

        def record(kind: type, item: Item) -> Any:
            there = self._records.get((id(item), kind))
            if there is not None:
                self.charge(self._costs[kind].mean)
                return there[1]
            if not self.keeps(item):
                return decode(kind, item)
            cost = self._costs.setdefault(kind, Cost())
            decoded = cost.timed(lambda: decode(kind, item))
            self._records[id(item), kind] = item, decoded
            return decoded

        def client(session: Any, service: str, **named: Any) -> Any:
            if set(named) != {"region_name", "config"}:
                return make(session, service, **named)
            there = self._clients.setdefault((service, named["region_name"], id(named["config"])), _Clients())
            if len(there.real) < REAL_CLIENTS:
                cost = Cost()
                there.real.append(cost.timed(lambda: make(session, service, **named)))
                there.seconds = cost.mean
                return there.real[-1]
            self.charge(there.seconds)
            return _with_keys_of(session, there.real[-1])

        with patch.object(codec, "from_item", record), patch.object(Session, "create_client", client):
            yield

    def forget(self, old: Item | None, _: Item | None) -> None:
        """An item is there no more."""
        if old is not None:
            self._records.pop((id(old), codec.KINDS.get(old["kind"]["S"], object)), None)


def _with_keys_of(session: Any, client: Any) -> Any:
    """A copy of a client that has the keys of another session."""
    other = object.__new__(type(client))
    signer = SimpleNamespace(_credentials=session.get_credentials())
    other.__dict__.update(client.__dict__, _request_signer=signer)
    return other
