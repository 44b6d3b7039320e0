"""``stockyard provider validate``: a document of a node provider is checked, and nothing is registered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.input.inputs import read_either
from stockyard_client.cli.input.options import Tofu
from stockyard_client.cli.nodes.template_checks import TemplateCheck, local_tofu, templates_of
from stockyard_client.cli.output import plans
from stockyard_client.cli.output.output import Form, Output, write_document

KIND = "terraform"
_NO_TOFU = "The template was not checked: there is no program tofu here. Install OpenTofu, or name it by --tofu."


def validate(
    run: typer.Context,
    file: Annotated[
        str, typer.Option("--file", "-f", help="JSON or YAML document or manifest; - reads standard input.")
    ],
    tofu: Tofu = None,
    output: Output = Form.TABLE,
) -> None:
    """Check the document of a node provider. As a registration would, which is not made. Templates of Terraform are
    validated by the OpenTofu of this machine, where there is one; exit 2 when the API or OpenTofu refuses something."""
    context = contexts.of(run)
    body, manifest = read_either(context, file, "provider", ["NodeProvider"])
    with context.client() as client:
        plan = client.manifests.plan([body]) if manifest else client.node_providers.plan_create(body)
    checks = _template_checks(context, body, tofu, manifest=manifest)
    if output in {Form.JSON, Form.YAML}:
        write_document(output, {"plan": plan.document(), "templates": [check.document() for check in checks]})
    else:
        plans.show(context, output, plan)
        for check in checks:
            is_sure = check.verdict in {"valid", "invalid"}
            line = f"{context.location_of(check.pointer)}: {check.detail}"
            context.say(line if is_sure else f"Warning: {line}", None if is_sure else "yellow")
    faults = [line for check in checks for line in _lines(context, check)]
    if faults:
        raise BadInput("\n".join(faults))


def _template_checks(
    context: contexts.Context, body: dict[str, Any], tofu: str | None, *, manifest: bool
) -> Sequence[TemplateCheck]:
    spec = body.get("spec") or {}
    block = spec.get(KIND) if manifest else spec if body.get("kind") == KIND else None
    if not block:
        return ()
    entries = list(templates_of(block, f"/0/spec/{KIND}" if manifest else "/spec"))
    local = local_tofu(context.environment, tofu)
    if local is None:
        return [TemplateCheck(pointer, "unchecked", _NO_TOFU) for pointer, _ in entries]
    return [local.check(pointer, template) for pointer, template in entries]


def _lines(context: contexts.Context, check: TemplateCheck) -> list[str]:
    """The faults of a template, each with its field and its location there."""
    field = context.location_of(check.pointer)
    locations = [
        f"{field}, {fault.file} line {fault.line}" if fault.file and fault.line else field for fault in check.faults
    ]
    return [f"{location}: {fault.detail}" for location, fault in zip(locations, check.faults, strict=True)]
