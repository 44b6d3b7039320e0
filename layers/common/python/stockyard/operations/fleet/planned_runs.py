"""The run of a template that would make the node of a planned claim."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from stockyard.domain.nodes.records import Placement
from stockyard.domain.platform import is_foreign
from stockyard.domain.records import Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.operations.node_claims.work import environment_id
from stockyard.operations.services import Services
from stockyard.ports.node_work import NewNode


def planned_run(
    services: Services, provider: NodeProvider | None, draft: NodeClaim, placement: Placement
) -> tuple[dict[str, Any] | None, str | None]:
    """The run that would make the claim's node, and why there is none; the document of a shared provider is hidden."""
    source = services.node_sources.get(provider.kind) if provider is not None else None
    if provider is None or source is None or not source.makes_by_runs:
        return None, "No template makes the node that would be chosen."
    if is_foreign(services.tenant, provider):
        return None, f"The template of {provider.name} is the platform's, which alone can plan its runs."
    cluster = services.store.get(Cluster, draft.cluster_id) if draft.cluster_id else None
    key = environment_id(draft.cluster_id, provider.id) if draft.cluster_id else None
    environment = services.store.get(NodeEnvironment, key) if key else None
    try:
        run = source.planned_run(NewNode(replace(draft, placement=placement), provider, cluster, environment))
    except NodeCouldNotBeProvisioned as error:
        return None, error.detail
    return asdict(run), None
