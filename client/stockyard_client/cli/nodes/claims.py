"""``stockyard claim``: ask for nodes, see what becomes of them and why, give them back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.documents.pointers import pointer
from stockyard_client.cli.input.completion import claim_names, cluster_names, pool_names, provider_names, type_names
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.inputs import pairs, read_either, requirement
from stockyard_client.cli.input.options import DryRun, File, KeepFailed, Manifest, Timeout, Tofu, Wait, Watch
from stockyard_client.cli.nodes import power, type_filters
from stockyard_client.cli.nodes.type_filters import check_memory
from stockyard_client.cli.operations import listings, operations, updates
from stockyard_client.cli.output import consequences, plans, progress, watching
from stockyard_client.cli.output.node_tables import CLAIMS
from stockyard_client.cli.output.output import Form, Output, show_many, show_one, write_document, write_yaml_or_json
from stockyard_client.cli.visible import echo
from stockyard_client.client import Client
from stockyard_client.models import Plan
from stockyard_client.node_models import NodeClaim

app = typer.Typer(no_args_is_help=True, help="Node claims.", rich_markup_mode=None)
app.command("update")(updates.update_claim)
app.command("edit")(updates.edit_claim)
app.command()(power.power)
Name = Annotated[str, typer.Argument(metavar="CLAIM", help="Name or id.", autocompletion=claim_names)]
Cluster = Annotated[str | None, typer.Option(help="The cluster, by name or id.", autocompletion=cluster_names)]
Provider = Annotated[str | None, typer.Option(help="Default: the cheapest of all.", autocompletion=provider_names)]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="With --dry-run: plan the template's run by the OpenTofu of this machine.")
]


@app.command()
def create(
    run: typer.Context,
    file: File = None,
    name: Annotated[str | None, typer.Option(help="Default: one is made.")] = None,
    cluster: Cluster = None,
    provider: Provider = None,
    node_type: Annotated[
        str | None, typer.Option("--type", help="Default: the cheapest that fits.", autocompletion=type_names)
    ] = None,
    cpu: Annotated[str | None, typer.Option(help="At least so many cores, such as 2 or 500m.")] = None,
    memory: Annotated[str | None, typer.Option(help="At least so much memory, such as 4Gi.")] = None,
    gpu: type_filters.ClaimGpu = None,
    resource: Annotated[list[str] | None, typer.Option(help="name=quantity; may be repeated.")] = None,
    require: Annotated[
        list[str] | None, typer.Option(help="key=v1,v2, key!=v1, key>5, key<5, or key alone; may be repeated.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="key=value; may be repeated.")] = None,
    keep_failed: KeepFailed = None,
    dry_run: DryRun = False,
    refresh: Refresh = False,
    tofu: Tofu = None,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Ask for a node, from a file, from options, or both (options win)."""
    context = contexts.of(run)
    body, manifest = read_either(context, file, "claim", ["NodeClaim"]) if file else ({}, False)
    if refresh:
        _check_refresh(dry_run=dry_run, manifest=manifest)
    options = {"name": name, "cluster": cluster, "provider": provider, "type": node_type, "keep_failed": keep_failed}
    options = {key: value for key, value in options.items() if value is not None}
    resources = {**pairs(resource or []), **{k: v for k, v in (("cpu", cpu), ("memory", memory)) if v is not None}}
    check_memory(memory)
    named = {"cpu": cpu and "--cpu", "memory": memory and "--memory"}
    context.field_sources.append(_field_source(options, resources, named, require, label))
    if manifest:
        if options or resources or require or label or gpu:
            raise BadInput("a manifest says everything itself: give no options beside it")
        body = _from_manifest(context, body, output, dry_run=dry_run)
        if not body:
            return
    else:
        body = _merged(body, options, resources, [requirement(text) for text in require or []], pairs(label or []))
    with context.client() as client:
        if gpu is not None:
            body = _with_gpus(context, client, body, gpu, provider)
        if dry_run:
            _plan(context, output, client.node_claims.plan_create(body, run=refresh), tofu, refresh=refresh)
            return
        claim = client.node_claims.get(body["id"]) if set(body) == {"id"} else client.node_claims.create(body)
        context.say(f"Claim {claim.name} ({claim.id}) is being served by operation {claim.operation_id}.")
        plans.warn(context, claim.warnings)
        if wait:
            claim = _waited(context, client, claim, timeout)
    show_one(context, output, CLAIMS, claim)
    if wait:
        context.say(f"Next: stockyard claim describe {claim.name}")
    elif claim.operation_id:
        progress.say_how_to_follow(context, claim.operation_id)


def _check_refresh(*, dry_run: bool, manifest: bool) -> None:
    if not dry_run:
        raise BadInput("--refresh is for a dry run: give --dry-run too")
    if manifest:
        raise BadInput("--refresh plans one claim: give it by options, or as a document of the API")


def _plan(context: contexts.Context, output: Form, plan: Plan, tofu: str | None, *, refresh: bool) -> None:
    """Show the plan, and with ``refresh`` what OpenTofu would make."""
    if not refresh:
        plans.show(context, output, plan)
        return
    from stockyard_client.cli.nodes import template_plans

    planned = template_plans.plan_of(template_plans.tofu_of(context, tofu), template_plans.run_of(plan))
    if output in {Form.JSON, Form.YAML}:
        write_document(output, {"plan": plan.document(), "tofu": planned.document()})
    else:
        plans.show(context, output, plan)
        template_plans.show(context, planned)
    template_plans.check(planned)


def _with_gpus(
    context: contexts.Context, client: Client, body: dict[str, Any], gpu: str, provider: str | None
) -> dict[str, Any]:
    """The request with the GPUs of ``--gpu``, whose name is looked up among the provider's node types."""
    types = partial(client.node_types.list, provider=provider, page_size=200)
    amounts, requirements = type_filters.gpu_request(gpu, types)
    context.field_sources.append(FieldSource(options={pointer("resources", name): "--gpu" for name in amounts}))
    return _merged(body, {}, amounts, [dict(requirement) for requirement in requirements], {})


def _field_source(
    options: dict[str, Any],
    resources: dict[str, str],
    named: dict[str, str | None],
    require: list[str] | None,
    label: list[str] | None,
) -> FieldSource:
    """Options of the request's fields."""
    field_options = {f"/{name}": f"--{name.replace('_', '-')}" for name in options}
    field_options |= {pointer("resources", name): named.get(name) or f"--resource {name}" for name in resources}
    lists = (("/requirements", require and "--require"), ("/labels", label and "--label"))
    return FieldSource(
        options={**field_options, **{field_pointer: option for field_pointer, option in lists if option}}
    )


def _from_manifest(context: contexts.Context, body: dict[str, Any], output: Form, *, dry_run: bool) -> dict[str, Any]:
    """The id of what the manifest made; nothing when it was only planned."""
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.manifests.plan([body], create_only=True))
            return {}
        results = client.manifests.apply([body], create_only=True)
        plans.warn(context, results.every_warning)
        return {"id": results[0].id}


def _merged(
    body: dict[str, Any],
    options: dict[str, Any],
    resources: dict[str, str],
    requirements: list[dict[str, Any]],
    labels: dict[str, str],
) -> dict[str, Any]:
    merged = {**body, **options}
    if "cluster" not in merged:
        raise BadInput("give --cluster, or --file with a document that names one")
    for field, values in (("resources", resources), ("labels", labels)):
        if values:
            merged[field] = {**(merged.get(field) or {}), **values}
    if requirements:
        merged["requirements"] = [*(merged.get("requirements") or []), *requirements]
    return merged


@app.command("list")
def list_(
    run: typer.Context,
    cluster: Annotated[
        str | None, typer.Option(help="Only claims of this cluster.", autocompletion=cluster_names)
    ] = None,
    provider: Annotated[
        str | None, typer.Option(help="Only claims of this provider.", autocompletion=provider_names)
    ] = None,
    phase: Annotated[str | None, typer.Option(help="Pending, Available, Failed or Deleting.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only claims with this reason.")] = None,
    pool: Annotated[
        str | None, typer.Option(help="Only claims of pools of this name.", autocompletion=pool_names)
    ] = None,
    label: Annotated[str | None, typer.Option(help="key=value.")] = None,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """List the node claims."""
    context = contexts.of(run)
    query: dict[str, Any] = {
        "cluster": cluster,
        "provider": provider,
        "phase": phase,
        "reason": reason,
        "pool": pool,
        "label": label,
    }
    with context.client() as client:
        if watch:
            watching.watch_list(
                context, client, output, listings.claims(client, query, named=output not in {Form.JSON, Form.YAML})
            )
        claims = list(client.node_claims.list(**query))
        if cluster and not claims:
            client.clusters.get(cluster)  # a name that is misspelt is told, not an empty list
        show_many(context, output, CLAIMS, claims if output in {Form.JSON, Form.YAML} else with_names(client, claims))


def with_names(client: Client, claims: Iterable[NodeClaim]) -> list[NodeClaim]:
    """The claims, with the names of clusters that they call by their ids."""
    listed = list(claims)
    if not any(claim.cluster.startswith("clu_") for claim in listed):
        return listed
    names = {cluster.id: cluster.name for cluster in client.clusters.list(page_size=200)}
    return [claim.model_copy(update={"cluster": names.get(claim.cluster, claim.cluster)}) for claim in listed]


@app.command()
def get(
    run: typer.Context, claim: Name, manifest: Manifest = False, watch: Watch = False, output: Output = Form.TABLE
) -> None:
    """Show one node claim."""
    context = contexts.of(run)
    with context.client() as client:
        if manifest:
            write_yaml_or_json(output, client.node_claims.manifest(claim))
            return
        if watch:
            records = client.node_claims.watch(claim, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, CLAIMS, records)
            return
        show_one(context, output, CLAIMS, client.node_claims.get(claim))


@app.command()
def describe(run: typer.Context, claim: Name, output: Output = Form.TABLE) -> None:
    """Describe a claim, its node and price. What waits and why, its last operation and events are shown."""
    from stockyard_client.cli.nodes import claim_descriptions

    context = contexts.of(run)
    with context.client() as client:
        record = client.node_claims.get(claim)
        operation = operations.last(client, record.operation_id)
        if output in {Form.JSON, Form.YAML}:
            document = {"claim": record.document(), "operation": operation.document() if operation else None}
            write_document(output, document)
        elif output is Form.NAME:
            echo(record.name)
        else:
            claim_descriptions.describe(context, client, record, operation)


@app.command()
def explain(
    run: typer.Context,
    claim: Name,
    limit: Annotated[int, typer.Option(min=1, help="How many of the types that fit are shown.")] = 10,
    output: Output = Form.TABLE,
) -> None:
    """Say why a claim got its node type. What else fits, and what ruled others out, is shown; -o wide has each type."""
    from stockyard_client.cli.nodes import explanations

    context = contexts.of(run)
    with context.client() as client:
        explanation = client.node_claims.explain(claim)
    explanations.show(context, output, explanation, limit)


@app.command()
def delete(
    run: typer.Context,
    claim: Name,
    grace_seconds: Annotated[
        int | None, typer.Option(min=0, help="How long pods may still hold the node; 0 ends them at once.")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Give a node back."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.node_claims.plan_delete(claim))
            return
        lines = consequences.safely(consequences.of_claim(client, claim), f"Claim {claim} is given back.")
        confirm(context, lines, yes=yes)
        operation = client.node_claims.delete(claim, grace_seconds)
        context.say(f"Claim {claim} is being given back by operation {operation.id}.")
        operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)


def _waited(context: contexts.Context, client: Client, claim: NodeClaim, timeout: float | None) -> NodeClaim:
    if claim.operation_id:
        progress.wait(context, client, claim.operation_id, timeout)
    return client.node_claims.get(claim.id)
