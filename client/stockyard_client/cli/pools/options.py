"""Options of pools: what nodes they have, where these stand, what they may cost, and how they are replaced."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.documents.pointers import pointer
from stockyard_client.cli.input.inputs import pairs, requirement

_STRATEGIES = {"add-first": "add_first", "remove-first": "remove_first"}
_FIGURE = r"[0-9]{1,5}%?"

Zone = Annotated[list[str] | None, typer.Option(help="A zone of its nodes, which are spread evenly; may be repeated.")]
MaxPrice = Annotated[
    str | None,
    typer.Option(metavar="BID", help="The most that spot may cost: 60% of on-demand, or 0.12 USD an hour."),
]
RootDisk = Annotated[int | None, typer.Option(metavar="GIB", help="The size of the one disk that a node on EC2 has.")]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--update-strategy",
        metavar="HOW",
        help="How nodes are replaced: add-first, remove-first, or SURGE/UNAVAILABLE such as 2/1 or 25%/0.",
    ),
]


def bid(text: str) -> dict[str, float]:
    """``60%`` or ``0.12`` as the API has it."""
    try:
        return {"percent": float(text[:-1])} if text.endswith("%") else {"usd_hour": float(text)}
    except ValueError:
        raise BadInput(f"--max-price {text}: 60% of on-demand, or 0.12 USD an hour") from None


def strategy(text: str) -> dict[str, Any]:
    """``add-first``, ``remove-first`` or ``2/1`` as the API has it."""
    if text in _STRATEGIES:
        return {"type": _STRATEGIES[text]}
    if not re.fullmatch(f"{_FIGURE}/{_FIGURE}", text):
        raise BadInput(f"--update-strategy {text}: add-first, remove-first, or SURGE/UNAVAILABLE such as 2/1")
    surge, unavailable = (part if part.endswith("%") else int(part) for part in text.split("/"))
    return {"type": "custom", "max_surge": surge, "max_unavailable": unavailable}


def fields_of(
    zone: list[str] | None, max_price: str | None, root_disk: int | None, update_strategy: str | None
) -> dict[str, Any]:
    """The fields of a pool that these options give."""
    fields: dict[str, Any] = {} if root_disk is None else {"properties": {"root_disk_gib": str(root_disk)}}
    return {**fields, **_common(zone, max_price, update_strategy)}


def group_fields_of(
    zone: list[str] | None, max_price: str | None, root_disk: int | None, update_strategy: str | None
) -> dict[str, Any]:
    """The fields of a node group that these options give."""
    fields: dict[str, Any] = {} if root_disk is None else {"root_disk_gib": root_disk}
    return {**fields, **_common(zone, max_price, update_strategy)}


def _common(zone: list[str] | None, max_price: str | None, update_strategy: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"zones": zone} if zone else {}
    fields |= {"max_price": bid(max_price)} if max_price is not None else {}
    return fields | ({"update_strategy": strategy(update_strategy)} if update_strategy is not None else {})


def options_of(
    quantity: int | None,
    floor: int | None,
    weight: int | None,
    require: list[str] | None,
    limit: list[str] | None,
    label: list[str] | None,
    taint: list[str] | None,
) -> dict[str, Any]:
    """The fields of a pool that its options give. Raises :class:`BadInput`."""
    fields = {
        "quantity": quantity,
        "floor": floor,
        "weight": weight,
        "requirements": [requirement(text) for text in require] if require else None,
        "limits": pairs(limit) if limit else None,
        "labels": pairs(label) if label else None,
        "taints": [taint_of(text) for text in taint] if taint else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


_NAMES = {"requirements": "--require", "limits": "--limit", "labels": "--label", "taints": "--taint"}
_NAMES |= {"zones": "--zone", "properties": "--root-disk", "max_price": "--max-price"}
_NAMES |= {"update_strategy": "--update-strategy"}
_OF_MAPS = frozenset({"limits", "labels"})
"""Fields whose options each give one entry."""


def source_of_options(options: dict[str, Any]) -> FieldSource:
    """The option behind each field of a pool, so that a refusal names the typed option."""
    field_options: dict[str, str] = {}
    for name, value in options.items():
        option = _NAMES.get(name, f"--{name}")
        if name in _OF_MAPS and isinstance(value, dict):
            field_options |= {pointer(name, key): f"{option} {key}" for key in value}
        field_options[pointer(name)] = option
    return FieldSource(options=field_options)


def merged(
    body: dict[str, Any], options: dict[str, Any], joined: tuple[str, ...] = ("requirements", "taints")
) -> dict[str, Any]:
    """``body`` with ``options``: maps are merged, and so are the lists of the fields ``joined``."""
    result = {**body, **options}
    for name, value in options.items():
        before = body.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            result[name] = {**before, **value}
        elif name in joined and isinstance(before, list):
            result[name] = [*before, *value]
    return result


def taint_of(text: str) -> dict[str, str]:
    """``key=value:Effect`` or ``key:Effect``."""
    front, colon, effect = text.rpartition(":")
    key, _, value = front.partition("=")
    if not colon or not key or not effect:
        raise BadInput(f"{text!r} is not key=value:Effect")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
