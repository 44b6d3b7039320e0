"""Views of manifests, for callers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from stockyard.domain.models.base import View
from stockyard.domain.models.manifests.set_members import SetMemberView
from stockyard.domain.models.plan import Remark


class ManifestView(View):
    """A document of Kubernetes' form, as it came after the normalizations of docs/objects.md."""

    api_version: str = Field(alias="apiVersion")
    """The version of the manifest's form."""
    kind: str
    """The kind of the manifest."""
    metadata: dict[str, Any]
    """The name, the labels and the annotations."""
    spec: dict[str, Any]
    """What was asked for."""
    status: dict[str, Any] = Field(default_factory=dict)
    """What is observed; only of a claim of Karpenter's form."""


class AppliedView(View):
    """Result of one document."""

    index: int
    """The number of the document, from 0; of an item of a list that of the list."""
    kind: str
    """The kind of the document."""
    name: str
    """The name of what it made or changed."""
    id: str
    """The id of what it made or changed."""
    action: Literal["created", "changed", "unchanged", "deleted"]
    """What was done; ``deleted`` for a pool that ``prune`` gives back."""
    warnings: list[Remark]
    """What to mind of this document."""
    operation_id: str | None
    """The operation that was started; null for none."""


class AppliedListView(View):
    """Results of the documents, in their order."""

    results: list[AppliedView]
    """What became of each document, in their order."""
    warnings: list[Remark]
    """What to mind of all documents."""
    unnamed: list[SetMemberView] = Field(default_factory=list)
    """Of a set: what it has applied before, is still there, and no document names."""
