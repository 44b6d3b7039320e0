"""User data for the first boot of a control plane's machine: without any secret, but for the token of a machine to
which its cloud gives no keys.

Values go into ``/etc/stockyard/machine.json``; the programs beside it are constant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stockyard import kubernetes_versions
from stockyard.domain.clusters.control_plane import POD_CIDR
from stockyard.machines import data_disk, manifests, node
from stockyard.machines.cloud_config import (
    FIRST,
    FOLDER,
    LIMIT,
    MACHINE_PATH,
    MEMBER,
    START_PATH,
    File,
    FirstBoot,
    machine_program,
    overlay_files,
    program,
    start_script,
)
from stockyard.machines.data_disk import DiskKey
from stockyard.machines.sources import PUBLIC, Sources

__all__ = ["LIMIT", "START_PATH", "ControlPlaneMachine", "person"]

RENEW_PATH, SNAPSHOT_PATH = f"{FOLDER}/renew.sh", f"{FOLDER}/snapshot.sh"
MEMBER_PATH = f"{FOLDER}/stockyard_member.py"
BACKUP_PROGRAMS = ("stockyard_snapshot.py",)
RESTORE_PROGRAMS = (*BACKUP_PROGRAMS, "stockyard_restore.py")
OVERLAY_PROGRAMS = ("stockyard_overlay.py", "stockyard_overlay_peers.py", "stockyard_overlay_report.py")
"""What machines are given when they need it, because user data has no room for it: so also an older machine takes
snapshots as the newest release does."""
_NEEDS_VOLUME = "RequiresMountsFor=/var/lib/control-plane\n"
_RENEWAL = {
    "/etc/systemd/system/stockyard-renew.service": f"""[Unit]
Description=Renew the certificates of the control plane
ConditionPathExists=/var/lib/stockyard/reported

[Service]
Type=oneshot
ExecStart={RENEW_PATH}
Restart=on-failure
RestartSec=1h
""",
    "/etc/systemd/system/stockyard-renew.timer": """[Timer]
OnCalendar=weekly
RandomizedDelaySec=6h
Persistent=true

[Install]
WantedBy=timers.target
""",
}
"""A machine that was off when its turn came catches up; kubeadm's certificates live for a year."""
_BACKUP_TIMER = """[Timer]
OnCalendar=*:0/15
RandomizedDelaySec=10min

[Install]
WantedBy=timers.target
"""


def _backup(program_path: str) -> dict[str, File]:
    """The units that ask whether a snapshot is due: Stockyard says, since settings change while a machine runs. A
    machine without its cloud's controllers has a role that nodes have too, and takes none."""
    service = f"""[Unit]
Description=Take a snapshot of etcd for S3 when one is due
ConditionPathExists=/var/lib/stockyard/reported

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 {program_path} backup
"""
    unit = "/etc/systemd/system/stockyard-backup"
    return {f"{unit}.service": File(service), f"{unit}.timer": File(_BACKUP_TIMER)}


_UNITS = {
    **_RENEWAL,
    "/etc/systemd/system/stockyard-snapshot.service": f"""[Unit]
Description=Take a snapshot of etcd
{_NEEDS_VOLUME}
[Service]
Type=oneshot
ExecStart={SNAPSHOT_PATH}
Restart=on-failure
RestartSec=5min
""",
    "/etc/systemd/system/stockyard-snapshot.timer": """[Timer]
OnCalendar=0/6:00
RandomizedDelaySec=1h
Persistent=true

[Install]
WantedBy=timers.target
""",
    "/etc/systemd/system/kubelet.service.d/20-volume.conf": f"[Unit]\n{_NEEDS_VOLUME}",
}
CONFIG_PATH = "/etc/stockyard/machine.json"
SCRIPT_PATH = MACHINE_PATH


def given_programs(names: tuple[str, ...]) -> dict[str, str]:
    """The texts of programs, by name, that a machine gets when they are needed."""
    return {name: program(name).text for name in names}


def person(actor: str) -> str | None:
    """The realm's user name of an actor; None for machines, events and names that were not kept letter by letter."""
    kind, _, name = actor.partition(":")
    return name if kind == "user" and re.fullmatch(r"[A-Za-z0-9._@+-]{1,128}", name) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneMachine:
    """A machine of a control plane, as its user data is made from it."""

    api_url: str
    cluster_id: str
    client_id: str
    kubernetes_version: str
    """A minor of ``kubernetes_versions.TESTED``."""
    issuer: str
    tenant: str
    creator: str | None = None
    """The user name that becomes the cluster's first administrator; None for none."""
    volume_tags: Mapping[str, str] | None = None
    """Tags of the volumes of the cloud's controllers; None where these are not installed."""
    volume_key: str | None = None
    """The key of these volumes, as in ``manifests.Controllers``."""
    token: str | None = field(default=None, repr=False)
    """Token of a machine that proves itself by one: see ``ports.clusters.AttestsControlPlane``."""
    disk_key: DiskKey | None = None
    """With it the data disk is encrypted, and a Vault keeps its key."""
    gpu_label: str | None = None
    """The label of nodes with GPUs, which get NVIDIA's device plugin; None for no plugin."""
    takes_pods: bool = False
    """Whether its node takes pods like any other."""
    joins: bool = False
    """Whether the control plane is there, and the machine becomes a further member of it: then it is not told what is
    for the whole cluster."""
    claim_id: str | None = None
    """The claim of a member with a ``token``."""
    overlay: bool = False
    """Whether the cluster has an overlay."""
    sources: Sources = PUBLIC

    def first_boot(self) -> FirstBoot:
        """The user data of the machine."""
        arguments = self.sources.arguments(self.kubernetes_version)
        values = self._values()
        if self.joins:
            return _member(values, self.claim_id, arguments, overlay_files() if self.overlay else {})
        values |= {
            "creator": self.creator or "",
            "pod_cidr": POD_CIDR,
            **({"workloads": "yes"} if self.takes_pods else {}),
        }
        files = {
            CONFIG_PATH: File(json.dumps(values, indent=1, sort_keys=True), "0644" if self.token is None else "0600"),
            SCRIPT_PATH: machine_program(FIRST),
            START_PATH: start_script("control_plane.sh"),
            RENEW_PATH: program("renew.sh"),
            SNAPSHOT_PATH: program("snapshot.sh"),
            **{path: File(text) for path, text in _UNITS.items()},
            **({} if self.volume_tags is None else _backup(MACHINE_PATH)),
            **{path: File(text) for path, text in manifests.files(self._controllers(), self.gpu_label).items()},
            **(data_disk.files(self.disk_key) if self.disk_key is not None else {}),
            **(overlay_files() if self.overlay else {}),
        }
        return FirstBoot(files, "Make this machine a Kubernetes control plane", f"{arguments} {self.sources.manifests}")

    def _values(self) -> dict[str, str]:
        return {
            "api_url": self.api_url.rstrip("/"),
            "client_id": self.client_id,
            "cloud_provider": "" if self.volume_tags is None else "external",
            "cluster_id": self.cluster_id,
            "issuer": self.issuer,
            "kubernetes_version": kubernetes_versions.TESTED[self.kubernetes_version].release,
            "tenant": self.tenant,
            **({} if self.token is None else {"token": self.token}),
        }

    def _controllers(self) -> manifests.Controllers | None:
        if self.volume_tags is None:
            return None
        return manifests.Controllers(self.kubernetes_version, self.client_id, self.volume_tags, self.volume_key)


def _member(
    machine: dict[str, str], claim_id: str | None, arguments: str, more: Mapping[str, File] = MappingProxyType({})
) -> FirstBoot:
    """The key of the authorities is in none of the files: it comes with the answer to the machine's proof."""
    if not machine["cloud_provider"]:
        del machine["cloud_provider"]
    if "token" in machine:
        machine["claim_id"] = claim_id or ""
    files = {
        node.CONFIG_PATH: File(json.dumps(machine, indent=1, sort_keys=True), "0600" if "token" in machine else "0644"),
        MACHINE_PATH: machine_program(MEMBER),
        node.SCRIPT_PATH: program("stockyard_node.py"),
        node.NEAR_PATH: program("stockyard_near.py"),
        MEMBER_PATH: program("stockyard_member.py"),
        START_PATH: start_script("control_plane_join.sh"),
        RENEW_PATH: program("renew.sh"),
        **{path: File(text) for path, text in _RENEWAL.items()},
        **(_backup(MEMBER_PATH) if "cloud_provider" in machine else {}),
        **more,
    }
    return FirstBoot(files, "Make this machine a member of a Kubernetes control plane", arguments)
