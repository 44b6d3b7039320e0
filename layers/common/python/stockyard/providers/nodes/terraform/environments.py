"""Outputs of the stages of an environment, and runs of another claim of the cluster that count for this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stockyard.domain.run_records import ProviderRun
from stockyard.ports.node_work import EnvironmentWork
from stockyard.providers.nodes.terraform.running import Running
from stockyard.providers.nodes.terraform.templates import ONLY


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


def accepted(running: Running, work: EnvironmentWork, workspace: str) -> ProviderRun | None:
    """The last run on the stage where it counts for this work: it is done, and newer than what made the environment
    look again. None: the work goes on with a run, a new one or the one that is under way."""
    current = running.runs.current(workspace)
    if current is None or current.command != "apply" or current.end != "done":
        return None
    is_first = work.environment.phase != "Available"
    return current if is_first or current.created_at >= work.environment.updated_at else None
