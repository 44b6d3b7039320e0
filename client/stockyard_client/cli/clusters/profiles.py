"""``stockyard profile``: templates of what stands in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.bodies import check_body, check_kind, is_manifest
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.input.completion import cluster_names, profile_names
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.inputs import read_document, read_patch
from stockyard_client.cli.input.options import DryRun, Manifest, Timeout, Wait, Watch
from stockyard_client.cli.operations import listings, operations
from stockyard_client.cli.output import consequences, plans, watching
from stockyard_client.cli.output.output import Form, Output, show_many, show_one, write_document, write_yaml_or_json
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.profile_models import ClusterProfile, ClusterProfiles, PackStatus

app = typer.Typer(no_args_is_help=True, help="Cluster profiles.", rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="PROFILE", help="Name or id.", autocompletion=profile_names)]
Version = Annotated[str | None, typer.Option("--version", help="The version to show; by default the newest.")]
Cluster = Annotated[str, typer.Argument(metavar="CLUSTER", help="Name or id.", autocompletion=cluster_names)]
Document = Annotated[str, typer.Option("--file", "-f", help="A document of kind ClusterProfile, or a request.")]
Choices = Annotated[str, typer.Option("--file", "-f", help="A document with the list profiles.")]
ProfileNames = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="NAME[@VERSION]",
        help="A profile of the cluster; may be repeated.",
        autocompletion=profile_names,
    ),
]

CONTENT = ("version", "description", "variables", "packs")
"""What a version of a profile says."""
PROFILES: Printer[ClusterProfile] = Printer(
    (
        Column("NAME", lambda p: p.name),
        Column("VERSION", lambda p: p.version),
        Column("CLOUD", lambda p: p.cloud),
        Column("VERSIONS", lambda p: len(p.versions)),
        Column("UPDATED", lambda p: p.updated_at, is_age=True),
        Column("ID", lambda p: p.id, wide=True),
        Column("DESCRIPTION", lambda p: p.description, wide=True),
    ),
    lambda p: p.name,
)
PACKS: Printer[PackStatus] = Printer(
    (
        Column("LAYER", lambda p: p.layer),
        Column("PACK", lambda p: p.name),
        Column("TAG", lambda p: p.tag),
        Column("CONDITION", lambda p: p.condition),
        Column("PROFILE", lambda p: p.profile),
        Column("MESSAGE", lambda p: p.message),
        Column("STARTED", lambda p: p.started_at, wide=True),
        Column("ENDED", lambda p: p.ended_at, wide=True),
    ),
    lambda p: f"{p.profile}/{p.name}",
)


def body_of(context: contexts.Context, path: str) -> dict[str, Any]:
    """The request that a document stands for: one of kind ClusterProfile, or the request itself."""
    document = read_document(path)
    if not is_manifest(document.value):
        check_body(document, "profile")
        context.field_sources.append(FieldSource(document, noun="profile"))
        return document.value
    check_kind(document, ["ClusterProfile"])
    version, spec = document.value.get("apiVersion"), document.value.get("spec")
    if version != "stockyard/v1" or not isinstance(spec, dict):
        raise BadInput(f"{document.location()}: this is no ClusterProfile of stockyard/v1 with a spec")
    context.field_sources.append(FieldSource(document, inner="/spec"))
    return {**spec, "name": document.name}


def choices_from(names: Sequence[str]) -> list[dict[str, Any]]:
    """``NAME`` or ``NAME@VERSION`` texts as choices of profiles."""
    pairs = [text.partition("@") for text in names]
    return [{"name": name, "version": version} if version else {"name": name} for name, _, version in pairs]


def choices_of(context: contexts.Context, source: str) -> list[dict[str, Any]]:
    """The choices of a document, which has to have a list of them, so that a wrong file does not remove all packs."""
    document = read_patch(context, source, "profiles")
    choices = document.get("profiles")
    if not isinstance(choices, list):
        raise BadInput(f"{source} has no list profiles")
    return choices


@app.command()
def create(run: typer.Context, file: Document, dry_run: DryRun = False, output: Output = Form.TABLE) -> None:
    """Make a profile, or add a version to one. The latter where there is one of the name."""
    context = contexts.of(run)
    body = body_of(context, file)
    with context.client() as client:
        profiles = client.profiles
        existing = [profile for profile in profiles.list() if profile.name == body.get("name")]
        later = {name: value for name, value in body.items() if name not in ("name", "cloud")}
        if dry_run:
            plan = profiles.plan_version(existing[0].id, later) if existing else profiles.plan_create(body)
            plans.show(context, output, plan)
            return
        profile = profiles.add_version(existing[0].id, later) if existing else profiles.create(body)
    show_one(context, output, PROFILES, profile)


@app.command()
def edit(run: typer.Context, profile: Name, yes: Yes = False, output: Output = Form.TABLE) -> None:
    """Add a version to a profile in your editor (EDITOR). It begins as the newest one, and needs a higher number."""
    from stockyard_client.cli.input.editing import Editable
    from stockyard_client.cli.input.editing import edit as opened

    context = contexts.of(run)
    with context.client() as client:
        profiles = client.profiles

        def send(record: ClusterProfile, patch: dict[str, Any]) -> ClusterProfile:
            document = {name: value for name, value in record.document().items() if name in CONTENT} | patch
            return profiles.add_version(record, {name: value for name, value in document.items() if value is not None})

        pair = opened(context, Editable("profile", profile, CONTENT, lambda: profiles.get(profile), send), yes=yes)
    if pair is not None:
        show_one(context, output, PROFILES, pair[1])


@app.command("list")
def list_profiles(run: typer.Context, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """List profiles."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.profiles(client, PROFILES))
        show_many(context, output, PROFILES, client.profiles.list())


@app.command()
def get(
    run: typer.Context,
    profile: Name,
    version: Version = None,
    manifest: Manifest = False,
    watch: Watch = False,
    output: Output = Form.TABLE,
) -> None:
    """Show a profile; json and yaml with what the version says."""
    if manifest and watch:
        raise BadInput("give --manifest or --watch")
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.profiles.watch(profile, version=version, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, PROFILES, records)
            return
        if manifest:
            write_yaml_or_json(output, client.profiles.manifest(profile, version=version))
            return
        show_one(context, output, PROFILES, client.profiles.get(profile, version=version))


@app.command()
def describe(run: typer.Context, profile: Name, version: Version = None) -> None:
    """Draw a version of a profile. With its packs in order, its variables, and its other versions."""
    from stockyard_client.cli.output import trees

    context = contexts.of(run)
    with context.client() as client:
        record = client.profiles.get(profile, version=version)
    trees.draw(context, _drawn(record))


def _drawn(profile: ClusterProfile) -> dict[str, Any]:
    numbers = ", ".join(str(version["version"]) for version in profile.versions)
    facts = {"id": profile.id, "description": profile.description, "cloud": profile.cloud, "versions": numbers}
    branches: list[dict[str, Any]] = [{"kind": label, "message": value} for label, value in facts.items() if value]
    if profile.variables:
        branches.append({"kind": "variables", "children": [_variable(entry) for entry in profile.variables]})
    branches.append({"kind": "packs", "children": [_pack(pack) for pack in profile.packs or ()]})
    return {"kind": "profile", "name": profile.name, "type": profile.version, "children": branches}


def _variable(entry: dict[str, Any]) -> dict[str, Any]:
    default = "" if entry.get("default") is None else f" = {entry['default']}"
    required = "required" if entry.get("required") else ""
    words = {"status": required, "type": f"{entry['type']}{default}", "message": entry.get("description") or ""}
    return {"name": entry["name"], **words}


def _pack(pack: dict[str, Any]) -> dict[str, Any]:
    count = len(pack.get("manifests") or ())
    message = f"{count} manifest{'s' if count > 1 else ''}" if count else ""
    return {"kind": pack["layer"], "name": pack["name"], "type": pack["tag"], "message": message}


@app.command()
def delete(
    run: typer.Context,
    profile: Name,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Remove a profile that no cluster uses."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.profiles.plan_delete(profile))
            return
        lines = consequences.safely(consequences.of_profile(client, profile), f"Profile {profile} is removed.")
        confirm(context, lines, yes=yes)
        client.profiles.delete(profile)
    context.say(f"Profile {profile} is removed.")


@app.command()
def diff(run: typer.Context, cluster: Cluster, file: Choices, output: Output = Form.TABLE) -> None:
    """Show what other profiles would change in a cluster. Also other versions and values."""
    context = contexts.of(run)
    choices = choices_of(context, file)
    with context.client() as client:
        plans.show(context, output, client.profiles.plan_of_cluster(cluster, choices))


def of_cluster(
    run: typer.Context,
    cluster: Cluster,
    file: Annotated[str | None, typer.Option("--file", "-f", help="A document with the list profiles to set.")] = None,
    refresh: Annotated[bool, typer.Option(help="Compare with what stands in the cluster.")] = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Show the packs of a cluster, or set its profiles. Shown are their status, and what has drifted."""
    context = contexts.of(run)
    choices = None if file is None else choices_of(context, file)
    with context.client() as client:
        if choices is None:
            _show(context, output, client.profiles.of_cluster(cluster, refresh=refresh))
        elif dry_run:
            plans.show(context, output, client.profiles.plan_of_cluster(cluster, choices))
        else:
            operation = client.profiles.set_of_cluster(cluster, choices)
            context.say(f"Operation {operation.id} changes the profiles.")
            operations.finish(context, client, operation, wait=wait, timeout=timeout, output=output)


def _show(context: contexts.Context, output: Form, view: ClusterProfiles) -> None:
    if output in {Form.JSON, Form.YAML}:
        write_document(output, view.document())
        return
    show_many(context, output, PACKS, view.packs)
    for line in view.drift:
        context.say(f"Drift: {line}", "yellow")
    if view.compared_at and not view.drift:
        context.say(f"No drift at {view.compared_at}.", "dim")
