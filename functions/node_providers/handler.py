"""Node providers over HTTP, their node types, their environments for clusters, and the types for a tenant's use."""

from __future__ import annotations

from typing import Any

from functions.node_providers import os_images
from functions.node_providers.routes import http
from stockyard import wiring
from stockyard.domain.nodes.declared_types import declared
from stockyard.domain.nodes.manifests import provider_manifest, provider_warnings
from stockyard.domain.nodes.records import NodeEnvironment, NodeProvider
from stockyard.domain.nodes.views import node_environment_view, node_provider_view, remarks
from stockyard.domain.platform import is_foreign, provider_prefix
from stockyard.domain.views import operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.paging import total_of
from stockyard.edge.http.query import FORM, LABEL, Query, tagged
from stockyard.edge.identity import Roles
from stockyard.errors import NotFound
from stockyard.lifecycle.operation import progress
from stockyard.operations.services import Services

__all__ = ["http", "lambda_handler", "os_images"]

lambda_handler = http.lambda_handler

VIEW = "nodes.node_providers:NodeProviderView"
PHASES = ("Pending", "Available", "Failed")
TYPE_PHASES = ("Pending", "Available", "Unavailable", "Failed")
KINDS = ("ec2", "simulated", "terraform", "kubeVirt", "bcm", "metal3", "clusterAPI")


def _provider_answer(
    request: Request, services: Services, provider: NodeProvider, status: int, **settings: Any
) -> Answer:
    view = _warned(services, provider, node_provider_view(provider, request.caller.tenant))
    return Answer(status, view, version=provider.version, subject=provider.id, **settings)


def _warned(services: Services, provider: NodeProvider, view: dict[str, Any], *, hosts: bool = False) -> dict[str, Any]:
    """The view with what the provider's source has to say of its document; ``hosts``: and of its hosts, as a plan
    does."""
    from stockyard.operations.node_providers.providers import finding_remarks, plan_remarks

    if is_foreign(services.tenant, provider):
        return view
    more = plan_remarks(services, provider) if hosts else finding_remarks(services, provider)
    warnings = view["warnings"]
    return {**view, "warnings": [*warnings, *(entry for entry in more if entry not in warnings)]}


@http.route(
    "POST /v1/node-providers",
    roles=Roles.ADMINISTRATORS,
    platform=True,
    body="nodes.node_providers:NodeProviderCreate",
    answers={201: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="Kinds that are not built yet are kept: their node types are listed and their claims wait.",
)
def create_node_provider(request: Request, services: Services) -> Answer:
    """Add a node provider. A source of nodes, with the node types that its document declares."""
    from stockyard.operations.node_providers.providers import create_provider, plan_creation

    document = request.body.document()
    if request.dry_run:
        provider = plan_creation(services, document)
        creates = [{"kind": "node-provider", "name": provider.name}]
        creates += [
            {"kind": "node-type", "name": f"{provider.name}.{node_type.name}"} for node_type in declared(provider)
        ]
        view = {"warnings": remarks(provider_warnings(provider, ("spec",), ("properties",)))}
        return Answer.free_plan(creates=creates, **_warned(services, provider, view, hosts=True))
    provider_id = request.stable_id(provider_prefix(services.tenant))
    provider = create_provider(services, document, request.caller.actor, provider_id)
    return _provider_answer(request, services, provider, 201, location=f"/v1/node-providers/{provider.id}")


@http.route(
    "GET /v1/node-providers",
    roles=Roles.READERS,
    platform=True,
    answers={200: VIEW},
    query=(
        Query("kind", "Only providers of this kind.", values=KINDS),
        Query("phase", "Only providers in this phase.", values=PHASES),
        Query("offers", "Also how many node types each offers now, and from which price on.", "boolean"),
        LABEL,
    ),
    paged=True,
    counted=True,
)
def list_node_providers(request: Request, services: Services) -> Answer:
    """List node providers. The tenant's providers in order of id, and behind them the shared ones."""
    from stockyard.operations.node_providers.visible import page_of

    tenant, store = request.caller.tenant, services.store
    label, with_offers = request.query.get("label"), bool(request.query.get("offers"))
    where = {name: request.query[name] for name in ("kind", "phase") if name in request.query} or None

    def offers(provider: NodeProvider) -> dict[str, Any] | None:
        if not with_offers:
            return None
        from stockyard.operations.node_providers.types import offer_of

        return offer_of(services, provider)

    return Answer.matching(
        request.page,
        lambda after, limit, **_: page_of(store, after, limit, where),
        lambda provider: tagged(provider.labels, label),
        lambda provider: {**node_provider_view(provider, tenant), "offers": offers(provider)},
    )


@http.route(
    "GET /v1/node-providers/{id}",
    roles=Roles.READERS,
    platform=True,
    answers={200: "nodes.node_providers:NodeProviderDocument"},
    query=(FORM,),
    waits=True,
)
def get_node_provider(request: Request, services: Services) -> Answer:
    """Get a node provider. By id or name."""
    from stockyard.operations.node_providers.visible import find_own, find_provider

    if request.query.get("form"):
        provider = find_own(services, request.params["id"])
        return Answer(200, provider_manifest(provider), version=provider.version)
    return _provider_answer(request, services, find_provider(services, request.params["id"]), 200)


@http.route(
    "PATCH /v1/node-providers/{id}",
    roles=Roles.ADMINISTRATORS,
    platform=True,
    body="nodes.node_providers:NodeProviderPatch",
    answers={200: VIEW},
    if_match=True,
    dry_run=True,
)
def change_node_provider(request: Request, services: Services) -> Answer:
    """Change a node provider. A JSON merge patch; nodes that are there stay."""
    from stockyard.operations.node_providers.providers import change_provider, changed_provider
    from stockyard.operations.node_providers.visible import find_own

    provider = find_own(services, request.params["id"])
    fields = request.body.changes(provider)
    if request.dry_run:
        changed = changed_provider(services, provider, request.version, fields)
        before, after = (node_provider_view(version, services.tenant) for version in (provider, changed))
        warnings = _warned(services, changed, after, hosts=True)["warnings"]
        return Answer.change_plan(
            before, {name: after[name] for name in fields}, "node-provider", provider.name, warnings=warnings
        )
    actor, request_id = request.caller.actor, request.request_id
    changed = change_provider(services, provider.id, request.version, fields, actor, request_id)
    return _provider_answer(request, services, changed, 200, audited=True)


@http.route(
    "DELETE /v1/node-providers/{id}",
    roles=Roles.ADMINISTRATORS,
    platform=True,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
)
def delete_node_provider(request: Request, services: Services) -> Answer:
    """Remove a node provider. Only when nothing uses it. The operation has succeeded already when it is answered."""
    from stockyard.operations.node_providers.providers import check_unused, delete_provider
    from stockyard.operations.node_providers.visible import find_own

    if request.dry_run:
        provider = find_own(services, request.params["id"])
        check_unused(services, provider)
        return Answer.free_plan(deletes=[{"kind": "node-provider", "name": provider.name}])
    operation = delete_provider(services, request.params["id"], request.caller.actor)
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=operation.subject)


@http.route(
    "GET /v1/node-types",
    roles=Roles.READERS,
    platform=True,
    answers={200: "nodes.node_types:NodeTypeView"},
    query=(
        Query("provider", "Only types of this provider, by id or name."),
        Query("phase", "Only types in this phase.", values=TYPE_PHASES),
    ),
    paged=True,
    counted=True,
)
def list_node_types(request: Request, services: Services) -> Answer:
    """List node types. Declared and discovered ones, in order of name."""
    from stockyard.operations.node_providers.types import count_types, list_types

    page = request.page
    provider, phase = request.query.get("provider"), request.query.get("phase")
    types, following = list_types(services, provider=provider, phase=phase, after=page.after, limit=page.size)
    total = total_of(count_types(services, provider, phase)) if page.counts else None
    return Answer.listing(types, following, total=total)


@http.route(
    "GET /v1/node-types/{id}",
    roles=Roles.READERS,
    platform=True,
    answers={200: "nodes.node_types:NodeTypeView"},
    query=(Query("history", "Also its spot prices of the last day.", "boolean"),),
    description="By id, by its name `provider.type`, or by `type` alone where no other provider has it.",
)
def get_node_type(request: Request, services: Services) -> Answer:
    """Get a node type."""
    from stockyard.operations.node_providers.types import get_type

    node_type = get_type(services, request.params["id"], history=bool(request.query.get("history")))
    return Answer(200, node_type, version=node_type["version"])


@http.route(
    "GET /v1/node-environments",
    roles=Roles.READERS,
    answers={200: "nodes.node_environments:NodeEnvironmentView"},
    query=(
        Query("cluster", "Only those of this cluster, by id."),
        Query("provider", "Only those of this provider, by id."),
    ),
    paged=True,
)
def list_node_environments(request: Request) -> Answer:
    """List node environments. What providers have set up for clusters, in order of id."""
    store = wiring.store(request.caller.tenant)
    attributes = {f"{name}_id": request.query[name] for name in ("cluster", "provider") if name in request.query}
    page = store.list(NodeEnvironment, after=request.page.after, limit=request.page.size, where=attributes or None)
    return Answer.listing([node_environment_view(environment) for environment in page.items], page.next_id)


@http.route(
    "GET /v1/node-environments/{id}",
    roles=Roles.READERS,
    answers={200: "nodes.node_environments:NodeEnvironmentView"},
    waits=True,
)
def get_node_environment(request: Request) -> Answer:
    """Get a node environment. By its id."""
    environment = wiring.store(request.caller.tenant).get(NodeEnvironment, request.params["id"])
    if environment is None:
        raise NotFound(f"There is no node environment {request.params['id']}.")
    return Answer(200, node_environment_view(environment), version=environment.version)


@http.route("GET /v1/allowed-node-types", roles=Roles.READERS, answers={200: "quotas:AllowedNodeTypesView"})
def get_allowed_node_types(request: Request, services: Services) -> Answer:
    """Get the node types that the tenant may use. All of them unless the platform has set a list."""
    from stockyard.operations.node_providers.allowed_types import allowed_view

    view = allowed_view(services)
    return Answer(200, view, version=view["version"])


@http.route(
    "PUT /v1/allowed-node-types",
    roles=Roles.PLATFORM,
    body="quotas:AllowedNodeTypesPut",
    answers={200: "quotas:AllowedNodeTypesView"},
    if_match=True,
    dry_run=True,
    description="If-Match is the version that is shown, 0 while nothing is set. With `dry_run`: a plan.",
)
def set_allowed_node_types(request: Request, services: Services) -> Answer:
    """Set the node types that the tenant may use. Nodes that are there stay; the list is for later ones."""
    from stockyard.operations.node_providers.allowed_types import allowed_view, set_allowed_types

    allowed = request.body.allowed
    if request.dry_run:
        current = allowed_view(services)
        request.check_version("list of allowed node types", int(current["version"]))
        return Answer.change_plan(current, {"allowed": allowed}, "allowed-node-types")
    view = set_allowed_types(services, allowed, request.version)
    return Answer(200, view, version=int(view["version"]), subject="allowed-node-types")
