"""Pools over HTTP: where a cluster's nodes come from, and how many there shall be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stockyard import wiring
from stockyard.domain.pools.manifests import pool_manifest
from stockyard.domain.pools.records import DYNAMIC, STATIC, Pool
from stockyard.domain.pools.views import pool_view
from stockyard.domain.records import Cluster, Event
from stockyard.domain.values import ids
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.etag import digest_of
from stockyard.edge.http.query import FORM, LABEL, Query, tagged
from stockyard.edge.identity import Roles
from stockyard.errors import InvalidInput, NotFound
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services

VIEW = "pools.views:PoolView"


def _cluster(request: Request, services: Services) -> Cluster:
    """The cluster that the path names; for a cluster's own client its own, and no other."""
    from stockyard.operations.machines.own_claims import cluster_of

    cluster = find_cluster(services, request.params["id"])
    if request.caller.machine and cluster_of(services, request.caller.client_id).id != cluster.id:
        raise NotFound(f"There is no cluster {request.params['id']}.")
    return cluster


http = wiring.http("pools", cluster=_cluster)
lambda_handler = http.lambda_handler


def _answer(
    services: Services, pool: Pool, status: int, warnings: Sequence[dict[str, str]] = (), **settings: Any
) -> Answer:
    from stockyard.operations.fleet.pools import pools

    view = {**pool_view(pool, pools.claims_of(services, pool.cluster_id, pool.name)), "warnings": list(warnings)}
    digest = digest_of(view["nodes"])
    return Answer(status, view, version=pool.version, subject=pool.id, digest=digest, **settings)


@http.route(
    "POST /v1/clusters/{id}/pools",
    roles=Roles.CHANGERS,
    body="pools.pools:PoolCreate",
    answers={201: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="Its nodes are made in the background as soon as the cluster is ready. With `dry_run` the answer is a"
    " plan: what its first nodes would be, and cost.",
)
def create_pool(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Make a pool. Static with a `quantity`, otherwise dynamic."""
    from stockyard.operations.fleet.pools import pools

    new_pool = request.body.new_pool()
    from stockyard.operations.fleet.pools.plan import plan_pool

    plan = plan_pool(services, cluster, new_pool)
    if request.dry_run:
        return Answer.plan(plan)
    request_name = request.stable_id(ids.POOL_REQUEST) or ""
    pool = pools.create_pool(services, cluster, new_pool, request.caller.actor, request_name)
    location = f"/v1/clusters/{cluster.id}/pools/{pool.name}"
    created_view = {**pool_view(pool, ()), "warnings": plan["warnings"]}
    return Answer(201, created_view, version=pool.version, subject=pool.id, location=location)


@http.route(
    "GET /v1/clusters/{id}/pools",
    roles=Roles.READERS,
    machine=True,
    answers={200: VIEW},
    query=(Query("kind", "Only pools of this kind.", values=(DYNAMIC, STATIC)), LABEL),
    paged=True,
)
def list_pools(request: Request, services: Services, cluster: Cluster) -> Answer:
    """List the pools of a cluster. In order of name. A cluster's own client sees those of its cluster."""
    from stockyard.operations.fleet.pools import pools

    by_pool: dict[str, list[Any]] = {}
    # A cluster reads what it has just claimed; people may see what is a second old.
    for claim in pools.claims_of(services, cluster.id, consistent=request.caller.machine):
        by_pool.setdefault(claim.pool, []).append(claim)
    kind, label = request.query.get("kind"), request.query.get("label")
    where = {"kind": kind} if kind else None
    return Answer.matching(
        request.page,
        lambda after, limit: services.store.list(Pool, prefix=f"{cluster.id}/", after=after, limit=limit, where=where),
        lambda pool: tagged(pool.labels, label),
        lambda pool: pool_view(pool, by_pool.get(pool.name, ())),
    )


@http.route("GET /v1/clusters/{id}/usage", roles=Roles.READERS, answers={200: "pools.usage:ClusterUsageView"})
def get_usage(_: Request, services: Services, cluster: Cluster) -> Answer:
    """Get the use of a cluster's nodes. What pods ask for of each node and pool, as the agent has last told."""
    from stockyard.operations.fleet.pools import pools
    from stockyard.operations.fleet.state import usage_view, workload_of

    # What the agent has told is some seconds old anyway.
    claims = pools.claims_of(services, cluster.id, consistent=False)
    return Answer(200, usage_view(cluster.id, claims, workload_of(services, cluster.id)))


@http.route(
    "GET /v1/clusters/{id}/pools/{name}",
    roles=Roles.READERS,
    machine=True,
    answers={200: "pools.views:PoolDocument"},
    query=(FORM,),
    waits=True,
    description="A cluster's own client sees those of its cluster. With `form=manifest` the answer is the document that"
    " the pool came as: a vcluster.yaml with it, a NodePool, a node group, or a Pool of ours.",
)
def get_pool(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get a pool."""
    from stockyard.operations.fleet.pools import pools

    pool = pools.find_pool(services, cluster, request.params["name"])
    if request.query.get("form"):
        return Answer(200, pool_manifest(pool, cluster.name), version=pool.version)
    answer = _answer(services, pool, 200)
    return replace(answer, probe=lambda: _state(services, pool.id))


def _state(services: Services, pool_id: str) -> tuple[int, str]:
    """Version of all that is shown of a pool: its record, or the newest event, since each change of a claim has one.
    Less to read than all claims of the pool."""
    pool = services.store.get(Pool, pool_id)
    newest = services.store.list(Event, limit=1, newest_first=True).items
    return pool.version if pool else 0, newest[0].id if newest else ""


def _change_of_groups(
    request: Request, services: Services, cluster: Cluster, pool: Pool, patch: dict[str, Any], *, queue: bool
) -> Answer:
    """A change of the cluster's settings for the sake of one pool: its plan, or its operation."""
    from stockyard.operations.clusters import groups

    if request.dry_run:
        return Answer.plan(groups.plan_groups(services, cluster, patch))
    actor, request_id = request.caller.actor, request.request_id
    operation_id, warnings = groups.change_groups(services, cluster, patch, actor, request_id, queue=queue)
    return _answer(services, pool, 202, warnings, audited=True, location=f"/v1/operations/{operation_id}")


@http.route(
    "PATCH /v1/clusters/{id}/pools/{name}",
    roles=Roles.CHANGERS,
    body="pools.pools:PoolPatch",
    answers={200: VIEW, 202: VIEW},
    if_match=True,
    dry_run=True,
    description="What a node group of the cluster's settings says of its pool is changed there, by an operation: the"
    " answer is 202, and `Location` names the operation. Its nodes are replaced one by one where they are made of"
    " something else. All else of a pool is changed at once.",
)
def change_pool(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Change a pool. A JSON merge patch; what the nodes are made of is drift of those that are there."""
    from stockyard.operations.clusters import groups
    from stockyard.operations.fleet.pools import pools

    pool = pools.find_pool(services, cluster, request.params["name"])
    changed = request.body.apply_to(pool)
    if groups.is_group(cluster, pool) and pools.group_changes(pool, changed):
        request.check_version("pool", pool.version)
        patch = groups.altered_groups(services, cluster, pool, changed, request.body.model_fields_set)
        return _change_of_groups(request, services, cluster, pool, patch, queue=request.body.queue)
    if request.dry_run:
        request.check_version("pool", pool.version)
        from stockyard.operations.fleet.pools.plan import change_warnings

        pools.check_change(services, cluster, pool, changed)
        warnings = change_warnings(services, cluster, pool, changed)
        return Answer.change_plan(pool, pools.changes_of(pool, changed), "pool", pool.name, warnings=warnings)
    actor, request_id = request.caller.actor, request.request_id
    moved = pools.change_pool(services, cluster, pool, request.version, changed, actor, request_id)
    return _answer(services, moved, 200, audited=True)


@http.route(
    "DELETE /v1/clusters/{id}/pools/{name}",
    roles=Roles.CHANGERS,
    answers={202: VIEW, 200: "plan:PlanView"},
    query=(
        Query("confirm", "The pool's name. Needed for the pool of a node group of the cluster's settings."),
        Query("queue", "Wait for the operation that is at work on the cluster.", "boolean"),
    ),
    dry_run=True,
    description="The pool of a node group leaves the cluster's settings by an operation, which `Location` names.",
)
def delete_pool(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Delete a pool. Its nodes are drained and given back, then it is gone; a second request changes nothing."""
    from stockyard.operations.clusters import groups
    from stockyard.operations.fleet.pools import pools

    group = pools.find_pool(services, cluster, request.params["name"])
    if groups.is_group(cluster, group) and not group.deleting:
        if not request.dry_run:
            groups.check_confirmed(group, request.query.get("confirm"))
        patch = groups.remaining_groups(services, cluster, group)
        queue = bool(request.query.get("queue"))
        return _change_of_groups(request, services, cluster, group, patch, queue=queue)
    if request.dry_run:
        from stockyard.operations.fleet.pools.plan import plan_deletion

        return Answer.plan(plan_deletion(services, cluster, request.params["name"]))
    pool = pools.delete_pool(services, cluster, request.params["name"], request.caller.actor)
    return _answer(services, pool, 202, location=f"/v1/clusters/{cluster.id}/pools/{pool.name}")


@http.route(
    "GET /v1/clusters/{id}/disruption",
    roles=Roles.READERS,
    answers={200: "pools.disruption:ClusterDisruptionView"},
)
def get_disruption(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get what is being done to a cluster's nodes, and what it saves. The decision that is being carried out, or the
    last one."""
    from stockyard.operations.fleet.disruption.preview import disruption_view

    return Answer(200, disruption_view(services, cluster))


@http.route(
    "PUT /v1/clusters/{id}/disruption",
    roles=Roles.CHANGERS,
    body="pools.disruption:DisruptionSwitchPut",
    answers={200: "pools.disruption:ClusterDisruptionView"},
)
def set_disruption(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Pause the disruption of a cluster, or let it go on. A decision whose nodes have not left yet is given up."""
    from stockyard.operations.fleet.disruption.pause import pause_cluster
    from stockyard.operations.fleet.disruption.preview import disruption_view

    pause_cluster(services, cluster, paused=request.body.paused)
    return Answer(200, disruption_view(services, cluster), subject=cluster.id)


@http.route(
    "GET /v1/clusters/{id}/disruption/preview",
    roles=Roles.READERS,
    answers={200: "pools.disruption:DisruptionPreviewView"},
    question=True,
    description="For each node that stays the answer names the rule that keeps it. At most 1,000 nodes.",
)
def preview_disruption(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Say which nodes would leave now, why, and what it saves. Nothing is done."""
    from stockyard.operations.fleet.disruption.preview import preview

    return Answer(200, preview(services, cluster))


@http.route("GET /v1/disruption", roles=Roles.READERS, answers={200: "pools.disruption:DisruptionSwitchView"})
def get_disruption_switch(request: Request, services: Services) -> Answer:
    """Get the switch that pauses the disruption of all clusters. Each cluster has another one of its own."""
    from stockyard.operations.fleet.disruption.pause import tenant_view

    return Answer(200, tenant_view(services))


@http.route(
    "PUT /v1/disruption",
    roles=Roles.ADMINISTRATORS,
    body="pools.disruption:DisruptionSwitchPut",
    answers={200: "pools.disruption:DisruptionSwitchView"},
)
def set_disruption_switch(request: Request, services: Services) -> Answer:
    """Pause the disruption of all clusters, or let it go on. Decisions whose nodes have not left yet are given up."""
    from stockyard.operations.fleet.disruption.pause import pause_tenant

    view = pause_tenant(services, paused=request.body.paused)
    return Answer(200, view, subject="disruption")


@http.route(
    "POST /v1/placements",
    roles=Roles.READERS,
    body="pools.placements:PlacementRequest",
    answers={200: "pools.placements:PlacementsView"},
    question=True,
    audited=False,
    large=True,
    description="Asks without doing: nothing is made or reserved. For each pod that is left out the answer says which"
    " pool refused it by which rule.",
)
def plan_placements(request: Request, services: Services) -> Answer:
    """Say which nodes pods would need, and at what price."""
    from stockyard.operations.fleet.pools.placements import plan_placements as answer

    cluster = _asked_cluster(services, request)
    return Answer(200, answer(services, cluster, request.body.manifests, preferences=request.body.preferences))


def _asked_cluster(services: Services, request: Request) -> Cluster | None:
    """The cluster that the body is about, if it names one."""
    try:
        return None if request.body.cluster is None else find_cluster(services, request.body.cluster)
    except NotFound as error:
        raise InvalidInput.at("/cluster", error.detail) from None


@http.route(
    "POST /v1/simulations",
    roles=Roles.READERS,
    body="pools.simulations:SimulationRequest",
    answers={200: "pools.simulations:SimulationView"},
    question=True,
    audited=False,
    large=True,
    description="Nothing is made. Equal requests have equal answers while prices stay. A trace has at most 31 days and"
    " 10,000 pods; where it takes more work than one request has, the answer says up to which moment it counts.",
)
def simulate_disruption(request: Request, services: Services) -> Answer:
    """Replay a history of pods against a policy of disruption: what nodes would have cost, and who would have moved."""
    from stockyard.operations.fleet.pools.simulations import simulate

    return Answer(200, simulate(services, _asked_cluster(services, request), request.body))
