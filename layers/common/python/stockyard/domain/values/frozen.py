"""Frozen dataclasses that cost little to import: what the standard library makes of one is made at its first use.

The standard library looks at each field and compiles some six methods of each class while its module is imported. A
first request loads over a hundred such classes and uses a dozen, and what was made of the others was a third of its
cost. Here a class gets its slots at once, and all else when somebody asks for its fields or calls one of its methods.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_METHODS = ("__init__", "__repr__", "__eq__", "__hash__")
"""Methods that the standard library makes of a frozen class, and that wait here."""
_FACTS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
"""Facts of a class that the standard library keeps, and that wait here."""
_FIRST, _LATER = ("__init__", *_FACTS), _METHODS[1:]
"""Parts that are made together. Most classes of which a first request makes a value are never shown or compared."""
_OWN = {*_METHODS, *_FACTS, "__slots__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"}
_PLAIN = {"frozen", "slots", "kw_only"}
_INSTANCES = ("__dict__", "__weakref__")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        """The class as ``dataclasses.dataclass`` makes it. One that is not frozen, inherits from something else, or
        brings a method of its own in place of one that is made, is the standard library's whole. What is wrong with the
        fields of the others is raised at their first use."""
        if cls is None:
            return partial(dataclass, **options)
        if not _is_plain(cls, options):
            return dataclasses.dataclass(cls, **options)
        source = {name: value for name, value in vars(cls).items() if name not in _INSTANCES}
        own_fields = _own_fields(cls)
        record_class = _with_slots(cls, source, own_fields) if options.get("slots") else _with_defaults(cls, own_fields)
        kw_only = options.get("kw_only", False)
        for names in (_FIRST, _LATER):
            make = partial(_make, record_class, names, source, kw_only)
            for name in names:
                waiting = _waiting(record_class, name, make) if name in _METHODS else _Fact(record_class, name, make)
                setattr(record_class, name, waiting)
        _freeze(record_class, frozenset(own_fields))
        return record_class


def _is_plain(cls: Any, options: dict[str, Any]) -> bool:
    """Whether the class is one of those whose making can wait. To ask for the fields of a base would have it made."""
    bases = () if cls.__bases__ == (object,) else cls.__bases__
    return (
        options.get("frozen") is True
        and options.keys() <= _PLAIN
        and all("__dataclass_fields__" in vars(base) for base in bases)
        and bool(cls.__doc__)
        and not _OWN & vars(cls).keys()
        and all(isinstance(text, str) and "InitVar" not in text for text in _annotations(cls).values())
    )


def _annotations(cls: Any) -> dict[str, Any]:
    return dict(vars(cls).get("__annotations__", {}))


def _own_fields(cls: Any) -> Sequence[str]:
    """Names of the fields that the class itself declares. Annotations are text, as the postponed ones of a module."""
    return [name for name, text in _annotations(cls).items() if "ClassVar" not in text and "KW_ONLY" not in text]


def _with_slots(cls: Any, source: dict[str, Any], own_fields: Sequence[str]) -> Any:
    """The class with a slot for each field that no base has a slot for; a default cannot stand in its place."""
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    slots = tuple(name for name in own_fields if name not in inherited)
    namespace = {name: value for name, value in source.items() if name not in own_fields}
    record_class = type(cls)(cls.__name__, cls.__bases__, {**namespace, "__slots__": slots})
    record_class.__qualname__ = cls.__qualname__
    return record_class


def _with_defaults(cls: Any, own_fields: Sequence[str]) -> Any:
    """The class itself, with plain defaults in place of the descriptions of fields."""
    for name in own_fields:
        value = vars(cls).get(name)
        if isinstance(value, dataclasses.Field):
            if value.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
    return cls


def _make(record_class: Any, names: Sequence[str], source: dict[str, Any], kw_only: bool) -> None:
    """Have the standard library make these of a class."""
    # A class of the same fields, whose methods name no class: they are as good for this one.
    twin: Any = type(record_class.__name__, record_class.__bases__, dict(source))
    twin.__qualname__ = record_class.__qualname__
    later = names is _LATER
    dataclasses.dataclass(twin, frozen=True, kw_only=kw_only, init=not later, repr=later, eq=later)
    if not later:
        parameters = twin.__dataclass_params__
        parameters.repr = parameters.eq = True
    for name in names:
        setattr(record_class, name, vars(twin)[name])


class _Fact:
    """A fact of a class and its fields, made for whoever asks first."""

    __slots__ = ("_make", "_name", "_record_class")

    def __init__(self, record_class: Any, name: str, make: Callable[[], None]) -> None:
        self._record_class, self._name, self._make = record_class, name, make

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if vars(self._record_class)[self._name] is self:
            self._make()
        return vars(self._record_class)[self._name]


def _waiting(record_class: Any, name: str, make: Callable[[], None]) -> Callable[..., Any]:
    """Method that has all of the class made at its first call, and then is the one that was made."""

    def method(self: Any, /, *arguments: Any, **named: Any) -> Any:
        if vars(record_class)[name] is method:
            make()
        return vars(record_class)[name](self, *arguments, **named)

    method.__name__ = name
    return method


def _freeze(record_class: Any, names: frozenset[str]) -> None:
    """Refuse changes as a frozen class does, and let copies be made all the same."""

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is record_class or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(record_class, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is record_class or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(record_class, self).__delattr__(name)

    record_class.__setattr__, record_class.__delattr__ = set_attribute, delete_attribute
    if "__slots__" in vars(record_class):
        record_class.__getstate__, record_class.__setstate__ = _state, _restore


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
