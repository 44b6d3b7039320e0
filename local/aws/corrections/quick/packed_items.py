"""Items of DynamoDB that nobody has used for a while are kept packed: moto's objects take twenty times their text."""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict

from local.aws.corrections.quick.tables import plain_value

LATELY_USED = 1000
"""How many items stay as they are; more than any call reads at once and changes."""


@contextmanager
def packed_items() -> Iterator[None]:
    """Inside this context ``attrs`` of an item are unpacked when they are asked for."""
    with patch.object(Item, "attrs", _Attributes(), create=True):
        yield


class _Attributes:
    """The attribute ``attrs`` of all items. An item that is put off is packed whatever has changed in it."""

    def __init__(self) -> None:
        self._lately_used: OrderedDict[int, Any] = OrderedDict()
        self._lock = threading.RLock()

    def __get__(self, item: Any, _: Any) -> Any:
        with self._lock:
            attributes = item.__dict__["attrs"]
            if isinstance(attributes, bytes):
                attributes = item.__dict__["attrs"] = _unpacked(attributes)
            self._use(item)
        return attributes

    def __set__(self, item: Any, attributes: Any) -> None:
        with self._lock:
            item.__dict__["attrs"] = attributes
            self._use(item)

    def _use(self, item: Any) -> None:
        self._lately_used[id(item)] = item
        self._lately_used.move_to_end(id(item))
        if len(self._lately_used) > LATELY_USED:
            _, oldest = self._lately_used.popitem(last=False)
            oldest.__dict__["attrs"] = _packed(oldest.__dict__["attrs"])


def _packed(attributes: Any) -> Any:
    """The attributes as compressed JSON; as they are when they have what JSON has not."""
    try:
        text = json.dumps({name: plain_value(value) for name, value in attributes.items()})
    except TypeError:
        return attributes
    return zlib.compress(text.encode(), 1)


def _unpacked(packed: bytes) -> Any:
    return LimitedSizeDict({name: DynamoType(value) for name, value in json.loads(zlib.decompress(packed)).items()})
