"""Pools as manifests of ours: the fields of our own routes in camel case, and the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from stockyard.domain.models.base import check, read, refuse, without_nulls
from stockyard.domain.models.manifests.manifests import Manifest, Metadata
from stockyard.domain.models.nodes.node_fields import CamelRequirements, Reference
from stockyard.domain.models.pools.pool_fields import MAX_BUDGETS, known_labels
from stockyard.domain.models.pools.pools import BudgetInput, DisruptionInput, PoolCreate
from stockyard.domain.models.pools.pools import Name as PoolName
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.pools.manifests import PoolsDocument


class CamelBudget(BudgetInput):
    """A budget in a manifest, where it has ``timeZone``."""

    model_config = ConfigDict(alias_generator=to_camel)


class CamelDisruption(DisruptionInput):
    """The same in a manifest."""

    model_config = ConfigDict(alias_generator=to_camel)

    budgets: Annotated[list[CamelBudget], Field(max_length=MAX_BUDGETS)] | None = None  # type: ignore[assignment]
    """How many nodes may be disrupted at a time. Without any, one in ten; an empty list limits nothing."""


class CamelPool(PoolCreate):
    """A pool in a manifest."""

    model_config = ConfigDict(alias_generator=to_camel)

    requirements: Annotated[CamelRequirements, AfterValidator(known_labels)] = Field(default_factory=list)  # type: ignore[assignment]
    disruption: CamelDisruption | None = None


class OwnPoolSpec(CamelPool):
    """A pool and its cluster. Its name is the manifest's."""

    name: str = ""
    cluster: Reference

    @model_validator(mode="before")
    @classmethod
    def _named_above(cls, document: Any) -> Any:
        if isinstance(document, dict) and "name" in document:
            raise refuse((("name",), "unknown field"))
        return document


class OwnPoolMetadata(Metadata):
    """A pool's name may have upper-case letters, as names of node groups have."""

    name: PoolName

    @model_validator(mode="after")
    def _nothing_else(self) -> Self:
        written = [name for name in ("namespace", "labels", "annotations") if getattr(self, name)]
        check([((name,), "a Pool has none; those of its nodes stand in spec") for name in written])
        return self


OwnPool = Manifest[OwnPoolMetadata, OwnPoolSpec]


def read_own_pool(document: Mapping[str, Any], *, at: FieldPath = ()) -> PoolsDocument:
    """The pool that a ``Pool`` of ours asks for. Raises ``InvalidInput`` with every fault, below ``at``."""
    manifest = read(OwnPool, without_nulls(document), at=at)
    pool = replace(manifest.spec.new_pool(), name=manifest.metadata.name)
    return PoolsDocument((pool,), (at,), manifest.spec.cluster)
