"""Hosts of the simulated head node: one whose installation has ended runs the programs that its finalize script has
unpacked."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from local.bcm.head_node import HeadNode
from local.fault_plan import MachinePlan
from local.kubernetes.cluster import Kubelet
from local.kubernetes.clusters import Clusters
from local.machines.booted import Machine, MachineWatch
from local.machines.choice import program_of
from local.machines.programs import MachineSandbox, script_files

_MIB = 2**20


class MetalHosts(MachineWatch):
    """Watches the hardware of one head node. Each wipe ends the machine that ran there before."""

    def __init__(
        self, head_node: HeadNode, log: Path, folder: Path, clusters: Clusters, plan: MachinePlan | None = None
    ) -> None:
        super().__init__("hosts of metal")
        self._head_node, self._log, self._folder, self._clusters = head_node, log, folder, clusters
        self._plan = plan or MachinePlan()

    def look(self) -> None:
        """See ``MachineWatch``."""
        self._head_node.work()
        there = set()
        for uuid, hardware in list(self._head_node.hardware.items()):
            key = f"{uuid}-{hardware.wipes}"
            there.add(key)
            state = {"UP": "running", "DOWN": "stopped"}.get(hardware.status, "pending")
            if key in self._machines:
                self._machines[key].tell(state if state != "pending" else "stopped")
            elif key not in self._seen and state == "running":
                self._seen.add(key)
                self._boot(key, uuid, list(hardware.scripts))
        for key in [key for key in self._machines if key not in there]:
            self._machines.pop(key).tell("terminated")

    def _boot(self, key: str, uuid: str, scripts: list[str]) -> None:
        files = {path: text for script in scripts for path, text in script_files(script).items()}
        if not files:
            return
        entity, information = self._head_node.devices[uuid], self._head_node.information[uuid]
        folder = self._folder / key
        machine = Machine(key, self._plan.boot_seconds, partial(shutil.rmtree, folder, ignore_errors=True))
        kubelet = Kubelet(
            "",
            int(information["cores"]),
            int(information["memory"]) // _MIB,
            address=entity["interfaces"][0]["ip"],
            gpus=len(information["gpus"]),
        )
        sandbox = MachineSandbox(entity["hostname"], machine, lambda: kubelet, folder, "", self._log, files)
        machine.program = program_of(sandbox, self._clusters)
        if machine.program is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._machines[key] = machine
            machine.start()
