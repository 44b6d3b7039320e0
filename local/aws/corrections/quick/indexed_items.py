"""The items of a moto DynamoDB table, found by the partitions of its indexes without reading all items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

IndexKey = tuple[str, Any]
"""An index's hash attribute, and a value of it."""


class IndexedItems(defaultdict[Any, dict[Any, Any]]):
    """Items by hash key and range key, as moto keeps them. ``at`` also has the items of each partition of an index.

    ``names`` are the hash attributes of the indexes.
    """

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self.names = names
        self.at: defaultdict[IndexKey, dict[int, Any]] = defaultdict(dict)

    def __missing__(self, hash_key: Any) -> dict[Any, Any]:
        rows = self[hash_key] = _Rows(self)
        return rows

    def clear(self) -> None:
        """Removes all items."""
        self.at.clear()
        super().clear()


class _Rows(dict[Any, Any]):
    """The items of one hash key, with each item's entries in the indexes, because moto changes items in place."""

    def __init__(self, items: IndexedItems) -> None:
        super().__init__()
        self._items = items
        self._index_keys: dict[Any, tuple[int, list[IndexKey]]] = {}

    def __setitem__(self, key: Any, item: Any) -> None:
        super().__setitem__(key, item)
        self.look_again(key)

    def pop(self, key: Any, *default: Any) -> Any:
        self._forget(key)
        return super().pop(key, *default)

    def look_again(self, key: Any) -> None:
        """Updates the indexes after an item was replaced or changed."""
        self._forget(key)
        item = self.get(key)
        if item is None:
            return
        index_keys = [(name, value.value) for name in self._items.names if (value := item.attrs.get(name)) is not None]
        if index_keys:
            self._index_keys[key] = (id(item), index_keys)
            for index_key in index_keys:
                self._items.at[index_key][id(item)] = item

    def _forget(self, key: Any) -> None:
        number, index_keys = self._index_keys.pop(key, (0, []))
        for index_key in index_keys:
            rows = self._items.at[index_key]
            rows.pop(number, None)
            if not rows:
                del self._items.at[index_key]


def indexing(original: Callable[..., None]) -> Callable[..., None]:
    """``Table.__init__`` for tables with a range key whose indexes never change, as our tables."""

    def init(table: Any, *arguments: Any, **named: Any) -> None:
        original(table, *arguments, **named)
        if table.has_range_key and table.global_indexes:
            keys = (key for index in table.global_indexes for key in index.schema if key["KeyType"] == "HASH")
            table.items = IndexedItems(frozenset(key["AttributeName"] for key in keys))

    return init


def looking_again(original: Callable[..., Any], dynamo_type: Callable[[Any], Any]) -> Callable[..., Any]:
    """``DynamoDBBackend.update_item``, which changes an item in place."""

    def update_item(backend: Any, table_name: str, key: Mapping[str, Any], *arguments: Any, **named: Any) -> Any:
        try:
            return original(backend, table_name, key, *arguments, **named)
        finally:
            table = backend.get_table(table_name)
            if isinstance(table.items, IndexedItems) and table.range_key_attr in key:
                hash_key, range_key = (dynamo_type(key[name]) for name in (table.hash_key_attr, table.range_key_attr))
                rows = table.items.get(hash_key)
                if isinstance(rows, _Rows):
                    rows.look_again(range_key)

    return update_item


def candidates(items: Any, conditions: Any) -> list[Any]:
    """The items with these attributes, as pairs (name, value) with the index's hash attribute first."""
    equalities = [(name, value.value) for name, value in conditions or ()]
    index_key = next(
        (condition for condition in equalities if isinstance(items, IndexedItems) and condition[0] in items.names), None
    )
    if index_key is not None:
        matches = list(items.at[index_key].values()) if index_key in items.at else []
    else:
        matches = [item for rows in items.values() for item in rows.values()]
    for name, value in equalities:
        matches = [
            item for item in matches if (attribute := item.attrs.get(name)) is not None and attribute.value == value
        ]
    return matches
