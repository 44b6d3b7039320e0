"""Manifests as a body, which is read by the models of their forms, and what callers see of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel, model_validator

from stockyard.domain.models.base import View
from stockyard.domain.models.plan import Remark

MAX_DOCUMENTS = 100


class Manifests(RootModel[Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_DOCUMENTS)]]):
    """Manifests: one as an object, or several as a list. YAML has them as documents of one stream."""

    model_config = ConfigDict(hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _as_list(cls, document: Any) -> Any:
        return [document] if isinstance(document, dict) else document


class ManifestView(View):
    """A document of Kubernetes' form, as it came after the normalizations of docs/objects.md.

    ``status`` is there for a claim of Karpenter's form alone.
    """

    api_version: str = Field(alias="apiVersion")
    kind: str
    metadata: dict[str, Any]
    spec: dict[str, Any]
    status: dict[str, Any] = Field(default_factory=dict)


class AppliedView(View):
    """What became of one document. ``operation_id`` is the work that it started, if any."""

    kind: str
    name: str
    id: str
    action: Literal["created", "changed", "unchanged"]
    warnings: list[Remark]
    operation_id: str | None


class AppliedListView(View):
    """What became of each document, in their order."""

    results: list[AppliedView]
    warnings: list[Remark]
