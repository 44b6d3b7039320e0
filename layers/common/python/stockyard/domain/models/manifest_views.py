"""What callers see of manifests."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from stockyard.domain.models.base import View
from stockyard.domain.models.plan import Remark


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
    """What became of one document, or of one pool of it. ``index`` is the number of the document, from 0;
    ``operation_id`` is the work that it started, if any."""

    index: int
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
