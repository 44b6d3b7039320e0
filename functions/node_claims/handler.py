"""Node claims over HTTP: ask for a node, see what becomes of it and why, give it back."""

from __future__ import annotations

from typing import Any

from stockyard import wiring
from stockyard.domain.nodes.manifests import claim_manifest
from stockyard.domain.nodes.records import NodeClaim
from stockyard.domain.nodes.views import node_claim_view
from stockyard.domain.records import Cluster, Operation
from stockyard.domain.values import ids
from stockyard.domain.views import operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.paging import MOST_FILTERED
from stockyard.edge.http.query import FORM, LABEL, ORDER, Query, tagged
from stockyard.edge.identity import Roles
from stockyard.errors import Forbidden, InvalidInput, NotFound, UnexpectedBehavior
from stockyard.lifecycle.operation import progress
from stockyard.operations.services import Services

VIEW = "nodes.node_claims:NodeClaimView"
PHASES = ("Pending", "Available", "Failed")
DELETING = "Deleting"
"""What tables show in place of the phase of a claim that is being deleted."""


def _claim_answer(claim: NodeClaim, status: int, **settings: Any) -> Answer:
    return Answer(status, node_claim_view(claim), version=claim.version, subject=claim.id, **settings)


def _own_cluster(request: Request, services: Services) -> Cluster | None:
    """The cluster whose claims the caller is confined to; None for people."""
    from stockyard.operations.machines.own_claims import cluster_of

    return cluster_of(services, request.caller.client_id) if request.caller.machine else None


def _visible_claim(request: Request, services: Services) -> NodeClaim:
    """The claim that the path names, if the caller may see it."""
    from stockyard.operations.engine.find import find_claim
    from stockyard.operations.machines.own_claims import own_claim

    own_cluster = _own_cluster(request, services)
    return (
        own_claim(services, own_cluster, request.params["id"])
        if own_cluster
        else find_claim(services, request.params["id"])
    )


http = wiring.http("node_claims", claim=_visible_claim)
lambda_handler = http.lambda_handler


def _operation(services: Services, claim: NodeClaim) -> Answer:
    operation = services.store.get(Operation, claim.operation_id or "")
    if operation is None:
        raise UnexpectedBehavior("The operation is not readable just now; the claim names it.")
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=claim.id)


def _check_run(request: Request) -> None:
    """``InvalidInput`` for a run without a dry run. ``Forbidden`` for a cluster's own client: templates of the tenant's
    providers are for people, who may read these."""
    if not request.dry_run:
        raise InvalidInput.of_parameter("run", "is for a dry run: give dry_run too.")
    if request.caller.machine:
        raise Forbidden("The run of a template is shown to people only.")


@http.route(
    "POST /v1/node-claims",
    roles=Roles.CHANGERS,
    machine=True,
    body="nodes.node_claims:NodeClaimCreate",
    answers={202: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    query=(Query("run", "Of a dry run: also the run of a template that would make the node.", "boolean"),),
    description="With `dry_run` the answer is a plan: the node type that would be chosen now, its price, and what"
    " ruled the others out. A cluster's own client claims nodes for its cluster alone.",
)
def create_node_claim(request: Request, services: Services) -> Answer:
    """Claim a node. The cheapest node type that fits is chosen in the background."""
    from stockyard.operations.machines.own_claims import check_named
    from stockyard.operations.node_claims.create import check_creation, create_claim

    new_claim = request.body.new_claim()
    if own_cluster := _own_cluster(request, services):
        check_named(own_cluster, new_claim.cluster_ref)
    if request.query.get("run"):
        _check_run(request)
    warnings: list[dict[str, str]] = []
    if request.dry_run or not request.caller.machine:  # a cluster reads no warnings, and may claim many nodes
        from stockyard.operations.fleet.explain import plan_claim

        plan = plan_claim(services, new_claim, with_run=bool(request.query.get("run")))
        if request.dry_run:
            check_creation(services, new_claim, request.caller.actor)
            return Answer.plan(plan)
        warnings = plan["warnings"]
    claim = create_claim(services, new_claim, request.caller.actor, request.stable_id(ids.NODE_CLAIM))
    created_view = {**node_claim_view(claim), "warnings": warnings}
    location = f"/v1/operations/{claim.operation_id}"
    return Answer(202, created_view, version=claim.version, subject=claim.id, location=location)


@http.route(
    "GET /v1/node-claims",
    roles=Roles.READERS,
    machine=True,
    answers={200: VIEW},
    query=(
        Query("cluster", "Only claims of this cluster, by id or name."),
        Query("provider", "Only claims that ask for this provider by name, or have a node of it."),
        Query(
            "phase",
            "Only claims in this phase; `Deleting`: only those that are being deleted.",
            values=(*PHASES, DELETING),
        ),
        Query("reason", "Only claims with this reason, such as `InsufficientCapacity`.", pattern="^[A-Za-z]+$"),
        Query("pool", "Only claims of pools of this name."),
        LABEL,
        ORDER,
    ),
    paged=True,
    counted=True,
    description="A cluster's own client sees those of its cluster. With `cluster` claims may be a second old, and one"
    " that was made before its cluster comes a minute after that at most.",
)
def list_node_claims(request: Request, services: Services) -> Answer:
    """List node claims. The tenant's claims in order of id."""
    from stockyard.operations.machines.own_claims import belongs
    from stockyard.operations.node_claims.cluster_claims import page_of
    from stockyard.operations.quotas.node_claims import used_claims
    from stockyard.ports import Page

    reference, provider = request.query.get("cluster"), request.query.get("provider")
    label, newest_first = request.query.get("label"), request.query.get("order") == "desc"
    where: dict[str, Any] = {name: request.query[name] for name in ("phase", "reason", "pool") if name in request.query}
    leaving = where.get("phase") == DELETING
    if leaving:
        del where["phase"]
    own_cluster = _own_cluster(request, services)
    named_cluster = _named_cluster(services, reference)
    cluster = own_cluster or named_cluster

    def read(after: str | None, limit: int, *, consistent: bool = True) -> Page[NodeClaim]:
        if cluster is not None:
            # People may see what is a second old; a cluster reads what it has just claimed.
            consistent = consistent and own_cluster is not None
            pool = request.query.get("pool")
            return page_of(services, cluster.id, pool, after, limit, newest_first=newest_first, consistent=consistent)
        return services.store.list(
            NodeClaim, after=after, limit=limit, newest_first=newest_first, where=where or None,
            most=MOST_FILTERED if where else None, consistent=consistent,
        )  # fmt: skip

    def matches(claim: NodeClaim) -> bool:
        if own_cluster is not None and not belongs(claim, own_cluster):
            return False
        of_cluster = reference is None or (
            claim.cluster_id == named_cluster.id if named_cluster is not None else claim.cluster_ref == reference
        )
        placed = claim.placement.type.partition(".")[0] if claim.placement else None
        return (
            of_cluster
            and all(getattr(claim, name) == value for name, value in where.items())
            and (claim.deleting or not leaving)
            and (provider is None or provider in (claim.provider_ref, placed))
            and tagged(claim.labels, label)
        )

    return Answer.matching(
        request.page,
        read,
        matches,
        node_claim_view,
        # All claims are counted for their quota; a part of them is counted when somebody asks.
        None if own_cluster is not None or request.query.keys() - {"order"} else lambda: used_claims(services),
    )


def _named_cluster(services: Services, reference: str | None) -> Cluster | None:
    """The cluster of this id or name, if there is one now."""
    from stockyard.operations.engine.find import find_cluster

    if reference is None:
        return None
    try:
        return find_cluster(services, reference)
    except NotFound:
        return None


@http.route(
    "GET /v1/node-claims/{id}",
    roles=Roles.READERS,
    machine=True,
    answers={200: "nodes.node_claims:NodeClaimDocument"},
    query=(FORM,),
    waits=True,
    description="A cluster's own client sees those of its cluster.",
)
def get_node_claim(request: Request, claim: NodeClaim) -> Answer:
    """Get a node claim. By id or name."""
    if request.query.get("form"):
        return Answer(200, claim_manifest(claim), version=claim.version)
    return _claim_answer(claim, 200)


@http.route(
    "PATCH /v1/node-claims/{id}",
    roles=Roles.CHANGERS,
    body="nodes.node_claims:NodeClaimPatch",
    answers={200: VIEW},
    if_match=True,
    dry_run=True,
)
def change_node_claim(request: Request, services: Services) -> Answer:
    """Change a node claim. A JSON merge patch of labels, annotations, name and power; the rest is another node's."""
    from stockyard.operations.engine.find import find_claim
    from stockyard.operations.node_claims.change import change_claim

    claim = find_claim(services, request.params["id"])
    fields = request.body.changes(claim)
    if request.dry_run:
        request.check_version("claim", claim.version)
        return Answer.change_plan(claim, fields, "node-claim", claim.name)
    actor, request_id = request.caller.actor, request.request_id
    return _claim_answer(
        change_claim(services, claim.id, request.version, fields, actor, request_id), 200, audited=True
    )


@http.route(
    "DELETE /v1/node-claims/{id}",
    roles=Roles.CHANGERS,
    machine=True,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
    query=(
        Query(
            "grace_seconds",
            "How long pods may still hold the node; 0 ends them at once, also when the deletion is under way.",
            "integer",
            minimum=0,
            maximum=31_536_000,
        ),
    ),
    description="A cluster's own client gives back those of its cluster. A drain waits for pods that budgets or "
    "karpenter.sh/do-not-disrupt hold as long as the claim's termination_grace_period says; grace_seconds makes it "
    "less.",
)
def delete_node_claim(request: Request, services: Services, claim: NodeClaim) -> Answer:
    """Give a node back. In every state; a second request names the same operation."""
    from stockyard.operations.node_claims.delete import delete_claim, plan_deletion

    grace = request.query.get("grace_seconds")
    if request.dry_run:
        return Answer.plan(plan_deletion(services, claim.id, grace))
    return _operation(services, delete_claim(services, claim.id, request.caller.actor, grace))


@http.route(
    "GET /v1/node-claims/{id}/explanation",
    roles=Roles.READERS,
    answers={200: "nodes.explanations:ExplanationView"},
    query=(
        Query(
            "cures",
            "Also what would get a machine for a claim that waits, which takes a little longer.",
            "boolean",
        ),
    ),
)
def explain_node_claim(request: Request, services: Services) -> Answer:
    """Explain why a claim got its node type, or none. For each node type the first rule that ruled it out."""
    from stockyard.operations.fleet.explain import explain_claim

    return Answer(200, explain_claim(services, request.params["id"], with_cures=bool(request.query.get("cures"))))


@http.route(
    "POST /v1/node-claims/{id}/power",
    roles=Roles.CHANGERS,
    body="nodes.node_claims:PowerChange",
    answers={202: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="409 where its kind of provider switches no machines. With `dry_run`: a plan.",
)
def power_node_claim(request: Request, services: Services) -> Answer:
    """Switch a node's machine on or off, or restart it. What the machine shall do; `power_observed` is what it does."""
    from stockyard.operations.engine.find import find_claim
    from stockyard.operations.node_claims.power import plan_power, power_claim

    state, actor = request.body.state, request.caller.actor
    if request.dry_run:
        claim = find_claim(services, request.params["id"])
        parts = plan_power(services, claim, state, actor)
        # who restarts a machine leaves it as it was meant to be
        fields = {} if state == "Reboot" else {"power": state}
        return Answer.change_plan(claim, fields, "node-claim", claim.name, **parts)
    return _claim_answer(power_claim(services, request.params["id"], state, actor), 202)
