"""Machines of the simulated Cudo: one that is on runs the programs that its start script unpacks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.fault_plan import MachinePlan
from local.kubernetes.cluster import Kubelet
from local.kubernetes.clusters import Clusters
from local.machines.booted import Machine, MachineWatch
from local.machines.choice import program_of
from local.machines.programs import MachineSandbox, script_files

if TYPE_CHECKING:
    from local.cudo.api import SimulatedCudo

START_SCRIPT = "start-script"
"""The file that keeps a machine's start script in its folder, for as long as it is there."""
_STATES = {"ACTIVE": "running", "STOPPED": "stopped", "DELETING": "terminated"}
_MIB = 1024


class VirtualMachines(MachineWatch):
    """Watches all projects of a Cudo. ``cudo`` gives it, or None while nobody has called it.

    ``plan`` says how long a machine takes to boot and how many never report.
    """

    def __init__(
        self,
        cudo: Callable[[], SimulatedCudo | None],
        log: Path,
        folder: Path,
        clusters: Clusters,
        plan: MachinePlan | None = None,
    ) -> None:
        super().__init__("virtual machines")
        self._cudo, self._log, self._folder, self._clusters = cudo, log, folder, clusters
        self._plan = plan or MachinePlan()
        self._silent = self._plan.silent

    def look(self) -> None:
        """See ``MachineWatch``."""
        cudo = self._cudo()
        if cudo is not None:
            self._look(cudo.machines())

    def _look(self, documents: dict[str, dict[str, Any]]) -> None:
        for key, document in documents.items():
            state = _STATES.get(document["state"], "pending")
            if key in self._machines:
                self._machines[key].tell(state)
            elif key not in self._seen and state == "running":
                self._seen.add(key)
                self._boot(key, document)
        for key in [key for key in self._machines if key not in documents]:
            self._machines.pop(key).tell("terminated")

    def _boot(self, key: str, document: dict[str, Any]) -> None:
        if self._silent:
            self._silent -= 1
            return
        folder = self._folder / key.replace("/", "-")
        machine = Machine(key, self._plan.boot_seconds, partial(shutil.rmtree, folder, ignore_errors=True))
        kubelet = Kubelet(
            "",
            int(document["vcpus"]),
            int(document["memory"]) * _MIB,
            address=document["internalIpAddress"],
            gpus=int(document["gpuQuantity"]),
        )
        script = document["startScript"]
        files = script_files(script)
        sandbox = MachineSandbox(document["id"], machine, lambda: kubelet, folder, "", self._log, files)
        machine.program = program_of(sandbox, self._clusters)
        if machine.program is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / START_SCRIPT).write_text(script, encoding="utf-8")
            self._machines[key] = machine
            machine.start()
