"""Ways of people and machines into a cluster: kubeconfigs, tokens, the secret of its client."""

from __future__ import annotations

from functions.clusters.routes import http
from stockyard.domain.records import Cluster
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import Query
from stockyard.edge.identity import Roles
from stockyard.errors import Forbidden, IllegalTransition, InvalidInput, NotFound, UnexpectedBehavior, VendorError
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.services import Services


@http.route(
    "GET /v1/clusters/{id}/kubeconfig",
    roles=Roles.READERS,
    answers={200: "clusters.views:KubeconfigDocument"},
    query=(
        Query("static", "The stored one, with a client certificate; admins only.", "boolean"),
        Query("form", "With `secret` a Secret with a kubeconfig and a token of now.", values=("secret",)),
    ),
    audited=True,
    description="With an `exec` user by default. `form=secret` is for clusters that their cloud admits people to: the "
    "token in it is made for this answer, has the caller's role, and ends in 15 minutes at most. It is stored nowhere.",
)
def read_kubeconfig(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Get a kubeconfig."""
    import json

    from stockyard.operations.clusters.access.kubeconfig import exec_kubeconfig, kubeconfig_secret, static_kubeconfig

    if request.query.get("form"):
        if request.query.get("static"):
            raise InvalidInput.at("/form", "Ask for static or for form, not for both.")
        role = _role_in_cluster(request.caller.roles)
        secret = kubeconfig_secret(services, cluster, role, request.caller.actor)
        return Answer(200, secret, subject=cluster.id)
    if request.query.get("static"):
        if not request.caller.roles & (Roles.ADMIN | Roles.PLATFORM):
            raise Forbidden("The stored kubeconfig is for the role stockyard-admin.")
        return Answer(200, {"kubeconfig": static_kubeconfig(services, cluster)})
    # JSON is YAML; no YAML library is needed to write it.
    return Answer(200, {"kubeconfig": json.dumps(exec_kubeconfig(services, cluster), indent=2) + "\n"})


@http.route(
    "POST /v1/clusters/{id}/token",
    roles=Roles.READERS,
    answers={200: "clusters.views:ExecCredentialView"},
    description="For clusters that their cloud admits people to; people log in to others. The token has the caller's "
    "role: viewer, operator or admin. It ends in 15 minutes at most, and is stored nowhere.",
)
def make_cluster_token(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Make a token for a cluster. As `kubectl` takes it from a plugin."""
    from stockyard.operations.clusters.access.kubeconfig import exec_credential
    from stockyard.operations.clusters.access.tokens import mint

    token = mint(services, cluster, _role_in_cluster(request.caller.roles), request.caller.actor)
    return Answer(200, exec_credential(token), subject=cluster.id)


@http.route(
    "POST /v1/clusters/{id}/kubeconfig-secrets",
    machine=True,
    body="clusters.kubeconfig_secrets:SecretsRequest",
    answers={200: "clusters.kubeconfig_secrets:SecretsAnswer"},
    audited=False,
    description="Only by the cluster's own client. Tokens are made for this answer and end in 15 minutes at most; they "
    "are stored nowhere else.",
)
def refresh_kubeconfig_secrets(request: Request, services: Services) -> Answer:
    """Give an agent the Secrets with kubeconfigs that it keeps. They are those that somebody asks for."""
    from stockyard.operations.clusters.access.secret_refresh import refreshed

    holder = find_cluster(services, request.params["id"])
    if holder.client_id != request.caller.client_id:
        raise NotFound(f"There is no cluster {request.params['id']}.")
    if holder.status != "ready":
        raise IllegalTransition(f"The cluster is {holder.status}; its agent keeps no Secrets.")
    results = [result.model_dump() for result in request.body.results]
    answer = refreshed(services, holder, results, request.caller.actor, refresh=request.body.refresh)
    return Answer(200, answer, subject=holder.id)


def _role_in_cluster(roles: Roles) -> str:
    """Role of the caller in a cluster that the cloud admits people to: the most that a role of theirs allows."""
    from stockyard.ports.clusters import ADMIN, OPERATOR, VIEWER

    if roles & Roles.ADMINISTRATORS:
        return ADMIN
    return OPERATOR if roles & Roles.OPERATOR else VIEWER


@http.route(
    "GET /v1/clusters/{id}/client-secret",
    roles=Roles.ADMINISTRATORS,
    answers={200: "clusters.views:ClientSecretView"},
    audited=True,
)
def read_client_secret(request: Request, services: Services, cluster: Cluster) -> Answer:
    """Read the Keycloak client's secret. It comes from Keycloak, and reading it is audited."""
    try:
        secret = services.identity.client_secret(cluster.client_id)
    except VendorError as error:
        raise UnexpectedBehavior(f"Keycloak could not be asked ({error.error_type}).") from error
    return Answer(200, {"client_id": cluster.client_id, "client_secret": secret}, subject=cluster.id)
