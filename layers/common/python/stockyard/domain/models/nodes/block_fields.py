"""Common fields of the blocks of all kinds of node providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import check, repeated
from stockyard.domain.models.nodes.node_fields import Annotations, Camel, DisplayName, Properties, Resources

MAX_TYPES = 200
Text = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=patterns.PLAIN_TEXT)]
Source = Annotated[str, StringConstraints(min_length=1, max_length=100_000), AfterValidator(fields.no_nul)]
Raw = dict[str, Any]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Cost = Annotated[int, Field(ge=0, le=2**53 - 1)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
Duration = Annotated[str, StringConstraints(max_length=30, pattern=patterns.DURATION)]
Usd = Annotated[float, Field(ge=0, le=1_000_000)]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=patterns.LABEL)]


def unique_names(types: list[Any]) -> list[Any]:
    """Refuses a second node type of one name."""
    check(repeated([node_type.name for node_type in types], "another node type has this name", "name"))
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


class Deployed(Camel):
    """A component that is installed in the provider's cluster."""

    enabled: bool | None = None
    chart_repo: Text | None = None
    chart: Text | None = None
    version: Text | None = None
    helm_values: Source | None = None


class Metadata(Camel):
    """Labels and annotations of a node type."""

    labels: fields.Labels | None = None
    annotations: Annotations | None = None


class Overhead(Camel):
    """Part of a node's resources that is not for pods."""

    kube_reserved: Resources | None = None


class NamedNodeType(Camel):
    """Fields of a node type of every kind."""

    name: fields.TypeName
    metadata: Metadata | None = None
    display_name: DisplayName | None = None
    properties: Properties | None = None
    resources: Resources | None = None
    overhead: Overhead | None = None
    cost: Cost | None = None
    zone: Zone | None = None


def complete(node_type: NamedNodeType) -> None:
    """Raises unless cpu and memory are there, for kinds that cannot find them out."""
    missing = [name for name in ("cpu", "memory") if name not in (node_type.resources or {})]
    check([(("resources", name), "this field is required") for name in missing])


def one_of(block: object, names: Sequence[str], *, needed: bool) -> None:
    """Raises when two of the fields are given, or with ``needed`` none of them."""
    present_names = [name for name in names if getattr(block, name) is not None]
    spelt = [type(block).model_fields[name].alias or name for name in names]  # type: ignore[attr-defined]
    if len(present_names) > 1:
        raise ValueError(f"give one of {', '.join(spelt)}, not several")
    if needed and not present_names:
        raise ValueError(f"give one of {', '.join(spelt)}")


def block_document(block: Camel) -> dict[str, Any]:
    """The block as it is stored: what was sent without nulls, and the published defaults."""
    return block.model_dump(by_alias=True, exclude_none=True)
