"""Plan of the run that would make a node, by the OpenTofu of this machine, as ``tofu plan`` of an empty state."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stockyard_client.cli.context import Context
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.nodes.template_checks import (
    INIT_SECONDS,
    LocalTofu,
    TemplateFault,
    fault_of,
    local_tofu,
    reason_of,
)
from stockyard_client.models import Plan

PLAN_SECONDS = 600
_NO_TOFU = "There is no program tofu here. Install OpenTofu, or name it by --tofu."
_OWN_STATE: dict[str, Any] = {"terraform": {"backend": {"local": {}}}}
"""A state of its own: that of a backend of the template is neither read nor locked."""
_SIGNS = {"create": "+", "update": "~", "delete": "-", "replace": "±"}


@dataclass(frozen=True, slots=True)
class TemplatePlan:
    """Things that a run would make, by their addresses in the template; ``faults`` are what OpenTofu refuses."""

    changes: tuple[tuple[str, str], ...]
    """Action and address of each."""
    faults: tuple[TemplateFault, ...] = ()

    def document(self) -> dict[str, Any]:
        """The plan as JSON."""
        changes = [{"action": action, "address": address} for action, address in self.changes]
        return {"changes": changes, "faults": [asdict(fault) for fault in self.faults]}


def tofu_of(context: Context, tofu: str | None) -> LocalTofu:
    """OpenTofu of this machine. ``BadInput`` where there is none."""
    local = local_tofu(context.environment, tofu)
    if local is None:
        raise BadInput(_NO_TOFU)
    return local


def plan_of(tofu: LocalTofu, run: Mapping[str, Any]) -> TemplatePlan:
    """Plan of a run that the API has described. ``BadInput`` where its template or plug-ins cannot be fetched."""
    with tempfile.TemporaryDirectory(prefix="stockyard-plan-") as name:
        room = Path(name)
        folder = tofu.folder_of(run["template"], room)
        if not isinstance(folder, Path):
            raise BadInput(folder)
        (folder / "stockyard_backend_override.tf.json").write_text(json.dumps(_OWN_STATE), encoding="utf-8")
        variables = room / "stockyard.tfvars.json"
        variables.write_text(json.dumps(run["variables"]), encoding="utf-8")
        initialized, printed = tofu.run(folder, INIT_SECONDS, "init", "-input=false", "-no-color")
        if not initialized:
            raise BadInput(f"The run was not planned: OpenTofu cannot prepare the template here. {reason_of(printed)}")
        arguments = ("-input=false", "-no-color", "-json", f"-var-file={variables}")
        planned, printed = tofu.run(folder, PLAN_SECONDS, "plan", *arguments)
        lines = list(_lines(printed))
        errors = [line["diagnostic"] for line in lines if line.get("type") == "diagnostic"]
        faults = tuple(fault_of(each) for each in errors if each.get("severity") == "error")
        if not lines or not (planned or faults):
            last_words = printed.strip()[-500:] or "the program does not answer as OpenTofu does."
            raise BadInput(f"The run was not planned: {last_words}")
        changes = (line["change"] for line in lines if line.get("type") == "planned_change")
        return TemplatePlan(tuple((str(each["action"]), str(each["resource"]["addr"])) for each in changes), faults)


def show(context: Context, plan: TemplatePlan) -> None:
    """Write what the run would make, and what OpenTofu refuses."""
    count = len(plan.changes)
    things = "1 thing" if count == 1 else f"{count} things"
    context.out.print(f"OpenTofu would make {things} of the template:" if count else "OpenTofu would make nothing.")
    for action, address in plan.changes:
        context.out.print(f"  {_SIGNS.get(action, action)} {address}", markup=False, highlight=False, soft_wrap=True)
    context.say("It was planned with the credentials of this machine; a run has those of its account.", "dim")


def check(plan: TemplatePlan) -> None:
    """``BadInput`` with each fault that OpenTofu found."""
    if plan.faults:
        raise BadInput("\n".join(_location_text(fault) + fault.detail for fault in plan.faults))


def run_of(plan: Plan) -> Mapping[str, Any]:
    """The run of the plan. ``BadInput`` says why there is none, in the words of the API."""
    if plan.run is not None:
        return plan.run
    details = [str(line.get("detail")) for line in plan.warnings if isinstance(line, dict)]
    raise BadInput(f"There is no run to plan. {details[-1] if details else ''}".strip())


def _location_text(fault: TemplateFault) -> str:
    return f"{fault.file} line {fault.line}: " if fault.file and fault.line else ""


def _lines(printed: str) -> Iterator[Mapping[str, Any]]:
    """The lines that are JSON objects."""
    for line in printed.splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict):
            yield document
