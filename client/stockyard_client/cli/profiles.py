"""``stockyard profile``: templates of what stands in clusters."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli import plans
from stockyard_client.cli.failures import BadInput
from stockyard_client.cli.inputs import read_document
from stockyard_client.cli.options import DryRun
from stockyard_client.cli.output import Form, write_document

app = typer.Typer(no_args_is_help=True, help="Cluster profiles.", rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="PROFILE", help="Name or id.")]
Cluster = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.")]
Document = Annotated[str, typer.Option("--file", "-f", help="A document of kind ClusterProfile, or a request.")]
Choices = Annotated[str, typer.Option("--file", "-f", help="A document with the list profiles.")]


def body_of(document: dict[str, Any]) -> dict[str, Any]:
    """The request that a document stands for: one of kind ClusterProfile, or the request itself."""
    if "apiVersion" not in document:
        return document
    if (document["apiVersion"], document.get("kind")) != ("stockyard/v1", "ClusterProfile"):
        raise BadInput("the document is not of kind ClusterProfile of stockyard/v1")
    return {**document.get("spec", {}), "name": document.get("metadata", {}).get("name", "")}


@app.command()
def create(run: typer.Context, file: Document, dry_run: DryRun = False) -> None:
    """Make a profile; where there is one of the name, add a version to it."""
    context, body = contexts.of(run), body_of(read_document(file))
    with context.client() as client:
        existing = [profile for profile in client.profiles.list() if profile["name"] == body.get("name")]
        later = {name: value for name, value in body.items() if name not in ("name", "cloud")}
        profiles = client.profiles
        if dry_run:
            plan = profiles.plan_version(existing[0]["id"], later) if existing else profiles.plan_create(body)
            plans.show(context, Form.TABLE, plan)
            return
        profile = profiles.add_version(existing[0]["id"], later) if existing else profiles.create(body)
    write_document(Form.YAML, {name: profile[name] for name in ("id", "name", "version")})


@app.command("list")
def list_profiles(run: typer.Context) -> None:
    """List profiles."""
    with contexts.of(run).client() as client:
        listed = [{name: p[name] for name in ("id", "name", "version", "cloud")} for p in client.profiles.list()]
    write_document(Form.YAML, listed)


@app.command()
def get(run: typer.Context, profile: Name) -> None:
    """Show a profile."""
    with contexts.of(run).client() as client:
        write_document(Form.YAML, client.profiles.get(profile))


@app.command()
def delete(run: typer.Context, profile: Name) -> None:
    """Remove a profile that no cluster uses."""
    context = contexts.of(run)
    with context.client() as client:
        client.profiles.delete(profile)
    context.say(f"Profile {profile} is removed.")


@app.command()
def diff(run: typer.Context, cluster: Cluster, file: Choices) -> None:
    """Show what other profiles, versions or values would change in a cluster."""
    with contexts.of(run).client() as client:
        write_document(Form.YAML, client.profiles.plan_of_cluster(cluster, read_document(file).get("profiles", [])))


def of_cluster(
    run: typer.Context,
    cluster: Cluster,
    file: Annotated[str | None, typer.Option("--file", "-f", help="A document with the list profiles to set.")] = None,
    refresh: Annotated[bool, typer.Option(help="Compare with what stands in the cluster.")] = False,
) -> None:
    """Show the profiles of a cluster with the status of each pack, or set them."""
    context = contexts.of(run)
    with context.client() as client:
        if file is not None:
            operation = client.profiles.set_of_cluster(cluster, read_document(file).get("profiles", []))
            context.say(f"Operation {operation.id} changes the profiles.")
            return
        write_document(Form.YAML, client.profiles.of_cluster(cluster, refresh=refresh))
