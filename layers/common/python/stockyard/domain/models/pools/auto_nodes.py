"""Pools as a vcluster.yaml has them. The words of faults that vCluster itself finds are those that it publishes."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import check, refuse
from stockyard.domain.models.nodes.node_fields import (
    MAX_PROPERTY,
    MAX_REQUIREMENTS,
    MAX_VALUES,
    Camel,
    Reference,
    Taints,
)
from stockyard.domain.models.pools.pool_fields import (
    MAX_NODES,
    MAX_POOLS,
    Disruption,
    DurationOrNever,
    Limits,
    NodeLabels,
    Weight,
    restricted_fault,
)
from stockyard.domain.values.requirements import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, integer

_BOUNDS = ("Gt", "Lt", "Gte", "Lte")
_SPELLINGS = {"": IN, "NotExists": DOES_NOT_EXIST}
_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, *_BOUNDS)
_LONGEST_OPERATOR = 32


def _pool_name(name: Any) -> Any:
    if name == "":
        raise ValueError("node pool name is required")
    if isinstance(name, str) and len(name) > 63:
        raise ValueError("must have at most 63 characters")
    return name


def _pool_provider(name: str) -> str:
    if not name:
        raise ValueError("node pool provider is required")
    return name


def _quantity(quantity: int) -> int:
    if quantity < 0:
        raise ValueError("node pool quantity cannot be negative")
    if quantity > MAX_NODES:
        raise ValueError(f"must be at most {MAX_NODES}")
    return quantity


def _property(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a string, true or false")
    if len(value) > MAX_PROPERTY:
        raise ValueError(f"must have at most {MAX_PROPERTY} characters")
    return fields.no_nul(value)


_PROVIDER = patterns.worded(r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$", patterns.WORDS[patterns.DNS_LABEL])
Provider = Annotated[str, StringConstraints(max_length=63, pattern=_PROVIDER)]
PropertyMap = Annotated[dict[str, Annotated[Any, AfterValidator(_property)]], Field(max_length=128)]
"""Texts, and booleans for the short ways to write a requirement."""


class Selector(Camel):
    """Requirement of a node type: one property, an operator (In where none is given), ``value`` or ``values``."""

    key: str = Field("", alias="property")
    operator: str = ""
    value: fields.LabelValue = ""
    values: Annotated[list[fields.LabelValue], Field(max_length=MAX_VALUES)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.key:
            raise refuse((("property",), "requirement property is required"))
        fault = fields.label_key_fault(self.key) or restricted_fault(self.key)
        if fault or len(self.key) > 317:
            raise refuse((("property",), fault or "must have at most 317 characters"))
        operator = self.normal_operator()
        if operator not in _OPERATORS:
            name = f" {self.operator}" if self.operator.isalpha() and len(self.operator) <= _LONGEST_OPERATOR else ""
            raise refuse(
                (("operator",), f"invalid operator{name} for property {self.key}, use one of {', '.join(_OPERATORS)}")
            )
        if self.value and self.values:
            raise refuse((("values",), "requirement value and values cannot be set at the same time"))
        if operator in (EXISTS, DOES_NOT_EXIST):
            if self.normal_values():
                raise ValueError(f"value or values is not allowed for operator {self.operator}")
        elif not self.normal_values():
            if operator in _BOUNDS:
                raise ValueError(f"value or values is required for operator {operator}")
            raise ValueError("requirement value or values is required if operator is empty, In or NotIn")
        elif operator in _BOUNDS:
            number = integer(self.normal_values()[0])
            if len(self.normal_values()) != 1 or number is None or number < 0:
                raise ValueError(f"operator {operator} needs exactly one integer that is not negative")
        return self

    def normal_operator(self) -> str:
        """The operator in the spelling of Kubernetes."""
        return _SPELLINGS.get(self.operator, self.operator)

    def normal_values(self) -> list[str]:
        """The values, however many there are."""
        return list(self.values) or ([self.value] if self.value else [])

    def entry(self) -> dict[str, Any]:
        """The requirement as the record keeps it."""
        values = self.normal_values()
        return {"key": self.key, "operator": self.normal_operator(), **({"values": values} if values else {})}


Selectors = Annotated[list[Selector], Field(max_length=MAX_REQUIREMENTS)]


class AutoPool(Camel):
    """Fields of static and dynamic pools. Of old ``requirements`` and ``provider``, of late ``nodeTypeSelector``."""

    name: Annotated[fields.Subdomain, BeforeValidator(_pool_name)] = Field("", validate_default=True)
    provider: Provider = ""
    properties: PropertyMap = Field(default_factory=dict)
    requirements: Selectors = Field(default_factory=list)
    node_type_selector: Selectors = Field(default_factory=list)
    taints: Taints = Field(default_factory=list)
    node_labels: NodeLabels = Field(default_factory=dict)
    termination_grace_period: DurationOrNever | None = None
    expire_after: DurationOrNever | None = None
    profile: Reference | None = None

    @model_validator(mode="after")
    def _spelt_once(self) -> Self:
        if self.requirements and self.node_type_selector:
            raise refuse((("requirements",), "give requirements or nodeTypeSelector, not both"))
        return self

    def selectors(self) -> list[Selector]:
        """The requirements, under whichever name they were given."""
        return list(self.node_type_selector or self.requirements)


class StaticPool(AutoPool):
    """A pool of a fixed number of nodes."""

    quantity: Annotated[int, AfterValidator(_quantity)]


class DynamicPool(AutoPool):
    """A pool of as many nodes as pods need."""

    limits: Limits = Field(default_factory=dict)
    disruption: Disruption = Field(default_factory=Disruption)
    weight: Weight | None = None


class AutoNodes(Camel):
    """Pools that each name their provider, or that have the one of the object."""

    provider: Provider = ""
    properties: PropertyMap = Field(default_factory=dict)
    static: Annotated[list[StaticPool], Field(max_length=MAX_POOLS)] = Field(default_factory=list)
    dynamic: Annotated[list[DynamicPool], Field(max_length=MAX_POOLS)] = Field(default_factory=list)


class OfProvider(AutoNodes):
    """The pools of one provider, an entry of the list."""

    provider: Annotated[Provider, AfterValidator(_pool_provider)] = Field("", validate_default=True)

    @model_validator(mode="after")
    def _same_provider(self) -> Self:
        check(
            [
                ((kind, index, "provider"), "is said once, for all pools of the entry")
                for kind, pools in (("static", self.static), ("dynamic", self.dynamic))
                for index, pool in enumerate(pools)
                if pool.provider not in ("", self.provider)
            ]
        )
        return self


class NodePools(Camel):
    """The form of before ``autoNodes``."""

    static: Annotated[list[StaticPool], Field(max_length=MAX_POOLS)] = Field(default_factory=list)
    dynamic: Annotated[list[DynamicPool], Field(max_length=MAX_POOLS)] = Field(default_factory=list)


class Switch(Camel):
    """A part that is on or off."""

    model_config = ConfigDict(extra="ignore")

    enabled: bool = False


class Vpn(Switch):
    """The network between the nodes and the control plane, and with ``nodeToNode`` between the nodes."""

    node_to_node: Switch = Field(default_factory=Switch)


class PrivateNodes(Camel):
    """The part of a vcluster.yaml that is about nodes. ``autoNodes`` has several forms, each read by its model."""

    model_config = ConfigDict(extra="ignore")

    enabled: bool = False
    vpn: Vpn = Field(default_factory=Vpn)
    node_to_node: Switch = Field(default_factory=Switch)
    auto_nodes: Any = None
    node_pools: NodePools | None = None
