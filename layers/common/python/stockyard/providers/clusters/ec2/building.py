"""Making and unmaking what a cluster consists of; see ``providers.clouds.aws.making``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from stockyard.domain.records import Resource
from stockyard.ports import CloudWork
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.making import Create, Maker, Wish
from stockyard.providers.clouds.aws.registry import KINDS
from stockyard.providers.clusters.ec2.configuration import Ec2Config

__all__ = ["Builder", "Wish"]

_LOST = "Delete the cluster and create it again; the cloud has lost a part of it."


@dataclass(frozen=True, slots=True)
class Builder(Maker):
    """One phase of one cluster."""

    work: CloudWork
    config: Ec2Config

    @classmethod
    def of(cls, calls: Calls, work: CloudWork, config: Ec2Config) -> Builder:
        """A builder whose owner is the cluster of ``work``."""
        cluster = work.cluster
        owner = tags.Owner(
            installation=work.installation,
            tenant=work.tenant,
            resource_id=cluster.id,
            generation=str(cluster.generation),
            client_id=cluster.client_id,
            prefix=config.name_prefix,
            own_tags=cluster.tags,
        )
        return cls(calls, work.ledger, owner, work.now, config.visibility_seconds, KINDS, _LOST, work, config)

    def creation(
        self, operation: str, resource_type: str, *path: str, by_token: bool = False, **parameters: Any
    ) -> Create:
        """A creating call of EC2 whose answer holds the thing's id at ``path``; ``by_token``: it takes the line's."""

        def create(line: Resource, marks: dict[str, str]) -> str:
            token = {"ClientToken": line.token} if by_token else {}
            tagged = {"TagSpecifications": tags.specification([resource_type], marks)}
            answer: Any = self.calls.call("ec2", operation, **parameters, **token, **tagged)
            return str(reduce(getitem, path, answer))

        return create
