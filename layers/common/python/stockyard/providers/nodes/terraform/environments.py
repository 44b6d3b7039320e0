"""Outputs of the stages of an environment, and runs of another claim of the cluster that count for this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stockyard.domain.run_records import ProviderRun
from stockyard.domain.values import times
from stockyard.domain.values.conditions import Condition
from stockyard.domain.values.states import Truth
from stockyard.ports.node_work import EnvironmentWork
from stockyard.providers.nodes.terraform.running import ERRORS, Running
from stockyard.providers.nodes.terraform.templates import KUBERNETES, ONLY, Template, stages_of

_SECRET = re.compile(r"""["']?(?:client-key-data|token|password)["']?:\s*["']?([^\s"',}]+)""")
"""Entries of a kubeconfig that let somebody in, in YAML or JSON."""


class Outputs:
    """Outputs as the environment keeps them: those of the old form by their names, those of stages below the stage.
    Secret ones have a name of their own, ``stage.name``."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.secret: set[str] = set()
        self.by_stage: dict[str, dict[str, Any]] = {}

    def add(self, stage: str, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the outputs of a stage, as ``tofu output -json`` has them."""
        self.by_stage[stage] = {name: output.get("value") for name, output in outputs.items()}
        for name, output in outputs.items():
            value = output.get("value")
            if output.get("sensitive"):
                key = name if stage == ONLY else f"{stage}.{name}"
                self.values[key] = value
                self.secret.add(key)
            elif stage == ONLY:
                self.values[name] = value
            else:
                self.values.setdefault(stage, {})[name] = value


def conditions_of(running: Running, work: EnvironmentWork) -> list[Condition]:
    """Conditions of each stage: whether it stands, and whether as the document says."""
    conditions: list[Condition] = []
    for stage, template in stages_of(work.provider):
        prefix = "Kubernetes" if stage == KUBERNETES else ""
        workspace = f"{work.environment.id}/{stage}"
        state, run = running.runs.state(workspace), running.runs.current(workspace)
        stands = state is not None and state.is_applied
        fingerprint = template.stage_fingerprint({**work.provider.properties, **work.environment.properties})
        now = times.to_text(work.now)
        for name, (status, reason, message) in (
            ("Provisioned", _provisioned(run, stands=stands)),
            ("Synced", _synced(run, template, fingerprint, stands=stands)),
        ):
            conditions.append(Condition(f"{prefix}{name}", status, reason, message, now))
    return conditions


Aspect = tuple[Truth, str, str]
"""Status, reason and message of a condition."""


def _provisioned(run: ProviderRun | None, *, stands: bool) -> Aspect:
    if stands:
        return "True", "Applied", "The template is applied."
    if run is None or run.command != "apply":
        return "Unknown", "Pending", "It was not applied yet."
    if run.status != "ended":
        return "Unknown", "InProgress", f"The run {run.name}-{run.number} is under way."
    return "False", ERRORS[run.end or "lost"], run.error or "The run failed."


def _synced(run: ProviderRun | None, template: Template, fingerprint: str, *, stands: bool) -> Aspect:
    if run is None or run.command != "apply":
        return "Unknown", "Pending", "It was not applied yet."
    if run.status != "ended":
        return "Unknown", "InProgress", f"The run {run.name}-{run.number} is under way."
    if run.end != "done" or not stands:
        return "False", ERRORS.get(run.end or "lost", "RunFailed"), run.error or "The run failed."
    if run.fingerprint is not None and run.fingerprint != fingerprint:
        return "False", "TemplateChanged", "The template or the properties are others than were applied."
    if template.moving_source is not None and template.head is not None and run.commit not in (None, template.head):
        moved = f"from {str(run.commit)[:12]} to {template.head[:12]}"
        return "False", "TemplateMoved", f"{template.moving_source.name} has moved {moved}."
    return "True", "Synced", "What was applied is what the document says."


def accepted(running: Running, work: EnvironmentWork, workspace: str) -> ProviderRun | None:
    """The last run on the stage where it counts for this work: it is done, and newer than what made the environment
    look again. None: the work goes on with a run, a new one or the one that is under way."""
    current = running.runs.current(workspace)
    if current is None or current.command != "apply" or current.end != "done":
        return None
    is_first = work.environment.phase != "Available"
    return current if is_first or current.created_at >= work.environment.updated_at else None


def kubeconfig_of(work: EnvironmentWork, workspace: str) -> dict[str, str]:
    """The part of a task by which the second stage reaches the cluster; nothing of another stage, and of a cluster
    whose control plane has sent no kubeconfig."""
    if not workspace.endswith(f"/{KUBERNETES}"):
        return {}
    kubeconfig = work.kubeconfig()
    return {} if kubeconfig is None else {"kubeconfig": kubeconfig}


def secrets_in(kubeconfig: str | None) -> tuple[str, ...]:
    """Values of a kubeconfig that no log may show."""
    return tuple(dict.fromkeys(match[1] for match in _SECRET.finditer(kubeconfig or "")))
