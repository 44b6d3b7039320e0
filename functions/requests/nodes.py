"""Node claims and node providers by event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.requests.common import audit, deletion, outcome, until_changed
from stockyard import wiring
from stockyard.domain.nodes.records import NodeClaim, NodeProvider
from stockyard.domain.values import ids
from stockyard.edge.requests import EventRequest


def _claim(claim: NodeClaim, operation_id: str | None) -> Mapping[str, Any]:
    status = "Deleting" if claim.deleting else claim.phase
    return outcome(claim.id, claim.name, status, operation_id, claim.cluster_id or None)


def create_claim(request: EventRequest) -> Mapping[str, Any]:
    """A new claim; its operation ends when the node is there."""
    from stockyard.operations.node_claims import create

    services, new_claim = wiring.services(request.tenant), request.body.new_claim()
    claim = create.create_claim(services, new_claim, request.actor, request.lease.stable_id(ids.NODE_CLAIM))
    audit(services, request, "CreateNodeClaim", claim.id)
    return _claim(claim, claim.operation_id)


def change_claim(request: EventRequest) -> Mapping[str, Any]:
    """The changed claim."""
    from stockyard.operations.engine.find import find_claim
    from stockyard.operations.node_claims import change

    services = wiring.services(request.tenant)

    def changed() -> NodeClaim:
        claim = find_claim(services, request.names["claim"])
        fields = request.body.changes(claim)
        return change.change_claim(services, claim.id, claim.version, fields, request.actor, request.request_id)

    return _claim(until_changed(changed), None)


def delete_claim(request: EventRequest) -> Mapping[str, Any]:
    """The claim on its way out; its operation ends when the machine is gone."""
    from stockyard.operations.node_claims import delete

    services = wiring.services(request.tenant)

    def deleted() -> Mapping[str, Any]:
        claim = delete.delete_claim(services, request.names["claim"], request.actor)
        audit(services, request, "DeleteNodeClaim", claim.id)
        return _claim(claim, claim.operation_id)

    return deletion(request, deleted, request.names["claim"])


def _provider(provider: NodeProvider) -> Mapping[str, Any]:
    return outcome(provider.id, provider.name, provider.phase)


def create_provider(request: EventRequest) -> Mapping[str, Any]:
    """A new source of nodes."""
    from stockyard.operations.node_providers import providers

    services, identifier = wiring.services(request.tenant), request.lease.stable_id(ids.NODE_PROVIDER)
    provider = providers.create_provider(services, request.body.document(), request.actor, identifier)
    audit(services, request, "CreateNodeProvider", provider.id)
    return _provider(provider)


def change_provider(request: EventRequest) -> Mapping[str, Any]:
    """The changed source of nodes; nodes that are there stay."""
    from stockyard.operations.node_providers import providers
    from stockyard.operations.node_providers.visible import find_own

    services = wiring.services(request.tenant)

    def changed() -> NodeProvider:
        provider = find_own(services, request.names["provider"])
        fields, actor = request.body.changes(provider), request.actor
        return providers.change_provider(services, provider.id, provider.version, fields, actor, request.request_id)

    return _provider(until_changed(changed))


def delete_provider(request: EventRequest) -> Mapping[str, Any]:
    """The removal of a source of nodes that nobody uses, which is over when it is answered."""
    from stockyard.operations.node_providers import providers

    services = wiring.services(request.tenant)

    def deleted() -> Mapping[str, Any]:
        operation = providers.delete_provider(services, request.names["provider"], request.actor)
        audit(services, request, "DeleteNodeProvider", operation.subject)
        return outcome(operation.subject, operation.subject_name, "deleted", operation.id)

    return deletion(request, deleted, request.names["provider"])
