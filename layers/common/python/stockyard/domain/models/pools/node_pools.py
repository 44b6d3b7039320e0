"""NodePools of Karpenter, read into pools. Faults that Karpenter itself finds have the words that it publishes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from stockyard.domain.models import fields, patterns
from stockyard.domain.models.base import Fault, check, read, refuse, without_nulls
from stockyard.domain.models.manifests.manifests import Manifest, Metadata, NodeClassRef
from stockyard.domain.models.nodes.node_fields import (
    MAX_REQUIREMENTS,
    MAX_VALUES,
    MAX_VALUES_TOGETHER,
    Annotations,
    Camel,
    Taints,
)
from stockyard.domain.models.pools.pool_fields import (
    MAX_NODES,
    Disruption,
    Duration,
    DurationOrNever,
    Limits,
    NodeLabels,
    Weight,
    restricted_fault,
    texts,
)
from stockyard.domain.nodes.manifests import CLUSTER, PROVIDER, FieldPath, Warnings
from stockyard.domain.pools.budgets import EXPIRED
from stockyard.domain.pools.manifests import PoolsDocument
from stockyard.domain.pools.records import DYNAMIC, EXPIRE_AFTER, NODES, STATIC, NewPool
from stockyard.domain.values.notes import Note
from stockyard.domain.values.requirements import IN, MOST_MIN_VALUES, NOT_IN, integer

CONSOLIDATE_AFTER = "0s"
"""The published default of a NodePool."""
_BOUNDS = ("Gt", "Lt", "Gte", "Lte")
_PROVIDER_NAME = re.compile(patterns.DNS_LABEL[1:-1])


class PoolRequirement(Camel):
    """Requirement of a node, by the rules of Karpenter."""

    key: fields.LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"] = "In"
    values: Annotated[list[fields.LabelValue], Field(max_length=MAX_VALUES)] = Field(default_factory=list)
    min_values: Annotated[int, Field(ge=1, le=MOST_MIN_VALUES)] | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults: list[Fault] = []
        if fault := restricted_fault(self.key):
            faults.append((("key",), fault))
        number = integer(self.values[0]) if len(self.values) == 1 else None
        if self.operator in _BOUNDS:
            if number is None or number < 0:
                text = f"requirements operator '{self.operator}' must have a single positive integer value"
                faults.append((("values",), text))
        elif self.operator in (IN, NOT_IN):
            if not self.values:
                faults.append((("values",), f"requirements with operator '{self.operator}' must have a value defined"))
        elif self.values:
            faults.append((("values",), f"requirements with operator '{self.operator}' must have no value"))
        if self.operator == IN and self.values and len(self.values) < (self.min_values or 0):
            text = "requirements with 'minValues' must have at least that many values specified in the 'values' field"
            faults.append((("values",), text))
        check(faults)
        return self

    def entry(self) -> dict[str, Any]:
        """The requirement as the record keeps it."""
        optional = {"values": list(self.values), "minValues": self.min_values}
        return {
            "key": self.key,
            "operator": self.operator,
            **{name: value for name, value in optional.items() if value},
        }


def _limit(requirements: list[PoolRequirement]) -> list[PoolRequirement]:
    if sum(len(requirement.values) for requirement in requirements) > MAX_VALUES_TOGETHER:
        raise ValueError(f"requirements have at most {MAX_VALUES_TOGETHER} values together")
    return requirements


class TemplateSpec(Camel):
    """The claims that a NodePool makes."""

    requirements: Annotated[list[PoolRequirement], Field(max_length=MAX_REQUIREMENTS), AfterValidator(_limit)]
    taints: Taints = Field(default_factory=list)
    startup_taints: Taints = Field(default_factory=list)
    node_class_ref: NodeClassRef | None = None
    termination_grace_period: Duration | None = None
    expire_after: DurationOrNever | None = None

    @model_validator(mode="after")
    def _no_taint_twice(self) -> Self:
        taints = {(taint.key, taint.effect) for taint in self.taints}
        check(
            [
                (("startupTaints", index), f"duplicate taint Key/Effect pair {taint.key}={taint.effect}")
                for index, taint in enumerate(self.startup_taints)
                if (taint.key, taint.effect) in taints
            ]
        )
        return self


def _names_provider(labels: dict[str, str]) -> dict[str, str]:
    if not _PROVIDER_NAME.fullmatch(labels.get(PROVIDER, "p")):
        raise refuse(((PROVIDER,), f"must be {patterns.WORDS[patterns.DNS_LABEL]}"))
    return labels


class TemplateMetadata(Camel):
    """Labels and annotations of the nodes; one label names the provider."""

    labels: Annotated[NodeLabels, AfterValidator(_names_provider)] = Field(default_factory=dict)
    annotations: Annotations = Field(default_factory=dict)


class Template(Camel):
    """Template of the nodes."""

    metadata: TemplateMetadata = Field(default_factory=TemplateMetadata)
    spec: TemplateSpec


class NodePoolSpec(Camel):
    """A pool: with ``replicas`` static, else dynamic."""

    template: Template
    limits: Limits = Field(default_factory=dict)
    weight: Weight | None = None
    disruption: Disruption | None = None
    replicas: Annotated[int, Field(ge=0, le=MAX_NODES)] | None = None

    @model_validator(mode="after")
    def _published_fields(self) -> Self:
        budgets = (self.disruption.budgets if self.disruption else None) or ()
        check(
            [
                *(
                    (
                        ("disruption", "budgets", index, "timeZone"),
                        "a NodePool has CRON_TZ= before the schedule instead",
                    )
                    for index, budget in enumerate(budgets)
                    if budget.time_zone is not None
                ),
                *(
                    (("disruption", "budgets", index, "reasons"), f"a NodePool knows no {EXPIRED}; a Pool of ours does")
                    for index, budget in enumerate(budgets)
                    if EXPIRED in budget.reasons
                ),
            ]
        )
        return self

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        if self.replicas is not None:
            faults: list[Fault] = []
            if set(self.limits) - {NODES}:
                faults.append((("limits",), "only 'limits.nodes' is supported on static NodePools"))
            if self.weight is not None:
                faults.append((("weight",), "'weight' is not supported on static NodePools"))
            check(faults)
        return self


class PoolMetadata(Metadata):
    """A NodePool's name is the value of a label of its nodes."""

    name: fields.TypeName


NodePool = Manifest[PoolMetadata, NodePoolSpec]


def read_node_pool(document: Mapping[str, Any], *, at: FieldPath = ()) -> PoolsDocument:
    """The pool that a NodePool asks for. Raises ``InvalidInput`` with every fault, below ``at``."""
    manifest = read(NodePool, without_nulls(document), at=at)
    spec, template = manifest.spec, manifest.spec.template
    labels = dict(template.metadata.labels)
    provider = labels.pop(PROVIDER, "")
    static = spec.replicas is not None
    disruption = spec.disruption or (None if static else Disruption())
    pool = NewPool(
        name=manifest.metadata.name,
        kind=STATIC if static else DYNAMIC,
        provider_ref=provider,
        requirements=tuple(requirement.entry() for requirement in template.spec.requirements),
        taints=tuple(taint.entry() for taint in template.spec.taints),
        startup_taints=tuple(taint.entry() for taint in template.spec.startup_taints),
        labels=labels,
        annotations=dict(template.metadata.annotations),
        quantity=spec.replicas or 0,
        limits=texts(spec.limits),
        weight=spec.weight or 0,
        expire_after=template.spec.expire_after or ("" if static else EXPIRE_AFTER),
        termination_grace_period=template.spec.termination_grace_period or "",
        disruption=disruption.block(CONSOLIDATE_AFTER) if disruption else {},
        form="karpenter",
        document=_parts_without_field(manifest.metadata, template.spec.node_class_ref),
    )
    warnings: Warnings = []
    if template.spec.node_class_ref is not None:
        path = (*at, "spec", "template", "spec", "nodeClassRef")
        warnings.append((path, Note("This is kept and not used: a node provider says how nodes are made.")))
    return PoolsDocument((pool,), (at,), manifest.metadata.labels.get(CLUSTER, ""), warnings=warnings)


def _parts_without_field(metadata: Metadata, node_class: NodeClassRef | None) -> dict[str, Any]:
    """Parts of a manifest for which a pool's record has no field."""
    named = {"labels": dict(metadata.labels), "annotations": dict(metadata.annotations)}
    document: dict[str, Any] = {}
    if any(named.values()):
        document["metadata"] = {name: value for name, value in named.items() if value}
    if node_class is not None:
        document["nodeClassRef"] = node_class.model_dump(by_alias=True)
    return document
