"""A cluster with nodes of its own as a CDK app: a node provider, a cluster and a pool.

    pip install aws-cdk-lib stockyard_cdk-0.1.0-py3-none-any.whl  # which `make wheels` builds
    npx cdk deploy -c url=https://api.example.com -c issuer=https://keycloak.example.com/realms/stockyard \\
        -c client=stockyard-pipeline

``client`` names a secret with the client that the stack logs in as. ``-c nodes=3`` changes the pool,
``-c account=2`` makes the cluster in another cloud account.
"""

from __future__ import annotations

from aws_cdk import App, CfnOutput, Stack
from aws_cdk import aws_secretsmanager as secretsmanager

from stockyard_cdk import Cluster, NodePool, NodeProvider, Stockyard


def context(app: App, name: str, default: str) -> str:
    """A value of ``-c name=value``."""
    value = app.node.try_get_context(name)
    return default if value is None else str(value)


def build(app: App) -> Stack:
    """The stack of the app."""
    stack = Stack(app, "Platform")
    stockyard = Stockyard(
        stack,
        "Stockyard",
        url=context(app, "url", "https://api.example.com"),
        issuer=context(app, "issuer", "https://keycloak.example.com/realms/stockyard"),
        client=secretsmanager.Secret.from_secret_name_v2(stack, "Client", context(app, "client", "stockyard-pipeline")),
    )
    lab = NodeProvider(
        stack,
        "Lab",
        stockyard=stockyard,
        kind="simulated",
        spec={"nodeTypes": [{"name": "small", "resources": {"cpu": "4", "memory": "16Gi"}}]},
    )
    cluster = Cluster(
        stack,
        "Cluster",
        stockyard=stockyard,
        description=context(app, "description", "Made by a stack"),
        cloud_account_id=int(context(app, "account", "1")),
        settings={"key_pair": "my-key", "region_name": "us-east-1"},
        tags={"team": "platform"},
    )
    pool = NodePool(
        stack,
        "Workers",
        stockyard=stockyard,
        cluster=cluster,
        provider=lab.provider_name,
        quantity=int(context(app, "nodes", "1")),
    )
    CfnOutput(stack, "Endpoint", value=cluster.endpoint)
    CfnOutput(stack, "ClientId", value=cluster.client_id)
    CfnOutput(stack, "CertificateAuthority", value=cluster.certificate_authority)
    CfnOutput(stack, "Pool", value=pool.pool_name)
    return stack


if __name__ == "__main__":
    app = App()
    build(app)
    app.synth()
