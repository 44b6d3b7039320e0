"""Node environments as callers see them."""

from __future__ import annotations

from typing import Any

from stockyard.domain.models.base import View
from stockyard.domain.models.clusters.views import ConditionView
from stockyard.domain.models.view_fields import CreatedAt, Message, Reason, UpdatedAt, Version
from stockyard.domain.values.states import ReadyPhase


class NodeEnvironmentView(View):
    """Environment that a provider set up once for a cluster."""

    id: str
    """The id of the environment."""
    cluster_id: str
    """The id of the cluster that it is for."""
    provider_id: str
    """The id of the node provider that set it up."""
    provider: str
    """The name of that node provider."""
    properties: dict[str, str]
    """Settings of the provider that it was made with."""
    phase: ReadyPhase
    """Whether it is there: not yet, yes, or not any more."""
    reason: Reason
    message: Message
    conditions: list[ConditionView]
    """What is observed of it, an aspect each."""
    outputs: dict[str, Any]
    """What it has for its nodes, such as the ids of subnets: JSON values by name."""
    secret_outputs: list[str]
    """Names of further outputs, which are sealed and never shown."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version
