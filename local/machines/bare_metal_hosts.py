"""Hosts of bare metal of a local cloud's site: their operator, and what a host does that has its image and is on."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from email import message_from_string
from functools import partial
from pathlib import Path
from typing import Any

from local.bare_metal import ROOT, BareMetalOperator, Seconds
from local.kubernetes.cluster import Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.real.callers import Caller
from local.kubernetes.real.client import Refused
from local.machines.booted import Machine, MachineWatch
from local.machines.choice import program_of
from local.machines.programs import MachineSandbox, script_files

CPUS, MEMORY_MIB = 32, 131_072
"""Room of each host."""
SECONDS = Seconds(provision=2.0, deprovision=2.0)
_BOOT = (0.5, 1.0)


class BareMetalMachines(MachineWatch):
    """Watches all hosts of a cluster, as its administrator ``caller``, and plays their operator."""

    def __init__(self, caller: Caller, log: Path, folder: Path, clusters: Clusters) -> None:
        super().__init__("hosts of bare metal")
        self._caller, self._log, self._folder, self._clusters = caller, log, folder, clusters
        room = {"cpus": CPUS, "memory": MEMORY_MIB}
        self._operator = BareMetalOperator(caller, lambda: datetime.now(UTC), SECONDS, hardware=lambda _: room)

    def look(self) -> None:
        """See ``MachineWatch``."""
        try:
            self._operator.work()
            hosts = self._caller.call("GET", f"{ROOT}/baremetalhosts")["items"]
        except (Refused, OSError):
            return  # the API server starts or ends
        there: set[str] = set()
        for host in hosts:
            status = host.get("status") or {}
            if (status.get("provisioning") or {}).get("state") != "provisioned":
                continue
            key = f"{host['metadata']['name']}-{(host['spec'].get('consumerRef') or {}).get('name', '')}"
            there.add(key)
            state = "running" if status.get("poweredOn") else "stopped"
            if key in self._machines:
                self._machines[key].tell(state)
            elif key not in self._seen and state == "running":
                self._seen.add(key)
                self._boot(key, host)
        for key in self._machines.keys() - there:
            self._machines.pop(key).tell("terminated")

    def _boot(self, key: str, host: Mapping[str, Any]) -> None:
        script = self._script(host)
        if script is None:
            return
        folder = self._folder / key
        machine = Machine(key, _BOOT, partial(shutil.rmtree, folder, ignore_errors=True))
        kubelet = Kubelet(f"metal3://{host['metadata']['namespace']}/{host['metadata']['name']}", CPUS, MEMORY_MIB)
        files = script_files(script)
        sandbox = MachineSandbox(host["metadata"]["name"], machine, lambda: kubelet, folder, "", self._log, files)
        machine.program = program_of(sandbox, self._clusters)
        if machine.program is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._machines[key] = machine
            machine.start()

    def _script(self, host: Mapping[str, Any]) -> str | None:
        """The script in the host's user data; None where it has none that is ours."""
        reference = host["spec"].get("userData")
        if not reference:
            return None
        space = reference.get("namespace") or host["metadata"]["namespace"]
        try:
            secret = self._caller.call("GET", f"/api/v1/namespaces/{space}/secrets/{reference['name']}")
        except Refused:
            return None
        return script_of(base64.b64decode(secret["data"]["userData"]).decode())


def script_of(user_data: str) -> str | None:
    """The script that user data are, or have as their last part."""
    if user_data.startswith("#!"):
        return user_data
    for part in reversed(list(message_from_string(user_data).walk())):
        if part.get_content_type() == "text/x-shellscript":
            return str(part.get_payload(decode=True).decode())  # type: ignore[union-attr]
    return None
