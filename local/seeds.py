"""What a new local cloud has: the tenant's key pair, role and verified account, and accounts that send events."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from local.aws.server import ACME_ACCOUNT, GLOBEX_ACCOUNT, OWN_ACCOUNT
from local.template import CreatedResource, Stack, TemplateError

TENANT_ROLE = "stockyard-tenant"
KEY_PAIR = "my-key"


def seed_tenant(call: Callable[..., Any], client: Callable[[str], Any]) -> dict[str, Any]:
    """The tenant's key pair; its account, registered and verified by the API; the role that the API asks for.

    ``call`` is ``LocalCloud.call``, ``client`` makes a boto3 client with the tenant's keys. Returns what the
    verification answers.
    """
    client("ec2").create_key_pair(KeyName=KEY_PAIR)
    role = f"arn:aws:iam::{ACME_ACCOUNT}:role/{TENANT_ROLE}"
    body = {
        "provider": "aws",
        "name": "acme",
        "description": "The tenant's account in the local cloud",
        "attributes": {"role_arn": role},
    }
    account = call("POST", "/v1/cloud-accounts", body)
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"AWS": f"arn:aws:iam::{OWN_ACCOUNT}:root"},
                "Condition": {"StringEquals": {"sts:ExternalId": account["external_id"]}},
            }
        ],
    }
    template = call("GET", f"/v1/cloud-accounts/{account['id']}/template")
    # Of the template only the role is made here, for nobody is refused anything: with every part, as by default.
    tags = Stack(template, {}, {}, _make_nothing).resolve(template["Resources"]["Role"]["Properties"]["Tags"])
    client("iam").create_role(RoleName=TENANT_ROLE, AssumeRolePolicyDocument=json.dumps(trust), Tags=tags)
    verified: dict[str, Any] = call("POST", f"/v1/cloud-accounts/{account['id']}/verify")
    return verified


def _make_nothing(kind: str, logical: str, _properties: Mapping[str, Any]) -> CreatedResource:
    raise TemplateError(f"{logical} ({kind}) is not made here")


def seed_event_accounts(call: Callable[..., Any], token: str) -> None:
    """Each tenant's account may send request events, as an operator would say it with the platform's ``token``."""
    for tenant, account in (("acme", ACME_ACCOUNT), ("globex", GLOBEX_ACCOUNT)):
        headers = {"X-Stockyard-Tenant": tenant, "If-Match": '"0"'}
        call("PUT", "/v1/event-accounts", {"accounts": [account]}, token, headers)
