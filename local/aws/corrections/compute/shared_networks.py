"""Things that another account shares by AWS's Resource Access Manager: the owner's number is shown, and is in the ARNs
that permissions are asked of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.ec2.models import ec2_backends
from moto.ec2.models.subnets import Subnet
from moto.ec2.models.vpcs import VPC

INSTALLATION = "stockyard:installation"
"""A tag of whatever Stockyard has made."""


def share(account: str, region: str, owner: str, ids: Iterable[str]) -> None:
    """Let things that an account has (VPCs, subnets, security groups, reservations) be shared with it by ``owner``."""
    owners = ec2_backends[account][region].__dict__.setdefault("shared_owners", {})
    owners.update(dict.fromkeys(ids, owner))


def share_networks(account: str, region: str, owner: str) -> None:
    """Let all VPCs and subnets of the account that do not carry our tags be shared with it by ``owner``."""
    ec2_backends[account][region].__dict__["networks_of"] = owner


def owner_of(account: str, region: str, id: str) -> str:
    """The account that owns a thing which an account sees."""
    backend = ec2_backends[account][region]
    of_networks = getattr(backend, "networks_of", "")
    if of_networks and id.startswith(("vpc-", "subnet-")) and INSTALLATION not in (backend.tags.get(id) or {}):
        return str(of_networks)
    return str(getattr(backend, "shared_owners", {}).get(id, account))


def _owner(thing: Any) -> str:
    return owner_of(thing.ec2_backend.account_id, thing.ec2_backend.region_name, thing.id)


@contextmanager
def shared_networks() -> Iterator[None]:
    """Inside this context a VPC or a subnet that is shared shows its owner."""
    with patch.object(VPC, "owner_id", property(_owner)), patch.object(Subnet, "owner_id", property(_owner)):
        yield
