"""The tags on everything we make, and how they are written for each service."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_READABLE = re.compile(r"[A-Za-z0-9+=.,_:@-]{1,128}")

INSTALLATION = "stockyard:installation"
TENANT = "stockyard:tenant"
RESOURCE = "stockyard:resource"
GENERATION = "stockyard:generation"
KEY = "stockyard:key"
"""``kind/key`` of the ledger line, so that a lookup by tag is exact."""
SINCE = "stockyard:since"
"""When the line was first intended; the sweep needs an age of things that have none of their own."""


def of_tenant(installation: str, tenant: str) -> dict[str, str]:
    """Tags that the sweep looks for."""
    return {INSTALLATION: installation, TENANT: tenant}


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of a thing, as its tags say: a cluster, a node claim or a node environment.

    ``client_id`` is of the cluster that it serves, ``prefix`` begins our names in the tenant's account.
    """

    installation: str
    tenant: str
    resource_id: str
    generation: str
    client_id: str
    prefix: str
    own_tags: Mapping[str, str] = field(default_factory=dict)
    """The tags that the cluster's owner has chosen."""


def of_owner(owner: Owner) -> dict[str, str]:
    """Tags that identify everything of an owner."""
    return {**of_tenant(owner.installation, owner.tenant), RESOURCE: owner.resource_id}


def of_key(owner: Owner, kind: str, key: str) -> dict[str, str]:
    """Tags that identify the thing of the ledger line of this kind and key."""
    return {**of_owner(owner), KEY: f"{kind}/{key}"}


def of_cluster(owner: Owner) -> dict[str, str]:
    """The tags that everything has that was made for the owner's cluster, whoever of it the thing is of."""
    return {**of_tenant(owner.installation, owner.tenant), f"{owner.prefix}-cluster": owner.client_id}


def kubernetes(client_id: str) -> str:
    """The tag key by which a cluster's own controllers know what is theirs."""
    return f"kubernetes.io/cluster/{client_id}"


CLUSTER_OF_MEMBER = "KubernetesCluster"
"""The older key of :func:`kubernetes`, whose value is the cluster's name. It has no slash, so a machine that reads its
tags from its metadata may have it. The cloud controller takes either key (cloud-provider-aws, ``tags.go``)."""


def controllers(client_id: str) -> tuple[dict[str, str], ...]:
    """The tags of what a cluster's controllers made: the cloud controller and EBS driver, the load balancer controller.

    Any one of them is enough.
    """
    return ({kubernetes(client_id): "owned"}, {"elbv2.k8s.aws/cluster": client_id})


def full(owner: Owner, kind: str, key: str, name: str, since: str) -> dict[str, str]:
    """All tags of a new thing that was first intended at ``since``."""
    return {
        **owner.own_tags,
        "Name": name,
        **of_key(owner, kind, key),
        GENERATION: owner.generation,
        SINCE: since,
        f"{owner.prefix}-cluster": owner.client_id,
    }


def of_instances(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags that are legal on an instance with tags in its metadata: EC2 refuses other letters in a key."""
    return {key: value for key, value in tags.items() if _READABLE.fullmatch(key)}


def is_fixed(key: str, prefix: str) -> bool:
    """Whether a tag of this key is ours, AWS's or a controller's, so that no change of a cluster's tags touches it."""
    return key in ("Name", CLUSTER_OF_MEMBER, f"{prefix}-cluster") or key.lower().startswith(
        ("aws:", "kubernetes.io/", "stockyard:")
    )


def pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """As AWS writes tags."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def mapping(tag_pairs: Sequence[Mapping[str, str]] | None) -> dict[str, str]:
    """The reverse of :func:`pairs`."""
    return {tag["Key"]: tag["Value"] for tag in tag_pairs or ()}


def specification(kinds: Sequence[str], tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """EC2's ``TagSpecifications`` for each resource type a call makes."""
    return [{"ResourceType": kind, "Tags": pairs(tags)} for kind in kinds]


def filters(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """EC2's ``Filters`` for things that carry all these tags."""
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]


def carries(carried: Mapping[str, str], required: Mapping[str, str]) -> bool:
    """Whether ``carried`` holds every required tag."""
    return all(carried.get(key) == value for key, value in required.items())
