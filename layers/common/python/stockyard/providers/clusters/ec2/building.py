"""Making and unmaking what a cluster consists of; see ``providers.clouds.aws.making``."""

from __future__ import annotations

from dataclasses import dataclass

from stockyard.ports import CloudWork
from stockyard.providers.clouds.aws import tags
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.making import Fulfilment, Maker, Wish
from stockyard.providers.clouds.aws.registry import KINDS
from stockyard.providers.clusters.ec2.configuration import Ec2Config

__all__ = ["Builder", "Fulfilment", "Wish"]

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
        )
        return cls(calls, work.ledger, owner, work.now, config.visibility_seconds, KINDS, _LOST, work, config)
