"""Node pools, node providers, cloud accounts and cluster profiles as constructs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from aws_cdk import RemovalPolicy, Token
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from stockyard_cdk.cluster import Cluster
from stockyard_cdk.connection import Stockyard
from stockyard_cdk.properties import (
    CloudAccountProperties,
    ClusterProfileProperties,
    NodePoolProperties,
    NodeProviderProperties,
)
from stockyard_cdk.resource import StockyardResource


class NodePool(StockyardResource):
    """A pool of a cluster. ``cluster`` is the construct, or the name or id of a cluster of no stack."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        stockyard: Stockyard,
        cluster: Cluster | str,
        adopt: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        **properties: Unpack[NodePoolProperties],
    ) -> None:
        cluster_name = cluster if isinstance(cluster, str) else cluster.cluster_name
        super().__init__(
            scope,
            id,
            kind="NodePool",
            stockyard=stockyard,
            document={**properties, "cluster": cluster_name},
            adopt=adopt,
            removal_policy=removal_policy,
        )
        self.pool_name = self.output("Name")


class NodeProvider(StockyardResource):
    """A source of nodes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        stockyard: Stockyard,
        adopt: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        **properties: Unpack[NodeProviderProperties],
    ) -> None:
        super().__init__(
            scope,
            id,
            kind="NodeProvider",
            stockyard=stockyard,
            document={**properties},
            adopt=adopt,
            removal_policy=removal_policy,
        )
        self.provider_id = self.output("Id")
        self.provider_name = self.output("Name")


class CloudAccount(StockyardResource):
    """An account of a cloud. ``external_id`` belongs into the trust policy of its role on AWS.

    ``secrets`` are its credentials, by JSON pointer, such as ``/attributes/api_key``.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        stockyard: Stockyard,
        adopt: bool = False,
        secrets: Mapping[str, secretsmanager.ISecret] | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        **properties: Unpack[CloudAccountProperties],
    ) -> None:
        super().__init__(
            scope,
            id,
            kind="CloudAccount",
            stockyard=stockyard,
            document={**properties},
            adopt=adopt,
            secrets=secrets,
            removal_policy=removal_policy,
        )
        self.account_number = self.number("Number")
        self.account_name = self.output("Name")
        self.external_id = self.output("ExternalId")

    def verified_after(self, *roles: IDependable) -> int:
        """Number of the account, once its credentials have been proven: to be given to clusters.

        ``roles`` are made before that: the role on AWS that the account names, which trusts ``external_id``.
        """
        step = self.step("Verified", "AccountVerification", {"account": self.account_number}, roles)
        return int(Token.as_number(step.get_att("Number")))


class ClusterProfile(StockyardResource):
    """A profile: what clusters have beside Kubernetes. Other packs are another version, which is added."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        stockyard: Stockyard,
        adopt: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        **properties: Unpack[ClusterProfileProperties],
    ) -> None:
        super().__init__(
            scope,
            id,
            kind="ClusterProfile",
            stockyard=stockyard,
            document={**properties},
            adopt=adopt,
            removal_policy=removal_policy,
        )
        self.profile_id = self.output("Id")
        self.profile_name = self.output("Name")
        self.version = self.output("Version")
