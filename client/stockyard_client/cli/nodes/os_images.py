"""``stockyard os-image``: images that machines of one's own are written from."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.completion import os_image_names
from stockyard_client.cli.input.confirmations import Yes, confirm
from stockyard_client.cli.input.options import DryRun, Watch
from stockyard_client.cli.operations import listings
from stockyard_client.cli.output import consequences, plans, watching
from stockyard_client.cli.output.output import Form, Output, show_many, show_one
from stockyard_client.cli.output.tables import Column, Printer
from stockyard_client.os_image_models import OSImage

app = typer.Typer(no_args_is_help=True, help="Images of operating systems.", rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="IMAGE", help="Name or id.", autocompletion=os_image_names)]
Url = Annotated[str | None, typer.Option(help="Where whoever writes a disk reads it.")]
Checksum = Annotated[str | None, typer.Option(help="Its digest, or the URL of a file with it.")]
ChecksumType = Annotated[str | None, typer.Option(help="md5, sha256, sha512 or auto; else its length tells.")]
ImageFormat = Annotated[str | None, typer.Option("--format", help="raw, qcow2, vdi, vmdk or live-iso.")]
Description = Annotated[str | None, typer.Option(help="What it is.")]
OS_IMAGES: Printer[OSImage] = Printer(
    (
        Column("NAME", lambda image: image.name),
        Column("URL", lambda image: image.url),
        Column("FORMAT", lambda image: image.format),
        Column("UPDATED", lambda image: image.updated_at, is_age=True),
        Column("ID", lambda image: image.id, wide=True),
        Column("CHECKSUM", lambda image: image.checksum, wide=True),
        Column("DESCRIPTION", lambda image: image.description, wide=True),
    ),
    lambda image: image.name,
)


@app.command()
def create(
    run: typer.Context,
    name: Annotated[str, typer.Argument(metavar="IMAGE", help="A name, which vcluster.com/os-image says.")],
    url: Annotated[str, typer.Option(help="Where whoever writes a disk reads it.")],
    checksum: Checksum = None,
    checksum_type: ChecksumType = None,
    image_format: ImageFormat = None,
    description: Description = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Enter an image."""
    context = contexts.of(run)
    body = {"name": name, **_body(url, checksum, checksum_type, image_format, description)}
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.os_images.plan_create(body))
            return
        image = client.os_images.create(body)
    show_one(context, output, OS_IMAGES, image)


@app.command("list")
def list_images(run: typer.Context, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """List images."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            watching.watch_list(context, client, output, listings.os_images(client, OS_IMAGES))
        show_many(context, output, OS_IMAGES, client.os_images.list())


@app.command()
def get(run: typer.Context, image: Name, watch: Watch = False, output: Output = Form.TABLE) -> None:
    """Show an image."""
    context = contexts.of(run)
    with context.client() as client:
        if watch:
            records = client.os_images.watch(image, on_trouble=watching.trouble(context))
            watching.watch_one(context, output, OS_IMAGES, records)
            return
        show_one(context, output, OS_IMAGES, client.os_images.get(image))


@app.command()
def update(
    run: typer.Context,
    image: Name,
    url: Url = None,
    checksum: Checksum = None,
    checksum_type: ChecksumType = None,
    image_format: ImageFormat = None,
    description: Description = None,
    dry_run: DryRun = False,
    output: Output = Form.TABLE,
) -> None:
    """Change an image. Machines that were written from it stay, and are replaced as drifted ones are."""
    context = contexts.of(run)
    changes = _body(url, checksum, checksum_type, image_format, description)
    if not changes:
        raise BadInput("nothing is given that changes")
    with context.client() as client:
        record = client.os_images.get(image)
        if dry_run:
            plans.show(context, output, client.os_images.plan_update(record, changes))
            return
        changed = client.os_images.update(record, changes)
    show_one(context, output, OS_IMAGES, changed)


@app.command()
def delete(
    run: typer.Context, image: Name, yes: Yes = False, dry_run: DryRun = False, output: Output = Form.TABLE
) -> None:
    """Remove an image that no node provider names."""
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.os_images.plan_delete(image))
            return
        lines = consequences.safely(consequences.of_os_image(client, image), f"OS image {image} is removed.")
        confirm(context, lines, yes=yes)
        client.os_images.delete(image)
    context.say(f"OS image {image} was removed.")


def _body(
    url: str | None,
    checksum: str | None,
    checksum_type: str | None,
    image_format: str | None,
    description: str | None,
) -> dict[str, Any]:
    fields = {
        "url": url,
        "checksum": checksum,
        "checksum_type": checksum_type,
        "format": image_format,
        "description": description,
    }
    return {name: value for name, value in fields.items() if value is not None}
