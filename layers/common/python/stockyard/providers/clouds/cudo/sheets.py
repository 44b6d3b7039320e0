"""Offers to a project at a moment, as bytes that a record keeps: machine types, prices, what was free.

Plans and node types make no call: they read the sheet of the last refresh, and say from when it is.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from typing import Any

from stockyard.errors import VendorRefused
from stockyard.providers.clouds.cudo.values import MachineType

_FORM = 1
_PRICES = frozenset(each.name for each in fields(MachineType) if each.name.endswith("_price"))
_BOUNDS = frozenset({"memory_gib_per_vcpu", "vcpu_per_gpu"})


@dataclass(frozen=True, slots=True)
class Sheet:
    """``moment`` is when Cudo was asked, as records write it. ``data_center`` is the account's own; ``networks`` is
    what a network costs, in USD an hour, by data center."""

    moment: str
    types: tuple[MachineType, ...]
    data_center: str = ""
    networks: Mapping[str, Decimal] = field(default_factory=dict)


def written(sheet: Sheet) -> bytes:
    """The sheet as a record keeps it: compressed, the same for the same sheet, with prices to the last digit."""
    types = [{name: str(value) if name in _PRICES else value for name, value in asdict(k).items()} for k in sheet.types]
    document = {
        "form": _FORM,
        "moment": sheet.moment,
        "types": types,
        "data_center": sheet.data_center,
        "networks": {name: str(price) for name, price in sorted(sheet.networks.items())},
    }
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def read(data: bytes) -> Sheet:
    """The sheet that was written. Raises ``VendorRefused`` for one of another form: the next refresh writes it anew."""
    try:
        return _sheet(json.loads(gzip.decompress(data)))
    except (ValueError, KeyError, TypeError, ArithmeticError, OSError, EOFError, zlib.error) as error:
        raise VendorRefused("what is known of Cudo's machine types was written by another release") from error


def _sheet(document: Mapping[str, Any]) -> Sheet:
    if document["form"] != _FORM:
        raise ValueError(f"form {document['form']}")
    networks = {name: Decimal(price) for name, price in document["networks"].items()}
    types = tuple(_type(entry) for entry in document["types"])
    return Sheet(str(document["moment"]), types, str(document["data_center"]), networks)


def _type(entry: Mapping[str, Any]) -> MachineType:
    return MachineType(**{name: _value(name, value) for name, value in entry.items()})


def _value(name: str, value: Any) -> Any:
    if name in _PRICES:
        return Decimal(value)
    return (value[0], value[1]) if name in _BOUNDS else value


def of_data_centers(sheet: Sheet, names: Sequence[str]) -> tuple[MachineType, ...]:
    """The types of those data centers; of all where none is named."""
    return tuple(kind for kind in sheet.types if not names or kind.data_center in names)
