"""Clusters as constructs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Unpack

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stockyard_cdk.connection import LIMIT, Stockyard
from stockyard_cdk.properties import ClusterProperties
from stockyard_cdk.resource import StockyardResource

MOST_WAITS = 12
"""Resources that wait for one cluster, of 55 minutes each."""


class Cluster(StockyardResource):
    """A Kubernetes cluster. The stack goes on when it is ready.

    Outputs are attributes: ``cluster_id``, ``cluster_name``, ``endpoint``, ``certificate_authority`` (PEM in base64)
    and ``client_id``, the client of the realm that stands for the cluster.

    ``patience`` is how long a creation or a change may take, at most eleven hours. CloudFormation waits an hour for one
    resource, so a longer one is a row of resources, each of which waits on.
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
        patience: Duration = LIMIT,
        **properties: Unpack[ClusterProperties],
    ) -> None:
        waits = math.ceil(patience.to_seconds() / LIMIT.to_seconds())
        if not 1 <= waits <= MOST_WAITS:
            raise ValueError(f"patience: {patience.to_human_string()} is not between a second and eleven hours")
        super().__init__(
            scope,
            id,
            kind="Cluster",
            stockyard=stockyard,
            document={"cluster_type": "k8s", **properties},
            adopt=adopt,
            secrets=secrets,
            removal_policy=removal_policy,
            goes_on=waits > 1,
        )
        self.cluster_name = self.output("Name")
        self.cluster_id = self.output("Id")
        for number in range(2, waits + 1):
            self.ready_resource = self._wait(number, is_last=number == waits)
        self.endpoint = self.ready_resource.get_att_string("Endpoint")
        self.certificate_authority = self.ready_resource.get_att_string("CertificateAuthority")
        self.client_id = self.output("ClientId")

    def _wait(self, number: int, *, is_last: bool) -> CustomResource:
        """The next resource of the row. Each change of the cluster makes it wait anew."""
        document = {"cluster": self.cluster_name, "change": self.document}
        return self.step(f"Wait{number}", "ClusterWait", document, [self.ready_resource], goes_on=not is_last)

    def grant_read_kubeconfig(self, grantee: iam.IGrantable, reader: secretsmanager.ISecret) -> iam.Grant:
        """Let somebody of AWS read kubeconfigs, as the client of Stockyard's realm in ``reader``.

        What may be done in the cluster is what that client's role says: give it the role ``stockyard-viewer``, and not
        the client that the stack is made by.
        """
        client, stack = self.stockyard.client, Stack.of(self)
        if client is not None and stack.resolve(reader.secret_arn) == stack.resolve(client.secret_arn):
            raise ValueError("reader: it is the client that makes the stack, which may do more than read")
        return reader.grant_read(grantee)
