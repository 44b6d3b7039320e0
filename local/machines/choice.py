"""Program that a machine's user data asks for."""

from __future__ import annotations

from pathlib import Path

from local.kubernetes.clusters import Clusters
from local.machines.members import Member, is_member
from local.machines.programs import (
    MACHINE,
    MACHINE_CONFIG,
    NODE,
    NODE_CONFIG,
    ControlPlane,
    MachineSandbox,
    Program,
    Worker,
)


def program_of(sandbox: MachineSandbox, clusters: Clusters) -> Program | None:
    """Program that the machine's user data makes it run; None for a machine that is not ours."""
    names = {Path(path).name for path in sandbox.files}
    if MACHINE_CONFIG in sandbox.files and MACHINE in names:
        return ControlPlane(sandbox, clusters)
    if NODE_CONFIG in sandbox.files and {MACHINE, NODE} <= names:
        return Member(sandbox, clusters) if is_member(names) else Worker(sandbox, clusters)
    return None
