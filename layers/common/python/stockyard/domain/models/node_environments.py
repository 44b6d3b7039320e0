"""Node environments as callers see them."""

from __future__ import annotations

from typing import Literal

from stockyard.domain.models.base import View
from stockyard.domain.models.cluster_views import ConditionView


class NodeEnvironmentView(View):
    """What a provider set up once for a cluster."""

    id: str
    cluster_id: str
    provider_id: str
    provider: str
    properties: dict[str, str]
    phase: Literal["Pending", "Available", "Failed"]
    reason: str
    message: str
    conditions: list[ConditionView]
    outputs: dict[str, str]
    created_at: str
    updated_at: str
    version: int
