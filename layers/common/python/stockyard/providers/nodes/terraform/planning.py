"""The runs that would make a node which is only planned: their times, and what ``tofu plan`` needs to try one."""

from __future__ import annotations

import math

from stockyard.domain.records import NodeProvider
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports.node_work import NewNode, PlannedRun, RunTimes
from stockyard.providers.nodes.terraform import templates, variables
from stockyard.providers.nodes.terraform.running import APPLY_MINUTES, DESTROY_MINUTES, END_SECONDS, PLAN_MINUTES


def run_times(provider: NodeProvider, type_name: str, usd_a_minute: float) -> RunTimes:
    """Times of the runs for one node of the type, at the price of a minute."""
    template = templates.of_type(provider, type_name)
    timeout = template.timeout_seconds if template is not None else templates.TIMEOUT_SECONDS
    once = APPLY_MINUTES + DESTROY_MINUTES
    environment = once * len(templates.stages_of(provider))
    longest = 2 * math.ceil((timeout + END_SECONDS) / 60)
    return RunTimes(once, max(once, longest), PLAN_MINUTES, environment, usd_a_minute)


def planned_run(node: NewNode) -> PlannedRun:
    """Template and variables of the run. ``NodeCouldNotBeProvisioned`` for a claim without a placement, a type without
    a template, and a property of which any value would do."""
    placement = node.claim.placement
    if placement is None:
        raise NodeCouldNotBeProvisioned("The claim is not placed.")
    type_name = placement.type.removeprefix(f"{node.provider.name}.")
    template = templates.of_type(node.provider, type_name)
    if template is None:
        raise NodeCouldNotBeProvisioned(f"Node type {type_name} has no template.")
    return PlannedRun(template.document(), {"vcluster": variables.of_new_node(node, type_name, placement)})
