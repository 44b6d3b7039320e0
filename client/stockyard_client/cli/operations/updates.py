"""``update`` and ``edit`` of each record that the API lets change: by fields, by a merge patch, or in an editor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.assignments import Set, patch_of, source_of
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import account_numbers, claim_names, cluster_names, provider_names
from stockyard_client.cli.input.confirmations import Yes
from stockyard_client.cli.input.inputs import read_patch
from stockyard_client.cli.input.options import DryRun, Queue, Timeout, Wait
from stockyard_client.cli.operations import changes
from stockyard_client.cli.output import plans
from stockyard_client.cli.output.output import ACCOUNTS, Form, Output, show_one
from stockyard_client.cli.output.tables import Printer

if TYPE_CHECKING:
    from stockyard_client.models import Cluster

Patch = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", help="A JSON merge patch, JSON or YAML; - reads standard input."),
]
ClusterName = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]
Account = Annotated[
    str, typer.Argument(metavar="ACCOUNT", help="The account's number or name.", autocompletion=account_numbers)
]
Provider = Annotated[str, typer.Argument(metavar="PROVIDER", help="Name or id.", autocompletion=provider_names)]
Claim = Annotated[str, typer.Argument(metavar="CLAIM", help="Name or id.", autocompletion=claim_names)]
CLUSTER_FIELDS = ("description", "tags", "kubernetes_version", "expires_at", "settings")
ACCOUNT_FIELDS = ("name", "description", "attributes", "tags")
PROVIDER_FIELDS = ("display_name", "properties", "price_per_cost_unit", "spec", "labels", "annotations")
CLAIM_FIELDS = ("display_name", "power", "labels", "annotations")


def update_cluster(
    run: typer.Context,
    cluster: ClusterName,
    assignments: Set = None,
    file: Patch = None,
    queue: Queue = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Change a cluster by fields or a merge patch.

    A list, such as the node groups, is replaced as a whole; --set 'settings.autoscaler_node_groups[workers].max_size=5'
    changes one item of it. What needs an operation goes on in the background; the cluster serves meanwhile.
    """
    context = contexts.of(run)
    patch = requested_patch(context, assignments, file, "cluster")
    with context.client() as client:
        sent = changes.queued(lambda record: patch(record.document()), queue=queue)
        changes.change(context, client, cluster, sent, dry_run=dry_run, wait=wait, timeout=timeout, output=output)


def edit_cluster(
    run: typer.Context,
    cluster: ClusterName,
    queue: Queue = False,
    yes: Yes = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Change a cluster in your editor (EDITOR). The diff is shown, and asked about, before it is sent."""
    from stockyard_client.cli.input.editing import Editable, edit

    context = contexts.of(run)
    more = {"queue": True} if queue else {}
    with context.client() as client:
        clusters = client.clusters

        def send(record: Cluster, patch: dict[str, Any]) -> Cluster:
            return clusters.update(record, {**patch, **more})

        target = Editable("cluster", cluster, CLUSTER_FIELDS, lambda: clusters.get(cluster), send)
        if (pair := edit(context, target, yes=yes)) is not None:
            before, after = pair
            changes.finish(context, client, before, after, wait=wait, timeout=timeout, output=output)


def update_account(
    run: typer.Context,
    account: Account,
    assignments: Set = None,
    file: Patch = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Change a cloud account by fields or a merge patch. A new role or key has to be verified again."""
    context = contexts.of(run)
    patch = requested_patch(context, assignments, file, "account")
    with context.client() as client:
        _update(context, client.accounts, account, patch, ACCOUNTS, dry_run=dry_run, output=output)


def edit_account(run: typer.Context, account: Account, yes: Yes = False, output: Output = Form.TABLE) -> None:
    """Change a cloud account in your editor (EDITOR). Secrets are not shown, and stay."""
    context = contexts.of(run)
    with context.client() as client:
        _edit(context, client.accounts, "account", account, ACCOUNT_FIELDS, ACCOUNTS, yes=yes, output=output)


def update_provider(
    run: typer.Context,
    provider: Provider,
    assignments: Set = None,
    file: Patch = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Change a node provider by fields or a merge patch."""
    from stockyard_client.cli.output.node_tables import PROVIDERS

    context = contexts.of(run)
    patch = requested_patch(context, assignments, file, "provider")
    with context.client() as client:
        _update(context, client.node_providers, provider, patch, PROVIDERS, dry_run=dry_run, output=output)


def edit_provider(run: typer.Context, provider: Provider, yes: Yes = False, output: Output = Form.TABLE) -> None:
    """Change a node provider in your editor (EDITOR)."""
    from stockyard_client.cli.output.node_tables import PROVIDERS

    context = contexts.of(run)
    with context.client() as client:
        resource = client.node_providers
        _edit(context, resource, "provider", provider, PROVIDER_FIELDS, PROVIDERS, yes=yes, output=output)


def update_claim(
    run: typer.Context,
    claim: Claim,
    assignments: Set = None,
    file: Patch = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Change a claim by fields or a merge patch. Its display name, labels, annotations or power may change."""
    from stockyard_client.cli.output.node_tables import CLAIMS

    context = contexts.of(run)
    patch = requested_patch(context, assignments, file, "claim")
    with context.client() as client:
        _update(context, client.node_claims, claim, patch, CLAIMS, dry_run=dry_run, output=output)


def edit_claim(run: typer.Context, claim: Claim, yes: Yes = False, output: Output = Form.TABLE) -> None:
    """Change a claim in your editor (EDITOR)."""
    from stockyard_client.cli.output.node_tables import CLAIMS

    context = contexts.of(run)
    with context.client() as client:
        _edit(context, client.node_claims, "claim", claim, CLAIM_FIELDS, CLAIMS, yes=yes, output=output)


def requested_patch(
    context: contexts.Context, assignments: list[str] | None, file: str | None, noun: str
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The merge patch of a record: that of the file, with the fields of ``--set``, which win.

    Raises :class:`BadInput` when neither is given.
    """
    if not assignments and file is None:
        raise BadInput("say what changes: --set PATH=VALUE, --file, or both")
    base = read_patch(context, file, noun) if file is not None else {}
    context.field_sources.append(source_of(assignments or ()))
    return lambda record: merged(base, patch_of(assignments or (), record))


def merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Both patches as one; ``more`` wins."""
    result = dict(base)
    for name, value in more.items():
        inner = result.get(name)
        result[name] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result


def _update(
    context: contexts.Context,
    resource: Any,
    reference: str,
    patch: Callable[[dict[str, Any]], dict[str, Any]],
    printer: Printer[Any],
    *,
    dry_run: bool,
    output: Form,
) -> None:
    record = resource.get(reference)
    body = patch(record.document())
    if dry_run:
        plans.show(context, output, resource.plan_update(record, body))
        return
    changed = resource.update(record, body)
    show_one(context, output, printer, changed)
    plans.warn(context, changed.warnings)


def _edit(
    context: contexts.Context,
    resource: Any,
    noun: str,
    reference: str,
    fields: tuple[str, ...],
    printer: Printer[Any],
    *,
    yes: bool,
    output: Form,
) -> None:
    from stockyard_client.cli.input.editing import Editable, edit

    target = Editable(noun, reference, fields, lambda: resource.get(reference), resource.update)
    if (pair := edit(context, target, yes=yes)) is not None:
        show_one(context, output, printer, pair[1])
        plans.warn(context, pair[1].warnings)
