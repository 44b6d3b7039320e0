"""Cluster profiles over HTTP, and the profiles of clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stockyard import wiring
from stockyard.domain.nodes.manifests import OWN
from stockyard.domain.profiles.cluster_profiles import PROFILE_KIND
from stockyard.domain.profiles.records import ClusterProfile
from stockyard.domain.records import Cluster, Operation
from stockyard.domain.values import ids
from stockyard.domain.views import operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import FORM, Query
from stockyard.edge.identity import Roles
from stockyard.errors import Forbidden, IllegalTransition, UnexpectedBehavior
from stockyard.lifecycle.operation import progress
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services

http = wiring.http("cluster_profiles")
lambda_handler = http.lambda_handler

VIEW = "clusters.profiles:ClusterProfileView"
CLUSTER_VIEW = "clusters.profiles:ClusterProfilesView"


def _view(profile: ClusterProfile, content: dict[str, Any] | None = None, number: str = "") -> dict[str, Any]:
    versions = [
        {
            "version": version.number,
            "digest": version.digest,
            "created_at": version.created_at,
            "created_by": version.created_by,
            "rights": version.rights,
        }
        for version in profile.versions
    ]
    return {
        "id": profile.id,
        "name": profile.name,
        "description": profile.description,
        "cloud": profile.cloud,
        "version": number or profile.versions[-1].number,
        "versions": versions,
        "variables": content["variables"] if content else None,
        "packs": [_pack_view(pack) for pack in content["packs"]] if content else None,
        "created_at": profile.created_at,
        "updated_at": profile.updated_at,
    }


def _pack_view(pack: dict[str, Any]) -> dict[str, Any]:
    """A pack as it was written: what is named by its address is not repeated."""
    manifests = [
        {name: value for name, value in manifest.items() if name != "content" or "url" not in manifest}
        for manifest in pack["manifests"]
    ]
    return {**pack, "manifests": manifests}


def _answer(services: Services, profile: ClusterProfile, status: int, number: str | None = None, **more: Any) -> Answer:
    from stockyard.operations.profiles.profiles import content_of, version_of

    version = version_of(profile, number)
    content = dict(content_of(services, profile, version))
    return Answer(status, _view(profile, content, version.number), version=profile.version, subject=profile.id, **more)


@http.route(
    "POST /v1/cluster-profiles",
    roles=Roles.CHANGERS,
    body="clusters.profiles:ClusterProfileCreate",
    answers={201: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
    description="Manifests that are named by `url` are fetched now, must have the `digest`, and are kept with the"
    " version, which never changes.",
)
def create_cluster_profile(request: Request, services: Services) -> Answer:
    """Make a cluster profile. With its first version."""
    from stockyard.operations.profiles import profiles

    body = request.body
    if request.dry_run:
        profiles.check_name(services, body.name)
        profiles.complete_content(services, body.content())
        return Answer.free_plan(creates=[{"kind": "cluster-profile", "name": f"{body.name} {body.version}"}])
    profile = profiles.create_profile(
        services,
        name=body.name,
        description=body.description,
        cloud=body.cloud,
        version=body.version,
        content=body.content(),
        actor=request.caller.actor,
        rights=request.caller.rights,
        id=request.stable_id(ids.CLUSTER_PROFILE) or services.new_id(ids.CLUSTER_PROFILE),
    )
    return _answer(services, profile, 201, location=f"/v1/cluster-profiles/{profile.id}")


@http.route("GET /v1/cluster-profiles", roles=Roles.READERS, answers={200: VIEW}, paged=True)
def list_cluster_profiles(request: Request) -> Answer:
    """List cluster profiles. Without what their versions say."""
    store = wiring.store(request.caller.tenant)
    return Answer.matching(
        request.page,
        lambda after, limit: store.list(ClusterProfile, after=after, limit=limit),
        lambda _: True,
        _view,
    )


@http.route(
    "GET /v1/cluster-profiles/{id}",
    roles=Roles.READERS,
    answers={200: "clusters.profiles:ClusterProfileDocument"},
    query=(Query("version", "The version to show; by default the newest."), FORM),
    description="With `form=manifest` the answer is a document that `POST /v1/apply` takes.",
)
def get_cluster_profile(request: Request, services: Services) -> Answer:
    """Get a cluster profile. By id or name, with what one of its versions says."""
    from stockyard.operations.profiles.profiles import find_profile

    answer = _answer(services, find_profile(services, request.params["id"]), 200, request.query.get("version"))
    return replace(answer, body=_manifest(answer.body)) if request.query.get("form") else answer


def _manifest(view: Any) -> dict[str, Any]:
    """A version of a profile as a document."""
    spec = {name: view[name] for name in ("version", "description", "cloud", "variables", "packs") if view[name]}
    return {"apiVersion": OWN, "kind": PROFILE_KIND, "metadata": {"name": view["name"]}, "spec": spec}


@http.route(
    "PUT /v1/cluster-profiles/{id}",
    roles=Roles.CHANGERS,
    body="clusters.profiles:ClusterProfilePut",
    answers={200: VIEW},
    if_match=True,
    dry_run=True,
    description="The earlier versions stay, and clusters that have them. With `dry_run`: a plan.",
)
def add_cluster_profile_version(request: Request, services: Services) -> Answer:
    """Add a version to a cluster profile."""
    from stockyard.operations.profiles import profiles

    body = request.body
    profile = profiles.find_profile(services, request.params["id"])
    if request.dry_run:
        request.check_version("cluster profile", profile.version)
        profiles.check_version(profile, body.version)
        profiles.complete_content(services, body.content())
        latest = {"version": profile.versions[-1].number}
        return Answer.change_plan(latest, {"version": body.version}, "cluster-profile", profile.name)
    changed = profiles.add_version(
        services,
        profile.id,
        request.version,
        version=body.version,
        description=body.description,
        content=body.content(),
        actor=request.caller.actor,
        rights=request.caller.rights,
        request_id=request.request_id,
    )
    return _answer(services, changed, 200, audited=True)


@http.route(
    "DELETE /v1/cluster-profiles/{id}",
    roles=Roles.CHANGERS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
)
def delete_cluster_profile(request: Request, services: Services) -> Answer:
    """Remove a cluster profile. Only when no cluster uses it; one with a version that an administrator has made is
    removed by administrators alone. The operation has succeeded when it is answered."""
    from stockyard.operations.profiles import profiles

    profiles.check_may_delete(profiles.find_profile(services, request.params["id"]), request.caller.rights)
    if request.dry_run:
        profile = profiles.find_profile(services, request.params["id"])
        profiles.check_unused(services, profile)
        return Answer.free_plan(deletes=[{"kind": "cluster-profile", "name": profile.name}])
    operation = profiles.delete_profile(services, request.params["id"], request.caller.actor)
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=operation.subject)


@http.route(
    "GET /v1/clusters/{id}/profiles",
    roles=Roles.READERS,
    answers={200: CLUSTER_VIEW},
    query=(Query("refresh", "Compare with what stands in the cluster, which must be ready.", "boolean"),),
    description="With `refresh` the cluster is asked for every object and the result is kept: not for viewers.",
)
def get_profiles_of_cluster(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get the profiles of a cluster. With the status of each pack, and what has drifted."""
    from stockyard.operations.profiles import clusters

    if request.query.get("refresh"):
        if not request.caller.roles & Roles.CHANGERS:
            raise Forbidden("To compare with the cluster needs the role stockyard-operator or a higher one.")
        clusters.compare(services, cluster, request.caller.actor)
    return Answer(200, clusters.profiles_view(services, cluster), version=cluster.version, subject=cluster.id)


@http.route(
    "PUT /v1/clusters/{id}/profiles",
    roles=Roles.CHANGERS,
    body="clusters.profiles:ClusterProfilesPut",
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    if_match=True,
    dry_run=True,
    description="`If-Match` is the cluster's version. An operation of kind `change_cluster` applies what is new or"
    " different, and removes what no pack has any more. With `dry_run` the plan names the objects that come and go,"
    " those that change by digests, and values before and after.",
)
def put_profiles_of_cluster(request: Request, services: Services) -> Answer:
    """Set the profiles of a cluster. All of them, on a ready cluster."""
    from stockyard.domain.clusters.change import ClusterChange
    from stockyard.domain.models.clusters.profiles import choice_documents
    from stockyard.operations.clusters.changes import reconfigure
    from stockyard.operations.clusters.changes.change import change_cluster
    from stockyard.operations.profiles.clusters import profile_change

    choices = choice_documents(request.body.profiles)
    cluster: Cluster = find_cluster(services, request.params["id"])
    if reconfigure.awaits_profiles(cluster, reconfigure.current_operation(services, cluster)):
        raise IllegalTransition("Its creation has failed at its packs: patch its profiles, then resume it.")
    if request.dry_run:
        request.check_version("cluster", cluster.version)
        reconfigure.operation_kind(services, cluster, cluster, profiles=True)
        change = profile_change(services, cluster, cluster, choices, request.caller.rights)
        return Answer.plan(reconfigure.plan_change(services, cluster, cluster, {}, change))
    changed, _ = change_cluster(
        services,
        cluster.id,
        request.version,
        ClusterChange(profiles=choices, rights=request.caller.rights),
        actor=request.caller.actor,
        request_id=request.request_id,
    )
    operation = services.store.get(Operation, changed.operation_id or "")
    if operation is None:
        raise UnexpectedBehavior("The operation is not readable just now; the cluster names it.")
    view = operation_view(operation, progress(operation))
    return Answer.accepted(view, operation.id, subject=cluster.id, audited=True)
