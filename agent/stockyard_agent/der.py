"""The elements of DER (X.690), as strictly as reading what others signed needs: definite, shortest lengths only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SEQUENCE, SET = 0x30, 0x31
INTEGER, BIT_STRING, OCTET_STRING, OBJECT, UTF8, PRINTABLE = 0x02, 0x03, 0x04, 0x06, 0x0C, 0x13
_MANY_BYTES, _LONG_TAG = 0x80, 0x1F


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its tag, its content, and both as they are encoded."""

    tag: int
    content: bytes
    encoded: bytes

    def expected(self, tag: int) -> Element:
        """Itself. Raises ``ValueError`` when it has another tag."""
        if self.tag != tag:
            raise ValueError(f"tag {tag:#x} is needed, this is {self.tag:#x}")
        return self

    def parts(self) -> list[Element]:
        """The elements that it consists of. Raises ``ValueError``."""
        return list(_elements(self.content))


def whole(data: bytes) -> Element:
    """The one element that ``data`` is. Raises ``ValueError``, also when something follows it."""
    elements = list(_elements(data))
    if len(elements) != 1:
        raise ValueError(f"one element is needed, these are {len(elements)}")
    return elements[0]


def _elements(data: bytes) -> Iterator[Element]:
    position = 0
    while position < len(data):
        start, length = _head(data, position)
        end = start + length
        if end > len(data):
            raise ValueError("it is cut off")
        yield Element(data[position], data[start:end], data[position:end])
        position = end


def _head(data: bytes, position: int) -> tuple[int, int]:
    """Position and length of an element's content."""
    if position + 2 > len(data):
        raise ValueError("it is cut off")
    if data[position] & _LONG_TAG == _LONG_TAG:
        raise ValueError("its tag has more than one byte")
    length, start = data[position + 1], position + 2
    if not length & _MANY_BYTES:
        return start, length
    size = length - _MANY_BYTES
    if not 1 <= size <= 4 or start + size > len(data):
        raise ValueError("it has a length that DER does not allow")
    length = int.from_bytes(data[start : start + size], "big")
    if length < _MANY_BYTES or length >> 8 * (size - 1) == 0:
        raise ValueError("it has a length that DER writes shorter")
    return start + size, length
