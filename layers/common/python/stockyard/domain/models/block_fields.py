"""What the blocks of all kinds of node providers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import refuse
from stockyard.domain.models.node_fields import Annotations, Camel, DisplayName, DnsLabel, Properties, Resources

MAX_TYPES = 200
Text = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(fields.no_nul)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=100_000), AfterValidator(fields.no_nul)]
Raw = dict[str, Any]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Cost = Annotated[int, Field(ge=0, le=2**53 - 1)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
Duration = Annotated[str, StringConstraints(max_length=30, pattern=patterns.DURATION)]
Usd = Annotated[float, Field(ge=0, le=1_000_000)]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=patterns.LABEL)]


def distinct(items: list[Any]) -> list[Any]:
    """Refuses an item that is listed twice."""
    faults = [((place,), "is listed twice") for place, item in enumerate(items) if item in items[:place]]
    if faults:
        raise refuse(*faults)
    return items


def unique_names(types: list[Any]) -> list[Any]:
    """Refuses a second node type of one name."""
    names = [one.name for one in types]
    faults = [((i, "name"), "another node type has this name") for i, one in enumerate(names) if one in names[:i]]
    if faults:
        raise refuse(*faults)
    return types


class SecretRef(Camel):
    """A secret of the provider's own cluster, by name."""

    name: Text
    namespace: Text | None = None
    key: Text | None = None


class ClusterRef(Camel):
    """A Kubernetes cluster that makes the machines."""

    cluster: Text
    namespace: Text


class Metadata(Camel):
    """Labels and annotations of a node type."""

    labels: fields.Labels | None = None
    annotations: Annotations | None = None


class Overhead(Camel):
    """What of a node's resources is not for pods."""

    kube_reserved: Resources | None = None


class NamedNodeType(Camel):
    """What a node type of every kind has."""

    name: DnsLabel
    metadata: Metadata | None = None
    display_name: DisplayName | None = None
    properties: Properties | None = None
    resources: Resources | None = None
    overhead: Overhead | None = None
    cost: Cost | None = None
    zone: Zone | None = None


def complete(one: NamedNodeType) -> None:
    """Raises unless cpu and memory are there, for kinds that cannot find them out."""
    missing = [name for name in ("cpu", "memory") if name not in (one.resources or {})]
    if missing:
        raise refuse(*((("resources", name), "this field is required") for name in missing))


def one_of(given: object, names: Sequence[str], *, needed: bool) -> None:
    """Raises when two of the fields are given, or with ``needed`` none of them."""
    found = [name for name in names if getattr(given, name) is not None]
    spelt = [type(given).model_fields[name].alias or name for name in names]  # type: ignore[attr-defined]
    if len(found) > 1:
        raise ValueError(f"give one of {', '.join(spelt)}, not several")
    if needed and not found:
        raise ValueError(f"give one of {', '.join(spelt)}")
