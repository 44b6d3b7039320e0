"""The timer of a control plane's machine: it asks whether a snapshot of etcd is due, by its own program."""

from __future__ import annotations

import threading

from local.kubernetes.cluster import InitFailed
from local.machines.etcd import write
from local.machines.members import MEMBER, Member
from local.machines.programs import MACHINE, MACHINE_CONFIG, NODE_CONFIG, ControlPlane, MachineSandbox

FIRST_SECONDS = 6.0
"""Until a machine asks for the first time; a new cluster is ready by then."""


class Snapshots(threading.Thread):
    """Has a member's machine ask each ``seconds`` whether a snapshot is due, as its timer does, while it is on."""

    def __init__(self, sandbox: MachineSandbox, program: ControlPlane | Member, seconds: float) -> None:
        super().__init__(daemon=True, name=f"snapshots of {sandbox.id}")
        self._sandbox, self._program, self._seconds = sandbox, program, seconds
        self._run = (MACHINE_CONFIG, MACHINE) if isinstance(program, ControlPlane) else (NODE_CONFIG, MEMBER)
        self._over = threading.Event()

    def run(self) -> None:
        """Until ``end`` is called."""
        pause = min(FIRST_SECONDS, self._seconds)
        while not self._over.wait(pause):
            cluster = self._program.cluster
            pause = self._seconds if cluster is not None else pause
            if self._sandbox.power.on and cluster is not None:
                try:
                    write(self._sandbox, cluster)
                except InitFailed as reason:
                    self._sandbox.say(str(reason))
                    continue
                self._sandbox.run(*self._run, "backup")

    def end(self) -> None:
        """The machine is gone."""
        self._over.set()
