"""Commands for a cluster's own client and agent: ``stockyard cluster client-secret`` and ``agent``."""

from __future__ import annotations

from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.output.output import Form, Output, write_document, write_yaml_or_json
from stockyard_client.cli.visible import echo

Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]


def client_secret(run: typer.Context, cluster: Name, output: Output = Form.TABLE) -> None:
    """Show the secret of the cluster's Keycloak client. For admins, and audited."""
    with contexts.of(run).client() as client:
        document = client.clusters.client_secret(cluster)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, document)
    else:
        echo(document["client_id"] if output is Form.NAME else document["client_secret"])


def agent(run: typer.Context, cluster: Name, output: Output = Form.YAML) -> None:
    """Print the manifest of the cluster's agent. Only the cluster's own client may read it."""
    with contexts.of(run).client() as client:
        document = client.clusters.agent(cluster)
    write_yaml_or_json(output, document)
