"""Program that a machine's user data asks for."""

from __future__ import annotations

from pathlib import Path

from local.kubernetes.clusters import Clusters
from local.machines.members import Member, is_member
from local.machines.programs import MACHINE, MACHINE_CONFIG, NODE, NODE_CONFIG, ControlPlane, Place, Program, Worker


def program_of(place: Place, clusters: Clusters) -> Program | None:
    """Program that the machine's user data makes it run; None for a machine that is not ours."""
    names = {Path(path).name for path in place.files}
    if MACHINE_CONFIG in place.files and MACHINE in names:
        return ControlPlane(place, clusters)
    if NODE_CONFIG in place.files and {MACHINE, NODE} <= names:
        return Member(place, clusters) if is_member(names) else Worker(place, clusters)
    return None
