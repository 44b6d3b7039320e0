"""Clusters as constructs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stockyard_cdk.connection import Stockyard
from stockyard_cdk.properties import ClusterProperties
from stockyard_cdk.resource import StockyardResource


class Cluster(StockyardResource):
    """A Kubernetes cluster. The stack goes on when it is ready.

    Outputs are attributes: ``cluster_id``, ``cluster_name``, ``endpoint``, ``certificate_authority`` (PEM in base64)
    and ``client_id``, the client of the realm that stands for the cluster.
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
        **properties: Unpack[ClusterProperties],
    ) -> None:
        super().__init__(
            scope,
            id,
            kind="Cluster",
            stockyard=stockyard,
            document={"cluster_type": "k8s", **properties},
            adopt=adopt,
            secrets=secrets,
            removal_policy=removal_policy,
        )
        self.cluster_id = self.output("Id")
        self.cluster_name = self.output("Name")
        self.endpoint = self.output("Endpoint")
        self.certificate_authority = self.output("CertificateAuthority")
        self.client_id = self.output("ClientId")

    def grant_read_kubeconfig(self, grantee: iam.IGrantable, reader: secretsmanager.ISecret) -> iam.Grant:
        """Let somebody of AWS read a kubeconfig of this cluster, as the client of Stockyard's realm in ``reader``.

        What may be done in the cluster is what that client's role says: give it the role ``stockyard-viewer``, and not
        the client that the stack is made by.
        """
        return reader.grant_read(grantee)
