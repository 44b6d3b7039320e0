"""``stockyard account``: the clouds a tenant may use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.failures import FAILURE
from stockyard_client.cli.input.completion import account_numbers
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.inputs import pairs, read_body
from stockyard_client.cli.input.options import DryRun, File, Watch
from stockyard_client.cli.operations import listings, updates
from stockyard_client.cli.output import consequences, plans, watching
from stockyard_client.cli.output.output import ACCOUNTS, VERIFIED, Form, Output, show_many, show_one, write_document
from stockyard_client.cli.tenant.policies import NOTE, policies_of
from stockyard_client.cli.visible import echo, json_text, yaml_text

app = typer.Typer(no_args_is_help=True, help="Cloud accounts.", rich_markup_mode=None)
app.command("update")(updates.update_account)
app.command("edit")(updates.edit_account)


def _field_source(options: dict[str, Any], attributes: dict[str, Any], tags: list[str] | None) -> FieldSource:
    """Options of the request's fields."""
    field_options = {f"/{name}": f"--{name}" for name, value in options.items() if value is not None}
    field_options |= {
        f"/attributes/{name}": f"--{name.replace('_', '-')}" for name, value in attributes.items() if value is not None
    }
    return FieldSource(options={**field_options, **({"/tags": "--tag"} if tags else {})})


Account = Annotated[str, typer.Argument(help="The account's number or name.", autocompletion=account_numbers)]


def _host(
    kubeconfig: Path | None,
    context_name: str | None,
    namespaces: list[str] | None,
    via: str | None,
    features: list[str] | None,
) -> dict[str, Any]:
    """Attributes of a Kubernetes host from the options for it; empty without any."""
    from stockyard_client.cli.tenant.kubeconfigs import host_attributes

    if context_name is not None and kubeconfig is None:
        raise BadInput("--context names a part of a file: give --kubeconfig")
    attributes = host_attributes(kubeconfig, context_name) if kubeconfig is not None else {}
    named = {"namespaces": namespaces, "via": via, "features": features}
    return {**attributes, **{name: value for name, value in named.items() if value}}


def _attributes(provider: str, named: dict[str, str | None]) -> dict[str, str | None]:
    """Attributes of the account from options and environment. The environment's counts only where its part is asked
    for."""
    attributes = {name: named[name] for name in ("role_arn", "region", "data_center_id", "volume_key_arn")}
    if provider == "cudo":
        attributes |= {"project_id": named["project_id"], "api_key": os.environ.get("CUDO_API_KEY")}
    if named["access_key_id"] is not None:
        attributes |= {name: named[name] for name in ("user_arn", "access_key_id")}
        attributes["secret_access_key"] = os.environ.get("AWS_SECRET_ACCESS_KEY")
    if named["vault_address"] is not None:
        attributes |= {name: named[name] for name in ("vault_address", "vault_role_id")}
        attributes["vault_secret_id"] = os.environ.get("VAULT_SECRET_ID")
    return attributes


@app.command()
def create(
    run: typer.Context,
    file: File = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    provider: Annotated[str | None, typer.Option(help="aws (the default), cudo, kubernetes or bcm.")] = None,
    role_arn: Annotated[str | None, typer.Option(help="AWS: the role that Stockyard assumes.")] = None,
    region: Annotated[str | None, typer.Option(help="AWS: the default region.")] = None,
    volume_key_arn: Annotated[str | None, typer.Option(help="AWS: the key that encrypts all disks.")] = None,
    user_arn: Annotated[str | None, typer.Option(help="AWS, instead of a role: the user of an access key.")] = None,
    access_key_id: Annotated[str | None, typer.Option(help="AWS, instead of a role: the id of that key.")] = None,
    project_id: Annotated[str | None, typer.Option(envvar="CUDO_PROJECT_ID", help="Cudo: the project.")] = None,
    data_center_id: Annotated[str | None, typer.Option(help="Cudo: where things stand that name no place.")] = None,
    vault_address: Annotated[str | None, typer.Option(help="Cudo: the Vault for keys of disks.")] = None,
    vault_role_id: Annotated[str | None, typer.Option(help="Cudo: the role id of its AppRole.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Kubernetes: the file with server and credentials.")] = None,
    context_name: Annotated[
        str | None, typer.Option("--context", help="Kubernetes: the context of that file, if not its current one.")
    ] = None,
    namespace: Annotated[
        list[str] | None, typer.Option(help="Kubernetes: where machines may be made; may be repeated.")
    ] = None,
    via: Annotated[str | None, typer.Option(help="Kubernetes, BCM: the site that reaches it.")] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Kubernetes: kinds of machines that it is for; may be repeated.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="key=value; may be repeated.")] = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Register a cloud account.

    From a file, from options, or both; options win.

    Cudo's API key is read from CUDO_API_KEY, the AppRole's secret id from VAULT_SECRET_ID, the secret of an access key
    from AWS_SECRET_ACCESS_KEY, or all from the file: a command's options are seen by others. A kubeconfig is split into
    server, authority and credentials; what of it is secret is kept sealed.
    """
    context = contexts.of(run)
    body = read_body(context, file, "account") if file else {}
    options = {"name": name, "description": description, "provider": provider}
    named = {"role_arn": role_arn, "region": region, "data_center_id": data_center_id, "user_arn": user_arn}
    named |= {"access_key_id": access_key_id, "project_id": project_id, "volume_key_arn": volume_key_arn}
    named |= {"vault_address": vault_address, "vault_role_id": vault_role_id}
    host = _host(kubeconfig, context_name, namespace, via, feature)
    if host:
        body.setdefault("provider", "kubernetes")
    context.field_sources.append(_field_source(options, named, tag))
    body.update({key: value for key, value in options.items() if value is not None})
    _complete(body, host, named, tag)
    if not file and "name" not in body:
        raise BadInput("give --file, or at least --name and --role-arn")
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.accounts.plan_create(body))
            return
        account = client.accounts.create(body)
    show_one(context, output, ACCOUNTS, account)
    context.say(_next_step(account))


def _next_step(account: Any) -> str:
    """Sentence on what to do with a new account."""
    deploys = not account.secrets and account.provider == "aws"
    deploy = f"deploy `stockyard account template {account.id}` in that cloud account, then " if deploys else ""
    return f"Next: {deploy}verify it by `stockyard account verify {account.id}`."


def _complete(
    body: dict[str, Any], host: Mapping[str, Any], named: dict[str, str | None], tag: list[str] | None
) -> None:
    """Give the body the cloud that is usual, and the attributes and tags of options, which win."""
    body.setdefault("provider", "aws")
    attributes = {**host, **_attributes(body["provider"], named)}
    own = body.get("attributes") or {}
    body["attributes"] = {**own, **{key: value for key, value in attributes.items() if value is not None}}
    if tag:
        body["tags"] = {**(body.get("tags") or {}), **pairs(tag)}


@app.command("list")
def list_(run: typer.Context, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """List the cloud accounts."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.accounts(client))
        show_many(context, output, ACCOUNTS, client.accounts.list())


@app.command()
def get(run: typer.Context, account: Account, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """Show one cloud account."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.accounts.watch(account, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, ACCOUNTS, records)
            return
        show_one(context, output, ACCOUNTS, client.accounts.get(account))


@app.command()
def describe(run: typer.Context, account: Account, output: Output = Form.TABLE) -> None:
    """Describe a cloud account. Whether it can be used, and which clusters use it, is shown."""
    from stockyard_client.cli.output import descriptions

    context = contexts.of(run)
    with context.client() as client:
        record = client.accounts.get(account)
        if output is Form.TABLE:
            descriptions.account(context, client, record)
        else:
            show_one(context, output, ACCOUNTS, record)


@app.command()
def template(
    run: typer.Context,
    account: Account,
    runs: Annotated[
        bool, typer.Option("--runs", help="The template for programs of node providers, such as OpenTofu.")
    ] = False,
) -> None:
    """Print the template that the account's owner deploys."""
    # Without spaces: CloudFormation takes no larger file than 51,200 bytes from who has no bucket for it.
    with contexts.of(run).client() as client:
        body: Any = client.accounts.template(account, runs=runs)
    if isinstance(body, dict) and body.get("kind") == "List":
        echo(yaml_text(body).rstrip("\n"))
        return
    if isinstance(body, dict) and "Resources" not in body and "template" in body:
        body = body["template"]
    echo(body.rstrip("\n") if isinstance(body, str) else json_text(body, separators=(",", ":")))


@app.command()
def policies(
    run: typer.Context,
    account: Account,
    directory: Annotated[
        Path | None, typer.Option("--directory", "-d", help="Write each policy to a file of its name there.")
    ] = None,
    output: Output = Form.TABLE,
) -> None:
    """Show the least permissions that are needed there. They are managed policies of IAM."""
    context = contexts.of(run)
    with context.client() as client:
        template = client.accounts.template(account)
        attributes = client.accounts.get(account).document().get("attributes") or {}
    partition = str(attributes.get("role_arn") or "arn:aws:iam").split(":")[1]
    documents = policies_of(template, partition) if isinstance(template, dict) else []
    if not documents:
        raise BadInput("this account's cloud knows no policies")
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        for policy in documents:
            (directory / f"{policy.name}.json").write_text(
                json.dumps(policy.document, indent=1) + "\n", encoding="utf-8"
            )
    if output in {Form.JSON, Form.YAML}:
        write_document(output, {policy.name: policy.document for policy in documents})
        return
    for policy in documents:
        part = policy.part.removeprefix("Has") or "always"
        echo(policy.name if output is Form.NAME else f"{policy.name:<48} {part:<16} {len(policy.text):>5}")
    context.say(NOTE)


@app.command()
def verify(run: typer.Context, account: Account, output: Output = Form.TABLE) -> None:
    """Prove that the account's credentials work. Exit 1 when they do not."""
    context = contexts.of(run)
    with context.client() as client:
        verified = client.accounts.verify(account)
    show_one(context, output, VERIFIED, verified)
    if verified.verification_message:
        context.say(verified.verification_message)
    for warning in verified.warnings:
        context.say(f"Warning: {warning}", "yellow")
    if verified.verification == "failed":
        raise typer.Exit(FAILURE)


@app.command()
def delete(
    run: typer.Context,
    account: Account,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Forget a cloud account that no cluster uses."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.accounts.plan_delete(account))
            return
        lines = consequences.safely(consequences.of_account(client, account), f"Cloud account {account} is forgotten.")
        confirm(context, lines, yes=yes)
        client.accounts.delete(account)
    context.say(f"Cloud account {account} was removed.")
