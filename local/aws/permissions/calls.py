"""A call of a service, and the condition keys that its parameters give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.aws.permissions.policies import Ask, Context, Wording

Tags = dict[str, str]
MACHINE = "ec2.amazonaws.com"


@dataclass(frozen=True)
class Call:
    """``service`` is the prefix of its actions in policies, ``operation`` the name in its API (``RunInstances``)."""

    service: str
    operation: str
    parameters: Mapping[str, Any]
    account: str
    region: str

    @property
    def action(self) -> str:
        """The action of the same name."""
        return f"{self.service}:{self.operation}"

    def arn(self, resource: str, service: str = "") -> str:
        """The ARN of something of the account, in the call's region."""
        return f"arn:aws:{service or self.service}:{self.region}:{self.account}:{resource}"

    def ec2(self, kind: str, id: str, owner: str = "") -> str:
        """The ARN of a thing of EC2; those of images and snapshots name no account. ``owner``: of what is shared."""
        number = "" if kind in ("image", "snapshot") else owner or self.account
        return f"arn:aws:ec2:{self.region}:{number}:{kind}/{id}"


def texts(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)


def tags_of(pairs: Any) -> Tags:
    """A list of tags as a mapping."""
    return {tag["Key"]: tag.get("Value", "") for tag in pairs or ()}


def request_tags(tags: Mapping[str, str]) -> Context:
    """The condition keys for the tags in a request."""
    return {f"aws:RequestTag/{key}": value for key, value in tags.items()}


def resource_tags(tags: Mapping[str, str]) -> Context:
    """The condition keys for the tags of a resource."""
    return {f"aws:ResourceTag/{key}": value for key, value in tags.items()}


def tag_keys(parameters: Mapping[str, Any]) -> Context:
    """The condition key for the keys of the tags in a call, whatever its service calls them; empty without."""
    tags: Any = ()
    for name in ("Tags", "tags", "TagKeys", "tagKeys"):
        tags = tags or parameters.get(name) or ()
    keys = [tag["Key"] if isinstance(tag, Mapping) else str(tag) for tag in tags]
    return {"aws:TagKeys": tuple(keys)} if keys else {}


def pass_role(arn: str, service: str = MACHINE, wording: Wording | None = None) -> Ask:
    """Permission check for handing a role to a service."""
    return Ask("iam:PassRole", arn, {"iam:PassedToService": service}, wording)
