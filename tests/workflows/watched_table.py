"""A tenant's store and the index of what is due, each call of which a life may count or spoil."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from stockyard.ports import Write

T = TypeVar("T")


class Life(Protocol):
    """Tap that calls pass through."""

    def called(self, name: str, work: Callable[[], T]) -> T:
        """Does a call of that name."""

    def written(self, writes: tuple[Write, ...]) -> None:
        """Sees what was written."""


@dataclass
class WatchedStore:
    """The tenant's store: calls pass through a life's tap, and the life sees what is written."""

    store: Any
    life: Life

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def get(self, *args: Any) -> Any:
        return self.life.called("GetItem", lambda: self.store.get(*args))

    def get_all(self, *args: Any, **options: Any) -> Any:
        return self.life.called("BatchGetItem", lambda: self.store.get_all(*args, **options))

    def get_together(self, *args: Any) -> Any:
        return self.life.called("BatchGetItem", lambda: self.store.get_together(*args))

    def list(self, *args: Any, **options: Any) -> Any:
        return self.life.called("Query", lambda: self.store.list(*args, **options))

    def commit(self, *writes: Write) -> None:
        def work() -> None:
            self.store.commit(*writes)
            self.life.written(writes)

        self.life.called("TransactWriteItems", work)


@dataclass
class WatchedRegistry:
    """Registry of what spans tenants; its index of what is due passes through the tap too."""

    registry: Any
    life: Life

    def __getattr__(self, name: str) -> Any:
        return getattr(self.registry, name)

    def due(self, *args: Any, **options: Any) -> Any:
        return self.life.called("Query", lambda: self.registry.due(*args, **options))
