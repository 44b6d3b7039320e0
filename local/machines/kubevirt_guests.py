"""Guests of a local cloud's site: KubeVirt's controllers, and what a machine does whose instance runs."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from local.kubernetes.cluster import Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.real.callers import Caller
from local.kubernetes.real.client import Refused
from local.kubevirt import VirtControllers
from local.kubevirt.controllers import ROOT, Seconds, requests
from local.machines.bare_metal_hosts import script_of
from local.machines.booted import Machine, MachineWatch
from local.machines.choice import program_of
from local.machines.programs import MachineSandbox, script_files

SECONDS = Seconds(image=1.0, start=1.0, stop=0.5)
_BOOT = (0.5, 1.0)
_MIB = 2**20


class KubeVirtGuests(MachineWatch):
    """Watches all instances of a cluster, as its administrator ``caller``, and plays KubeVirt's controllers. See
    ``VirtControllers`` for ``on_nodes``."""

    def __init__(self, caller: Caller, log: Path, folder: Path, clusters: Clusters, *, on_nodes: bool = False) -> None:
        super().__init__("virtual machines of KubeVirt")
        self._caller, self._log, self._folder, self._clusters = caller, log, folder, clusters
        self._controllers = VirtControllers(caller, lambda: datetime.now(UTC), SECONDS, on_nodes)

    def look(self) -> None:
        """See ``MachineWatch``."""
        try:
            self._controllers.work()
            machines = self._caller.call("GET", f"{ROOT}/virtualmachines")["items"]
        except (Refused, OSError):
            return  # the API server starts or ends
        there: set[str] = set()
        for machine in machines:
            key = str(machine["metadata"]["uid"])
            there.add(key)
            state = "running" if (machine.get("status") or {}).get("printableStatus") == "Running" else "stopped"
            if key in self._machines:
                self._machines[key].tell(state)
            elif key not in self._seen and state == "running":
                self._seen.add(key)
                self._boot(key, machine)
        for key in self._machines.keys() - there:
            self._machines.pop(key).tell("terminated")

    def _boot(self, key: str, document: Mapping[str, Any]) -> None:
        script = self._script(document)
        if script is None:
            return
        name, folder = document["metadata"]["name"], self._folder / key
        cpus, memory = requests(document["spec"]["template"])
        machine = Machine(key, _BOOT, partial(shutil.rmtree, folder, ignore_errors=True))
        space = document["metadata"]["namespace"]
        kubelet = Kubelet(f"kubevirt://{space}/{name}", max(1, round(cpus)), round(memory / _MIB))
        sandbox = MachineSandbox(name, machine, lambda: kubelet, folder, "", self._log, script_files(script))
        machine.program = program_of(sandbox, self._clusters)
        if machine.program is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._machines[key] = machine
            machine.start()

    def _script(self, document: Mapping[str, Any]) -> str | None:
        """The script in the machine's user data; None where it has none that is ours."""
        volumes = document["spec"]["template"]["spec"].get("volumes") or ()
        sources = [volume["cloudInitNoCloud"] for volume in volumes if "cloudInitNoCloud" in volume]
        name = next((source["secretRef"]["name"] for source in sources if "secretRef" in source), None)
        if name is None:
            return None
        try:
            space = document["metadata"]["namespace"]
            secret = self._caller.call("GET", f"/api/v1/namespaces/{space}/secrets/{name}")
        except Refused:
            return None
        return script_of(base64.b64decode(secret["data"]["userdata"]).decode())
