"""``stockyard cluster repave`` and ``certificates``: changes that replace nodes, and members of control planes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import cluster_names
from stockyard_client.cli.input.options import DryRun, Timeout, Wait
from stockyard_client.cli.operations import operations
from stockyard_client.cli.output import plans, sections
from stockyard_client.cli.output.output import Form, Output, write_yaml_or_json

Name = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]


def repave(
    run: typer.Context,
    cluster: Name,
    approve: Annotated[bool, typer.Option("--approve", help="Let the change go on that waits.")] = False,
    revert: Annotated[bool, typer.Option("--revert", help="Take the change back that waits.")] = False,
    start: Annotated[bool, typer.Option("--start", help="Replace every node, one by one.")] = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Decide on a change that replaces nodes, or replace all. Without an option: show whether one waits."""
    if approve + revert + start > 1:
        raise BadInput("give one of --approve, --revert and --start")
    context = contexts.of(run)
    with context.client() as client:
        if start and dry_run:
            plans.show(context, output, client.clusters.plan_repave(cluster))
        elif start:
            operation = client.clusters.start_repave(cluster)
            context.say(f"Every node of cluster {cluster} is replaced by operation {operation.id}.")
            operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)
        else:
            decide = approve or revert
            view = (
                client.clusters.decide_repave(cluster, approved=approve) if decide else client.clusters.repave(cluster)
            )
            _show_facts(context, output, view, _repave_facts(view))


def certificates(
    run: typer.Context,
    cluster: Name,
    renew: Annotated[bool, typer.Option("--renew", help="Replace the control plane's members, one by one.")] = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Show when a control plane's certificates end, or renew them."""
    context = contexts.of(run)
    with context.client() as client:
        if renew and dry_run:
            plans.show(context, output, client.clusters.plan_renewal(cluster))
        elif renew:
            operation = client.clusters.renew_certificates(cluster)
            context.say(f"The certificates of cluster {cluster} are renewed by operation {operation.id}.")
            operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)
        else:
            document = client.clusters.certificates(cluster)
            _show_facts(context, output, document, _certificate_facts(document))


def _show_facts(context: contexts.Context, output: Form, document: dict[str, Any], lines: dict[str, Any]) -> None:
    """Writes what the API says of one thing: as its document, or as facts for people."""
    if output in {Form.TABLE, Form.WIDE}:
        sections.facts(context, lines)
    else:
        write_yaml_or_json(output, document)


def _repave_facts(view: dict[str, Any]) -> dict[str, Any]:
    """Whether a change waits that replaces nodes, why it does, and which nodes are still to go."""
    state = str(view.get("state") or "None")
    reasons = [
        f"{reason['pool']}: {reason['message']}" if reason.get("pool") else str(reason.get("message") or "")
        for reason in view.get("reasons") or ()
    ]
    return {
        "State": "no change that replaces nodes waits" if state == "None" else state,
        "Reasons": "; ".join(reasons),
        "Nodes to go": ", ".join(view.get("nodes") or ()),
        "Operation": view.get("operation_id"),
    }


def _certificate_facts(document: dict[str, Any]) -> dict[str, Any]:
    """End of the control plane's first certificate, and whether certificates are being renewed."""
    end, since = document.get("expire_at"), document.get("renewed_since")
    return {
        "End": str(end) if end else "not known: no member of the control plane has told it yet",
        "Renewed": f"members from before {since} are replaced" if since else None,
        "Operation": document.get("operation_id"),
    }
