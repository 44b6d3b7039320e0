"""``stockyard site``: places that only a connector there reaches."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import site_names
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.options import DryRun, Watch
from stockyard_client.cli.operations import listings
from stockyard_client.cli.output import consequences, plans, watching
from stockyard_client.cli.output.output import Form, Output, show_many, show_one
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.cli.visible import echo
from stockyard_client.site_models import Site

app = typer.Typer(no_args_is_help=True, help="Places that only a connector there reaches.", rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="SITE", help="Name or id.", autocompletion=site_names)]
SITES: Printer[Site] = Printer(
    (
        Column("NAME", lambda site: site.name),
        Column("STATE", lambda site: site.state),
        Column("CONTACT", lambda site: site.contact_at, is_age=True),
        Column("ALLOWS", lambda site: len(site.allowed)),
        Column("VERSION", lambda site: site.connector_version),
        Column("CREATED", lambda site: site.created_at, is_age=True),
        Column("ID", lambda site: site.id, wide=True),
        Column("CLIENT", lambda site: site.client_id, wide=True),
        Column("DESCRIPTION", lambda site: site.description, wide=True),
    ),
    lambda site: site.name,
)


class ManifestForm(StrEnum):
    """Programs that run the connector."""

    KUBERNETES = "kubernetes"
    SYSTEMD = "systemd"


@app.command()
def create(
    run: typer.Context,
    name: Annotated[str, typer.Argument(metavar="SITE", help="A name, which accounts say as via.")],
    description: Annotated[str | None, typer.Option(help="What it is.")] = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Make a site. Its connector is installed by `site credentials` and `site manifest`."""
    context = contexts.of(run)
    body = {"name": name, **({} if description is None else {"description": description})}
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.sites.plan_create(body))
            return
        site = client.sites.create(body)
    show_one(context, output, SITES, site)
    context.say(f"Next: `stockyard site credentials {name} --directory DIRECTORY`, then install its connector by")
    context.say(f"`stockyard site manifest {name} --form kubernetes` or `--form systemd`.")


@app.command("list")
def list_sites(run: typer.Context, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """List sites."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.sites(client, SITES))
        show_many(context, output, SITES, client.sites.list())


@app.command()
def get(run: typer.Context, site: Name, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """Show a site."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.sites.watch(site, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, SITES, records)
            return
        show_one(context, output, SITES, client.sites.get(site))


@app.command()
def describe(run: typer.Context, site: Name) -> None:
    """Draw a site. With what its connector carries out, and the accounts that are reached through it."""
    from stockyard_client.cli.output import trees

    context = contexts.of(run)
    with context.client() as client:
        record = client.sites.get(site)
        accounts = [each for each in client.accounts.list() if each.document().get("attributes", {}).get("via")]
    users = [each for each in accounts if each.document()["attributes"]["via"] == record.name]
    trees.draw(context, _drawn(record, [f"{each.id} {each.name}" for each in users]))


def _drawn(site: Site, accounts: list[str]) -> dict[str, Any]:
    facts = {
        "id": site.id,
        "description": site.description,
        "client": site.client_id,
        "last contact": site.contact_at or "none yet",
        "version": site.connector_version,
    }
    branches: list[dict[str, Any]] = [{"kind": label, "message": value} for label, value in facts.items() if value]
    branches.append({"kind": "carries out", "children": [{"kind": "", "message": line} for line in site.allowed]})
    branches.append({"kind": "accounts", "children": [{"kind": "", "message": account} for account in accounts]})
    return {"kind": "site", "name": site.name, "status": site.state, "children": branches}


@app.command()
def credentials(
    run: typer.Context,
    site: Name,
    directory: Annotated[
        Path, typer.Option("--directory", "-d", help="Where client_id and client_secret are written.")
    ],
) -> None:
    """Make new credentials of a site's connector. Those before end. The files are for their owner alone."""
    context = contexts.of(run)
    with context.client() as client:
        record = client.sites.renew_credentials(site)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in (("client_id", record.client_id), ("client_secret", record.client_secret)):
            path = directory / name
            path.unlink(missing_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise BadInput(f"{directory}: {error.strerror}; ask for credentials again") from error
    context.say(f"Credentials of site {site} are in {directory}; its connector needs them now.")


@app.command()
def manifest(
    run: typer.Context,
    site: Name,
    form: Annotated[ManifestForm, typer.Option(help="What runs the connector.")] = ManifestForm.KUBERNETES,
) -> None:
    """Print what installs a site's connector. Objects for kubectl, or a script for root; no secret is in it."""
    with contexts.of(run).client() as client:
        text = client.sites.manifest(site, form=form.value)
    echo(text.rstrip("\n"))


@app.command()
def delete(
    run: typer.Context, site: Name, yes: Yes = False, dry_run: DryRun = False, output: Output = Form.TABLE
) -> None:
    """Remove a site that no account is reached through."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.sites.plan_delete(site))
            return
        lines = consequences.safely(consequences.of_site(client, site), f"Site {site} is removed.")
        confirm(context, lines, yes=yes)
        client.sites.delete(site)
    context.say(f"Site {site} was removed.")
