"""Contents of a new local cloud: the tenant's key pair, role and verified account, and accounts that send events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.aws import tenant_role
from local.aws.accounts import ACME_ACCOUNT, GLOBEX_ACCOUNT, OWN_ACCOUNT
from local.aws.permissions.asked import make_linked_role
from local.fault_plan import AccountPlan

TENANT_ROLE = "stockyard-tenant"
KEY_PAIR = "my-key"


def seed_tenant(
    call: Callable[..., Any], client: Callable[[str], Any], plan: AccountPlan | None = None
) -> dict[str, Any]:
    """The tenant's key pair; its account, registered and verified by the API; what the template makes that the API
    gives, in the version of the plan; the roles of services that the account has to begin with.

    ``call`` is ``LocalCloud.call``, ``client`` makes a boto3 client with the tenant's keys. Returns what the
    verification answers.
    """
    account_plan = plan or AccountPlan()
    client("ec2").create_key_pair(KeyName=KEY_PAIR)
    role = f"arn:aws:iam::{ACME_ACCOUNT}:role/{TENANT_ROLE}"
    body = {
        "provider": "aws",
        "name": "acme",
        "description": "The tenant's account in the local cloud",
        "attributes": {"role_arn": role},
    }
    account = call("POST", "/v1/cloud-accounts", body)
    template = call("GET", f"/v1/cloud-accounts/{account['id']}/template")
    if account_plan.template is not None:
        template = tenant_role.of_version(template, account_plan.template)
    tenant_role.deploy(client("iam"), template, ACME_ACCOUNT, _trust(account["external_id"]))
    if account_plan.runs:
        runs = call("GET", f"/v1/cloud-accounts/{account['id']}/template?runs=true")
        tenant_role.deploy_runs(client, runs, ACME_ACCOUNT)
    for service in account_plan.linked_roles:
        make_linked_role(ACME_ACCOUNT, service)
    verified: dict[str, Any] = call("POST", f"/v1/cloud-accounts/{account['id']}/verify")
    return verified


def _trust(external_id: str) -> dict[str, Any]:
    """Our own account may take the role with that external id, by whatever role its functions have here."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"AWS": f"arn:aws:iam::{OWN_ACCOUNT}:root"},
                "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
            }
        ],
    }


def seed_event_accounts(call: Callable[..., Any], token: str) -> None:
    """Each tenant's account may send request events, as an operator would say it with the platform's ``token``."""
    for tenant, account in (("acme", ACME_ACCOUNT), ("globex", GLOBEX_ACCOUNT)):
        headers = {"X-Stockyard-Tenant": tenant, "If-Match": '"0"'}
        call("PUT", "/v1/event-accounts", {"accounts": [account], "rights": "admin"}, token, headers)
