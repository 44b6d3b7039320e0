"""Frozen dataclasses that cost little to import: their methods are made when one of them is first called.

The standard library compiles some six methods of each class while its module is imported. A first request loads over a
hundred such classes and uses a dozen, and the methods of the others were a third of what it cost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_METHODS = ("__init__", "__repr__", "__eq__", "__hash__")
"""Methods that the standard library makes of a frozen class, and that wait here."""
_OWN = {*_METHODS, "__setattr__", "__delattr__", "__getstate__", "__setstate__"}
_PLAIN = {"frozen", "slots", "kw_only"}

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        """The class as ``dataclasses.dataclass`` makes it. One that is not frozen, inherits from something else, or
        brings a method of its own in place of one that is made, is the standard library's whole."""
        if cls is None:
            return partial(dataclass, **options)
        inherits = cls.__bases__ != (object,)
        is_plain = options.get("frozen") and options.keys() <= _PLAIN
        is_plain = is_plain and (not inherits or all(map(dataclasses.is_dataclass, cls.__bases__)))
        if not is_plain or not cls.__doc__ or _OWN & vars(cls).keys():
            return dataclasses.dataclass(cls, **options)
        source = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        kw_only = options.get("kw_only", False)
        # The standard library lets a class inherit only from classes that are frozen as it is.
        skeleton = {**options, "frozen": inherits, "init": False, "repr": False, "eq": False}
        record_class = dataclasses.dataclass(cls, **skeleton)
        parameters = record_class.__dataclass_params__
        parameters.frozen = parameters.init = parameters.repr = parameters.eq = True
        for name in _METHODS:
            setattr(record_class, name, _waiting(record_class, name, source, kw_only=kw_only))
        if not inherits:
            _freeze(record_class)
        return record_class


def _waiting(record_class: Any, name: str, source: dict[str, Any], *, kw_only: bool) -> Callable[..., Any]:
    """Method that has all of the class made at its first call, and then is the one that was made."""

    def method(self: Any, /, *arguments: Any, **named: Any) -> Any:
        # A class of the same fields, whose methods name no class: they are as good for this one.
        twin: Any = type(record_class.__name__, record_class.__bases__, dict(source))
        twin.__qualname__ = record_class.__qualname__
        dataclasses.dataclass(twin, frozen=True, kw_only=kw_only)
        for each in _METHODS:
            setattr(record_class, each, vars(twin)[each])
        return getattr(record_class, name)(self, *arguments, **named)

    method.__name__ = name
    return method


def _freeze(record_class: Any) -> None:
    """Refuse changes as a frozen class does, and let copies be made all the same."""
    names = frozenset(record_class.__dataclass_fields__)

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is record_class or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is record_class or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    record_class.__setattr__, record_class.__delattr__ = set_attribute, delete_attribute
    if "__slots__" in vars(record_class):
        record_class.__getstate__, record_class.__setstate__ = _state, _restore


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
