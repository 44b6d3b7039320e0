"""STS: a role must exist and trust the caller, with the right external id. moto gives keys for any role."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.core.exceptions import AccessDeniedError
from moto.iam.models import IAMBackend, iam_backends
from moto.sts.models import sts_backends
from moto.sts.responses import TokenResponse

from local.aws.conditions import holds, many


class AccessDenied(AccessDeniedError):  # type: ignore[misc]
    """The role is missing or does not trust the caller: STS does not say which."""

    def __init__(self, caller: str, role: str) -> None:
        super().__init__(caller, f"sts:AssumeRole on resource: {role}")


@contextmanager
def trusted_roles() -> Iterator[None]:
    """Refuses AssumeRole unless the role exists and its trust policy allows the caller and the external id."""
    original = TokenResponse.assume_role

    def assume_role(response: Any) -> Any:
        arn = response._get_param("RoleArn") or ""
        caller = response.backend.get_caller_identity(response.get_access_key(), response.region)[1]
        document = trust_policy(arn)
        context = {"sts:ExternalId": response._get_param("ExternalId"), "aws:PrincipalArn": principal_arn(caller)}
        if document is None or not trusts(document, caller, context):
            raise AccessDenied(caller, arn)
        return original(response)

    with patch.object(TokenResponse, "assume_role", assume_role):
        yield


@contextmanager
def lasting_principals() -> Iterator[None]:
    """IAM keeps the id of a role that another one trusts, and shows it once the role is gone: one that is made again
    under the name is trusted by nobody. moto compares names."""
    original = IAMBackend.delete_role

    def delete_role(backend: Any, role_name: str) -> None:
        gone_role = backend.get_role(role_name)
        original(backend, role_name)
        for role in list(backend.roles.values()):
            text = role.assume_role_policy_document.replace(f'"{gone_role.arn}"', f'"{gone_role.id}"')
            role.assume_role_policy_document = text

    with patch.object(IAMBackend, "delete_role", delete_role):
        yield


def trust_policy(role_arn: str) -> dict[str, Any] | None:
    """The trust policy of a role, or None when there is no such role."""
    match = re.fullmatch(r"arn:aws:iam::(\d{12}):role/(?:.*/)?([\w+=,.@-]+)", role_arn)
    if not match:
        return None
    roles = iam_backends[match.group(1)]["aws"].roles.values()
    role = next((role for role in roles if role.arn == role_arn), None)
    return None if role is None else dict(json.loads(role.assume_role_policy_document))


def principal_arn(caller: str) -> str:
    """``aws:PrincipalArn`` of a caller: for a session, the ARN of its role."""
    session = re.fullmatch(r"arn:aws:sts::(\d{12}):assumed-role/([^/]+)/.+", caller)
    return f"arn:aws:iam::{session.group(1)}:role/{session.group(2)}" if session else caller


def trusts(document: Mapping[str, Any], caller: str, context: Mapping[str, str | None]) -> bool:
    """Whether a trust policy lets ``caller`` (an ARN, or a service such as ``ec2.amazonaws.com``) assume the role."""
    matching = [s for s in many(document.get("Statement")) if _applies(s, caller, context)]
    return bool(matching) and all(statement["Effect"] == "Allow" for statement in matching)


def _applies(statement: Mapping[str, Any], caller: str, context: Mapping[str, str | None]) -> bool:
    actions = many(statement.get("Action"))
    if not any(fnmatch.fnmatchcase("sts:AssumeRole", str(action)) for action in actions):
        return False
    if not _named(statement.get("Principal"), caller, context.get("aws:PrincipalArn") or caller):
        return False
    conditions = statement.get("Condition") or {}
    return all(
        holds(operator, context.get(key), [str(value) for value in many(values)])
        for operator, pairs in conditions.items()
        for key, values in pairs.items()
    )


def _named(principal: Any, caller: str, role: str) -> bool:
    if principal == "*":
        return True
    if not isinstance(principal, dict):
        return False
    if not caller.startswith("arn:"):
        return caller in many(principal.get("Service"))
    account = caller.split(":")[4]
    principals = {"*", account, f"arn:aws:iam::{account}:root", caller, role}
    return bool(principals & set(map(str, many(principal.get("AWS")))))


def service_session(role_arn: str, service: str, name: str, region: str) -> dict[str, str]:
    """The keys that an AWS service gives to a function or an instance that runs under a role. ``name`` is its id.

    Raises ``AccessDenied`` when the role does not trust the service.
    """
    document = trust_policy(role_arn)
    if document is None or not trusts(document, service, {}):
        raise AccessDenied(service, role_arn)
    account = role_arn.split(":")[4]
    role = sts_backends[account]["aws"].assume_role(region, name, role_arn, None, 3600, None)
    return {
        "AccessKeyId": role.access_key_id,
        "SecretAccessKey": role.secret_access_key,
        "Token": role.session_token,
        "Expiration": role.expiration.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
