"""``stockyard claim power``: a node's machine on, off, or restarted."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stockyard_client.cli import context as contexts
from stockyard_client.cli.input.completion import claim_names
from stockyard_client.cli.input.options import DryRun, Timeout, Wait
from stockyard_client.cli.output import plans, progress
from stockyard_client.cli.output.node_tables import CLAIMS
from stockyard_client.cli.output.output import Form, Output, show_one


class State(StrEnum):
    """Command to the machine."""

    ON = "on"
    OFF = "off"
    REBOOT = "reboot"


def power(
    run: typer.Context,
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="Name or id.", autocompletion=claim_names)],
    state: Annotated[State, typer.Argument(metavar="on|off|reboot", help="What its machine shall do.")],
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = None,
    output: Output = Form.TABLE,
) -> None:
    """Switch a node's machine on or off, or restart it. A machine that is off may still be billed.

    Where its kind of provider switches no machines, that is said and nothing begins.
    """
    context = contexts.of(run)
    with context.client() as client:
        if dry_run:
            plans.show(context, output, client.node_claims.plan_power(claim, state.value.capitalize()))
            return
        record = client.node_claims.power(claim, state.value.capitalize())
        if record.operation_id:
            context.say(f"The machine of claim {record.name} is switched by operation {record.operation_id}.")
        if wait and record.operation_id:
            progress.wait(context, client, record.operation_id, timeout)
            record = client.node_claims.get(record.id)
    show_one(context, output, CLAIMS, record)
