"""Frozen dataclasses whose methods wait behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import KW_ONLY, field, fields, replace
from typing import Any, ClassVar

import pytest

from stockyard.domain.values.frozen import dataclass


def _point() -> type[Any]:
    """A class that nobody has used yet."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """A place."""

        x: int
        y: int = 2
        tags: tuple[str, ...] = field(default_factory=tuple, repr=False)
        _: KW_ONLY
        note: str | None = field(default=None, compare=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError(self.x)

        @property
        def total(self) -> int:
            return self.x + self.y

    return Point


@dataclass(frozen=True, slots=True)
class Named:
    """Something with a name."""

    name: str


@dataclass(frozen=True, slots=True)
class Numbered(Named):
    """Something with a number too."""

    number: int = 0


def test_values_are_made_compared_shown_and_hashed():
    point_class = _point()
    point = point_class(1, note="a")
    assert (point.x, point.y, point.tags, point.note, point.total) == (1, 2, (), "a", 3)
    assert point == point_class(1, 2) != point_class(1, 3)
    assert hash(point) == hash(point_class(1))
    assert repr(point).endswith("Point(x=1, y=2, note='a')")
    assert replace(point, y=5) == point_class(x=1, y=5)
    assert [each.name for each in fields(point_class)] == ["x", "y", "tags", "note"]
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "tags": (), "note": "a"}
    for wrong in (point_class, lambda: point_class(1, 2, (), "a"), lambda: point_class(1, other=1)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="-1"):
        point_class(-1)


@pytest.mark.parametrize("first", ["__repr__", "__eq__", "__hash__"])
def test_any_method_may_be_the_first(first: str):
    """A copy is made without ``__init__``."""
    point_class = _point()
    bare = object.__new__(point_class)
    bare.__setstate__([1, 2, (), None])
    arguments = (bare,) if first == "__eq__" else ()
    assert getattr(bare, first)(*arguments)
    assert bare == point_class(1)


def test_nothing_can_be_changed_and_copies_can_be_made():
    point = _point()(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del point.x
    assert copy.copy(point) == copy.deepcopy(point) == point
    assert not hasattr(point, "__dict__")


def test_a_class_may_inherit():
    numbered = Numbered("a", 1)
    assert (numbered.name, numbered) == ("a", Numbered("a", 1))
    assert numbered != Named("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        numbered.number = 2
    assert copy.deepcopy(numbered) == numbered
    assert hash(numbered) == hash(Numbered("a", 1))
    assert repr(numbered) == "Numbered(name='a', number=1)"


def test_other_options_and_own_methods_are_the_standard_librarys():
    @dataclass
    class Open:
        """May be changed."""

        x: int = 1

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        """Has an order."""

        x: int = 1

    @dataclass(frozen=True)
    class Own:
        """Compares by itself."""

        x: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    thing = Open()
    thing.x = 2
    assert thing == Open(2)
    assert Ordered(1) < Ordered(2)
    assert Own(1) == Own(2)
    assert hash(Own(1)) == 7


def test_nothing_is_made_of_a_class_before_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of its bases: what the standard library makes of a class is most of what it costs to import it."""
    names: list[str] = []
    make = dataclasses._process_class  # type: ignore[attr-defined]

    def process(cls: type, *arguments: Any) -> Any:
        names.append(cls.__name__)
        return make(cls, *arguments)

    monkeypatch.setattr(dataclasses, "_process_class", process)
    point_class = _point()

    @dataclass(frozen=True, slots=True)
    class Further(point_class):  # type: ignore[valid-type]
        """Another place."""

        z: int = 0
        kind: ClassVar[str] = "far"

    assert names == []
    assert [each.name for each in fields(Further)] == ["x", "y", "tags", "note", "z"]
    assert sorted(names) == ["Further", "Point"]
    assert (Further.kind, Further.__match_args__) == ("far", ("x", "y", "tags", "z"))


def test_defaults_of_a_class_without_slots_are_its_own():
    @dataclass(frozen=True)
    class Open:
        """Has room for more."""

        x: int
        y: int = 2
        z: int = field(default=3, repr=False)
        tags: list[str] = field(default_factory=list)

    assert (Open.y, Open.z, hasattr(Open, "tags")) == (2, 3, False)
    assert Open(1) == Open(1, 2, 3, [])
    assert Open(1).__dict__ == {"x": 1, "y": 2, "z": 3, "tags": []}
