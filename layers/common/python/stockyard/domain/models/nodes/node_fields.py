"""Parts that the documents of node providers and node claims share: quantities, properties, requirements, taints."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, Input, check, repeated
from stockyard.domain.nodes.node_types import is_setting, parse_property
from stockyard.domain.values import durations
from stockyard.domain.values.quantities import milli
from stockyard.domain.values.requirements import MOST_MIN_VALUES, Requirement

MAX_REQUIREMENTS = 100
MAX_VALUES = 1000
"""Karpenter names up to 600 instance types in one requirement."""
MAX_VALUES_TOGETHER = 2000
"""Of all requirements of a claim. Every pass of the scheduler reads them, so one tenant's must not take long."""
MAX_PROPERTY = 4096
MAX_ANNOTATIONS = 32 * 1024
"""Characters of all annotations together."""


class Camel(Input):
    """Base of what a manifest holds: its fields have the names that Kubernetes documents have."""

    model_config = ConfigDict(alias_generator=to_camel)


def _duration(text: str) -> str:
    durations.seconds(text)
    return text


Grace = Annotated[str, StringConstraints(max_length=33, pattern=patterns.DURATION_OR_NEVER), AfterValidator(_duration)]
"""How long a deletion waits for pods that cannot go."""


def _quantity(value: Any) -> Any:
    # before the types of the union are tried, whose names would end up in the pointer
    if milli(value) < 0:
        raise ValueError("must not be negative")
    return value


def is_parameter(key: str) -> bool:
    """Whether a property is a provider's own setting, which may be any text: its key is of ``vcluster.com``."""
    return is_setting(key) or key.startswith("vcluster.com/")


def _properties(properties: dict[str, str]) -> dict[str, str]:
    faults: list[Fault] = []
    for key, text in properties.items():
        fault = fields.label_key_fault(key)
        if fault is None and "\x00" in text:
            fault = "must not have a NUL character"
        if fault is None and not is_parameter(key):
            try:
                parse_property(key, text)
            except ValueError as error:
                fault = str(error).partition(": ")[2]
        if fault is not None:
            faults.append(((key,), fault))
    check(faults)
    return properties


def _annotations(annotations: dict[str, str]) -> dict[str, str]:
    fields.checked_keys(annotations)
    if sum(len(key) + len(text) for key, text in annotations.items()) > MAX_ANNOTATIONS:
        raise ValueError(f"annotations have at most {MAX_ANNOTATIONS} characters together")
    return annotations


_KUBELET_FLAG = re.compile(  # others could open the machine to everybody
    r"(max-pods|pods-per-core|pod-max-pids|(system|kube)-reserved|reserved-(cpus|memory)|eviction-[a-z-]+|v"
    r"|image-gc-(high|low)-threshold|(cpu|memory|topology)-manager-[a-z-]+|cpu-cfs-quota(-period)?"
    r"|container-log-max-(size|files)|(registry|event|kube-api)-(qps|burst)|serialize-image-pulls)"
)


def _kubelet_flags(arguments: dict[str, str]) -> dict[str, str]:
    fault = "is not one of the kubelet's flags that a claim may set: resources, eviction, images, managers, logs"
    check([((flag,), fault) for flag in arguments if not _KUBELET_FLAG.fullmatch(flag)])
    return arguments


DnsLabel = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=patterns.DNS_LABEL)]
"""What Kubernetes calls a DNS label."""
Quantity = Annotated[str | int | float, BeforeValidator(_quantity)]
"""A Kubernetes quantity that is not negative: ``2``, ``500m``, ``4Gi``."""
Resources = Annotated[dict[str, Quantity], Field(max_length=64), AfterValidator(fields.checked_keys)]
"""Quantities by the name of the resource, such as ``cpu``, ``memory`` or ``nvidia.com/gpu``."""
Property = Annotated[str, StringConstraints(max_length=MAX_PROPERTY)]
Properties = Annotated[dict[str, Property], Field(max_length=128), AfterValidator(_properties)]
"""Each value is one label value, a comma list of them, or ``*``; a provider's own settings are any text."""
Annotations = Annotated[dict[str, str], Field(max_length=64), AfterValidator(_annotations)]
"""Annotations of Kubernetes, at most 32 KiB together."""
DisplayName = Annotated[str, StringConstraints(max_length=256, pattern=patterns.PLAIN_TEXT)]
"""A name for people; it need not be unique."""
KubeletArgs = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")],
        Annotated[str, StringConstraints(max_length=1024, pattern=r"^[A-Za-z0-9.,:=<>%_-]*$")],
    ],
    Field(max_length=64),
    AfterValidator(_kubelet_flags),
]
"""Flags of the kubelet of the node, without the dashes, with their values."""
Reference = Annotated[str, StringConstraints(min_length=1, max_length=160, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")]
"""The name or id of another resource."""


class RequirementInput(Input):
    """Requirement of a node. ``operator`` is In where none is given."""

    key: fields.LabelKey
    """The label that is required, such as ``karpenter.sh/capacity-type``."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "NotExists", "Gt", "Lt", "Gte", "Lte"] = "In"
    """How the label is compared with the values; ``NotExists`` is another word for ``DoesNotExist``."""
    values: Annotated[list[fields.LabelValue], Field(max_length=MAX_VALUES)] = Field(default_factory=list)
    """The values to compare with: one number for ``Gt``, ``Lt``, ``Gte`` and ``Lte``, none for ``Exists`` and
    ``DoesNotExist``."""
    min_values: Annotated[int, Field(ge=1, le=MOST_MIN_VALUES)] | None = None
    """How many different values the node types that come into question must have between them."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        Requirement.of(self.operator, self.values, self.min_values)
        return self

    def entry(self) -> dict[str, Any]:
        """The requirement as the core reads it; ``values`` and ``minValues`` are there when they say something."""
        document: dict[str, Any] = {"key": self.key, "operator": self.operator}
        if self.values:
            document["values"] = list(self.values)
        if self.min_values is not None:
            document["minValues"] = self.min_values
        return document


class TaintInput(Input):
    """A taint of the node."""

    key: fields.LabelKey
    """The key of the taint."""
    value: fields.LabelValue | None = None
    """The value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What the taint does to pods that do not tolerate it."""

    def entry(self) -> dict[str, Any]:
        """The taint as Kubernetes has it."""
        value = {} if self.value is None else {"value": self.value}
        return {"key": self.key, **value, "effect": self.effect}


def _taints(taints: list[Any]) -> list[Any]:
    check(repeated([(taint.key, taint.effect) for taint in taints], "the key has this effect already"))
    return taints


def _limit(requirements: list[Any]) -> list[Any]:
    if sum(len(requirement.values) for requirement in requirements) > MAX_VALUES_TOGETHER:
        raise ValueError(f"requirements have at most {MAX_VALUES_TOGETHER} values together")
    return requirements


Requirements = Annotated[list[RequirementInput], Field(max_length=MAX_REQUIREMENTS), AfterValidator(_limit)]
"""What the labels of the node must be, all together."""
Taints = Annotated[list[TaintInput], Field(max_length=50), AfterValidator(_taints)]
"""Taints that the node has as long as it is there."""


class CamelRequirement(RequirementInput):
    """The same in a manifest, where it is ``minValues``."""

    model_config = ConfigDict(alias_generator=to_camel)


CamelRequirements = Annotated[list[CamelRequirement], Field(max_length=MAX_REQUIREMENTS), AfterValidator(_limit)]
"""What the labels of the node must be, all together."""
