"""Cloud accounts over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard import wiring
from stockyard.domain.platform import PLATFORM
from stockyard.domain.records import CloudAccount
from stockyard.domain.values import ids
from stockyard.domain.views import cloud_account_view, operation_view
from stockyard.edge.contract import Answer, Request
from stockyard.edge.http.query import TAG, Query, tagged
from stockyard.edge.identity import Roles
from stockyard.errors import InUse, InvalidInput
from stockyard.lifecycle.operation import progress
from stockyard.operations.cloud_accounts import accounts
from stockyard.operations.services import Services


def _account(request: Request, services: Services) -> CloudAccount:
    """The account that the path names by its number or its name."""
    return accounts.find_account(services, request.params["id"])


http = wiring.http("cloud_accounts", account=_account)
lambda_handler = http.lambda_handler

VIEW = "cloud_accounts:CloudAccountView"
SEALED, EXCHANGED = "(sealed)", "(sealed anew)"
"""What a plan shows of a secret."""
VERIFICATIONS = ("unverified", "verified", "failed")


def _account_answer(account: CloudAccount, status: int, **settings: Any) -> Answer:
    subject = f"cloud-account/{account.id}"
    return Answer(status, cloud_account_view(account), version=account.version, subject=subject, **settings)


def _change_plan(account: CloudAccount, fields: Mapping[str, Any], secrets: Mapping[str, str | None]) -> Answer:
    """The plan of a change; of secrets it says that they are exchanged, and never what they are."""
    before = {name: getattr(account, name) for name in fields}
    before |= {f"attributes/{name}": SEALED if name in account.secrets else None for name in secrets}
    after = {f"attributes/{name}": None if value is None else EXCHANGED for name, value in secrets.items()}
    return Answer.change_plan(before, {**fields, **after}, "cloud-account", account.name)


def _check_unused(services: Services, account: CloudAccount) -> None:
    """Refuse in a plan what the change itself would refuse: ``InUse`` when clusters stand on the account."""
    users = accounts.clusters_of(services, account.id)
    if users:
        raise InUse(f"Cloud account {account.id} is used by {', '.join(cluster.name for cluster in users)}.")


@http.route(
    "POST /v1/cloud-accounts",
    roles=Roles.ADMINISTRATORS,
    body="cloud_accounts:CloudAccountCreate",
    answers={201: VIEW, 200: "plan:PlanView"},
    idempotent=True,
    dry_run=True,
)
def register_cloud_account(request: Request, services: Services) -> Answer:
    """Register a cloud account. With the tenant's next number and an external id of ours."""
    from stockyard.operations.clusters.creation.deployment import remember_organization

    body = request.body
    if request.dry_run:
        accounts.plan_registration(services, body.provider, body.public_attributes())
        return Answer.free_plan(creates=[{"kind": "cloud-account", "name": body.name}])
    # Clusters of the account may come to be asked for by events alone, which say nothing of it.
    remember_organization(services, request.caller.organization_id)
    account = accounts.register_account(
        services,
        provider=body.provider,
        name=body.name,
        description=body.description,
        attributes=body.public_attributes(),
        secrets=body.secret_attributes(),
        tags=dict(body.tags),
        actor=request.caller.actor,
        claim=ids.ulid(request.lease.moment, request.lease.randomness) if request.lease else None,
    )
    return _account_answer(account, 201, location=f"/v1/cloud-accounts/{account.id}")


@http.route(
    "GET /v1/cloud-accounts",
    roles=Roles.READERS,
    answers={200: VIEW},
    query=(
        Query("provider", "Only accounts of this cloud.", pattern="^[a-z]+$"),
        Query("verification", "Only accounts whose last verification went so.", values=VERIFICATIONS),
        TAG,
    ),
    paged=True,
)
def list_cloud_accounts(request: Request) -> Answer:
    """List cloud accounts. The tenant's accounts in order of number, without their secrets."""
    store = wiring.store(request.caller.tenant)
    where = {name: request.query[name] for name in ("provider", "verification") if name in request.query} or None
    return Answer.matching(
        request.page,
        lambda after, limit: store.list(CloudAccount, after=after, limit=limit, where=where),
        lambda account: tagged(account.tags, request.query.get("tag")),
        cloud_account_view,
    )


@http.route("GET /v1/cloud-accounts/{id}", roles=Roles.READERS, answers={200: VIEW}, waits=True)
def get_cloud_account(request: Request, account: CloudAccount) -> Answer:
    """Get a cloud account. By its number or its name."""
    return _account_answer(account, 200)


@http.route(
    "PATCH /v1/cloud-accounts/{id}",
    roles=Roles.ADMINISTRATORS,
    body="cloud_accounts:CloudAccountPatch",
    answers={200: VIEW},
    if_match=True,
    dry_run=True,
)
def change_cloud_account(request: Request, services: Services, account: CloudAccount) -> Answer:
    """Change a cloud account. A JSON merge patch; new attributes make the account unverified."""
    fields = request.body.changes(account)
    secrets = request.body.changed_secrets(account)
    if request.dry_run:
        request.check_version("cloud account", account.version)
        services.clouds[account.provider].check_attributes(fields.get("attributes", account.attributes))
        if accounts.moves(services, account, fields.get("attributes", account.attributes)):
            _check_unused(services, account)
        return _change_plan(account, fields, secrets)
    actor, request_id = request.caller.actor, request.request_id
    changed = accounts.change_account(services, account.id, request.version, fields, actor, request_id, secrets)
    return _account_answer(changed, 200, audited=True)


@http.route(
    "DELETE /v1/cloud-accounts/{id}",
    roles=Roles.ADMINISTRATORS,
    answers={202: "operations:OperationView", 200: "plan:PlanView"},
    dry_run=True,
)
def delete_cloud_account(request: Request, services: Services, account: CloudAccount) -> Answer:
    """Remove a cloud account. Only when no cluster uses it. The operation has succeeded already when it is answered."""
    if request.dry_run:
        _check_unused(services, account)
        return Answer.free_plan(deletes=[{"kind": "cloud-account", "name": account.name}])
    operation = accounts.delete_account(services, account.id, request.caller.actor)
    return Answer.accepted(operation_view(operation, progress(operation)), operation.id, subject=operation.subject)


@http.route(
    "GET /v1/cloud-accounts/{id}/template",
    roles=Roles.READERS,
    answers={200: "cloud_accounts:AccountTemplate"},
    query=(Query("runs", "The template for programs of node providers, which run in the account.", "boolean"),),
)
def get_cloud_account_template(request: Request, services: Services, account: CloudAccount) -> Answer:
    """Template for the tenant's account. In AWS the CloudFormation template of the role that Stockyard assumes; in a
    Kubernetes host the objects of its service account. Each with least permissions."""
    cloud = services.clouds[account.provider]
    if not request.query.get("runs"):
        return Answer(200, cloud.template(account, services.installation))
    template = cloud.run_template(account)
    if template is None:
        raise InvalidInput.of_parameter("runs", "is not for this cloud: no programs run in its accounts")
    return Answer(200, template)


@http.route("POST /v1/cloud-accounts/{id}/verify", roles=Roles.ADMINISTRATORS, answers={200: VIEW}, idempotent=True)
def verify_cloud_account(request: Request, services: Services, account: CloudAccount) -> Answer:
    """Prove that the credentials work. A role must work with the external id, and must not without it; a Kubernetes
    host must grant each right that is needed."""
    return _account_answer(accounts.verify_account(services, account.id, request.caller.actor), 200)


@http.route("GET /v1/event-accounts", roles=Roles.ADMINISTRATORS, answers={200: "quotas:EventAccountsView"})
def get_event_accounts(request: Request) -> Answer:
    """Get the AWS accounts whose events are the tenant's requests. Empty unless the platform has set them."""
    from stockyard.operations.cloud_accounts.event_accounts import event_accounts_view

    view = event_accounts_view(wiring.services(PLATFORM), request.caller.tenant)
    return Answer(200, view, version=view["version"])


@http.route(
    "PUT /v1/event-accounts",
    roles=Roles.PLATFORM,
    body="quotas:EventAccountsPut",
    answers={200: "quotas:EventAccountsView"},
    if_match=True,
    dry_run=True,
    description="If-Match is the version that is shown, 0 while nothing is set. The bus's policy must admit the "
    "accounts besides. With `dry_run`: a plan.",
)
def set_event_accounts(request: Request) -> Answer:
    """Set the AWS accounts whose events are the tenant's requests. At once, without a deployment."""
    from stockyard.operations.cloud_accounts import event_accounts

    platform, tenant, listed = wiring.services(PLATFORM), request.caller.tenant, request.body.accounts
    if request.dry_run:
        current = event_accounts.event_accounts_view(platform, tenant)
        request.check_version("list of event accounts", int(current["version"]))
        event_accounts.check_free(platform, tenant, listed)
        planned = {"accounts": listed, "rights": request.body.rights}
        return Answer.change_plan(current, planned, "event-accounts")
    view = event_accounts.set_event_accounts(platform, tenant, listed, request.version, request.body.rights)
    return Answer(200, view, version=int(view["version"]), subject="event-accounts")
