"""The parts of a policy in a tenant's account: statements that name every action, on things that carry our tag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stockyard.providers.clouds.aws import tags

Statement = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArnScope:
    """The tenant's account, in whatever region."""

    account: str

    def arn(self, service: str, resource: str) -> str:
        """An ARN as CloudFormation resolves it."""
        region = "" if service == "iam" else "*"
        # ARNs of images and snapshots name no account.
        account = "" if resource.startswith(("image/", "snapshot/")) else self.account
        return f"arn:${{AWS::Partition}}:{service}:{region}:{account}:{resource}"


def shared(service: str, resource: str) -> str:
    """The ARN of something that is of whatever account: what another account shares has its owner's number in it. AWS
    lets nobody use what the owner has not shared."""
    return f"arn:${{AWS::Partition}}:{service}:*:*:{resource}"


def policy(statements: list[Statement]) -> dict[str, Any]:
    """The document of these statements."""
    return {"Version": "2012-10-17", "Statement": statements}


def trust(service: str) -> Statement:
    """The statement by which a service may take a role."""
    return {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}


def managed(document: dict[str, Any], name: str = "", users: Sequence[str] = ()) -> dict[str, Any]:
    """A managed policy as a resource of the template, attached to these users; without a name CloudFormation makes
    one."""
    properties: dict[str, Any] = {"PolicyDocument": document, **({"ManagedPolicyName": name} if name else {})}
    if users:
        properties["Users"] = list(users)
    return {"Type": "AWS::IAM::ManagedPolicy", "Properties": properties}


def allow(sid: str, actions: list[str], resources: list[str], condition: dict[str, Any] | None = None) -> Statement:
    """A statement that allows; ``*`` or ARNs to resolve."""
    arns = [resolved(resource) for resource in resources]
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": arns}
    return statement | ({"Condition": condition} if condition else {})


def resolved(text: str) -> Any:
    """A text of the template; CloudFormation replaces its ``${...}``."""
    return {"Fn::Sub": text} if "${" in text else text


def in_request(installation: str) -> dict[str, Any]:
    """The condition that what is made is tagged as ours."""
    return {"StringEquals": {f"aws:RequestTag/{tags.INSTALLATION}": installation}}


def on_thing(installation: str) -> dict[str, Any]:
    """The condition that what is used or changed is tagged as ours."""
    return {"StringEquals": {f"aws:ResourceTag/{tags.INSTALLATION}": installation}}


def not_of_others(installation: str) -> dict[str, Any]:
    """The condition that no other installation has tagged the thing as its own. What is new has no tags yet."""
    return {"StringEqualsIfExists": {f"aws:ResourceTag/{tags.INSTALLATION}": installation}}


def things(here: ArnScope, uses: Mapping[str, tuple[str, ...]]) -> list[str]:
    """ARNs of all things of these resource types of EC2."""
    return sorted({here.arn("ec2", f"{kind}/*") for kinds in uses.values() for kind in kinds})


def both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The condition that both hold; each compares for equality."""
    return {"StringEquals": {**first["StringEquals"], **second["StringEquals"]}}
