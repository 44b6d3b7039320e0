"""Machines: an instance that boots runs the programs in its user data.

So bootstrap, token, report and join are what a real machine would send; see :mod:`local.machines.programs`.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.iam.models import iam_backends

from local.aws.corrections.eks.eks import eks_backends
from local.aws.corrections.eks.node_groups import CLUSTER_TAG, GROUP_TAG
from local.aws.corrections.eks.scaling_groups import LOCK
from local.aws.corrections.roles import AccessDenied, service_session
from local.aws.corrections.scarcity import OUTAGE
from local.fault_plan import MachinePlan
from local.kubernetes.cluster import HOPS, Kubelet
from local.kubernetes.clusters import Clusters
from local.kubernetes.managed import ManagedClusters
from local.machines.booted import TERMINATED, Machine, MachineWatch
from local.machines.choice import program_of
from local.machines.configured_nodes import ConfiguredNode, node_config
from local.machines.managed_nodes import GroupNode, ManagedNode
from local.machines.members import Member
from local.machines.metadata import InstanceData, Metadata
from local.machines.programs import ControlPlane, MachineSandbox, cloud_init_files
from local.machines.snapshots import Snapshots
from stockyard.domain.values.ids import CLUSTER

TAG = "stockyard:resource"


class Machines(MachineWatch):
    """Watches the instances of some accounts, and boots each new instance with our tag.

    ``plan`` says how long an instance takes to boot and how many instances never report. Their output goes to ``log``,
    their files below ``folder``; ``store`` is the URL of S3. With ``managed`` those of EKS's node groups, and those
    that start with a NodeConfig, become nodes of its clusters.
    """

    def __init__(
        self,
        accounts: tuple[str, ...],
        log: Path,
        folder: Path,
        clusters: Clusters,
        plan: MachinePlan | None = None,
        managed: ManagedClusters | None = None,
        store: str = "",
    ) -> None:
        super().__init__("machines")
        self._managed, self._store = managed, store
        self._accounts, self._log, self._clusters = accounts, log, clusters
        self._folder = folder
        self._plan = plan or MachinePlan()
        self._silent, self._interrupted = self._plan.silent, self._plan.interrupted
        self._maintained = self._plan.maintained
        self._metadata = Metadata()

    def close(self) -> None:
        """Switch every machine off, and stop their metadata."""
        super().close()
        self._metadata.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def interrupt(self, instance_id: str, seconds: float) -> None:
        """The cloud takes a machine back: the machine can read so from now on, and ends after ``seconds``.

        Raises ``KeyError`` for an instance that is not one of ours.
        """
        end = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        action = json.dumps({"action": "terminate", "time": end})
        self._metadata.data(instance_id).notices["spot/instance-action"] = action
        self._later(seconds, lambda: self._take_back(instance_id))

    def maintain(self, instance_id: str) -> None:
        """The cloud schedules maintenance of a machine in a week, as the machine can read from now on.

        Raises ``KeyError`` for an instance that is not one of ours.
        """
        begin = (datetime.now(UTC) + timedelta(days=7)).strftime("%d %b %Y %H:%M:%S GMT")
        event = {"Code": "instance-retirement", "NotBefore": begin, "State": "active"}
        self._metadata.data(instance_id).notices["events/maintenance/scheduled"] = json.dumps([event])

    def _take_back(self, instance_id: str) -> None:
        for account in self._accounts:
            for backend in _regions(account).values():
                if any(instance.id == instance_id for instance in backend.all_running_instances()):
                    backend.terminate_instances([instance_id])

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        def wait() -> None:
            if not self._stop.wait(seconds):
                action()

        threading.Thread(target=wait, daemon=True, name="interruption").start()

    def look(self) -> None:
        """See ``MachineWatch``."""
        for account in self._accounts:
            for region, backend in _regions(account).items():
                if self._managed is not None:
                    self._managed.look(account, region)
                for reservation in list(backend.reservations.values()):
                    for instance in reservation.instances:
                        if instance.placement.zone in OUTAGE.zones and instance.state not in TERMINATED:
                            backend.terminate_instances([instance.id])
                        self._look(account, instance)

    def _look(self, account: str, instance: Any) -> None:
        state = instance.state
        machine = self._machines.get(instance.id)
        if machine is not None:
            machine.tell(state)
            if isinstance(machine.program, ManagedNode):
                machine.program.look()
            if state in TERMINATED:
                del self._machines[instance.id]
        elif instance.id in self._seen or state != "running":
            return
        elif GROUP_TAG in _tags(instance) and self._managed is not None:
            self._seen.add(instance.id)
            keys = partial(_node_keys, account, instance)
            self._boot_managed(instance, self._group_node(account, instance, self._managed), keys)
        elif TAG in _tags(instance):
            # An instance without the tag is checked again, because moto shows an instance before its tags.
            self._seen.add(instance.id)
            self._boot(account, instance)

    def _group_node(self, account: str, instance: Any, managed: ManagedClusters) -> ManagedNode:
        node_fields = (account, _region(instance), instance, self._managed_kubelet(instance), managed, self._log)
        return GroupNode(*node_fields, _tags(instance))

    def _managed_kubelet(self, instance: Any) -> Kubelet:
        """Kubelet of a machine of EKS, whose pods can ask for its metadata too: two hops are what EKS gives its
        groups."""
        programs = partial(self._programs, instance.id, hops=2)
        return replace(_kubelet(instance, programs), gpus=_gpus(instance.instance_type))

    def _boot_managed(
        self, instance: Any, node: ManagedNode, keys: Callable[[str], tuple[str, dict[str, str]]]
    ) -> None:
        """A machine of a cluster of EKS, which has no script of ours. ``keys`` are those of its role, by the region."""
        if self._silent:
            self._silent -= 1
            return
        region = _region(instance)
        data = InstanceData(region, partial(keys, region), instance.id, str(instance.placement.zone), lambda: None)
        kind, architecture = _kind(instance)
        self._metadata.add(instance.id, replace(data, type=kind, architecture=architecture))
        machine = Machine(instance.id, self._plan.boot_seconds, lambda: self._metadata.remove(instance.id))
        machine.program = node
        self._machines[instance.id] = machine
        machine.start()

    def _boot(self, account: str, instance: Any) -> None:
        if not instance.user_data:
            return
        config = node_config(instance.user_data) if self._managed is not None else None
        if config is not None and self._managed is not None:
            there = (account, _region(instance), instance, self._managed_kubelet(instance), self._managed, self._log)
            role = partial(_role_arn, account, instance)
            self._boot_managed(
                instance, ConfiguredNode(*there, config, role), partial(_profile_keys, account, instance)
            )
            return
        if self._silent:
            self._silent -= 1
            return

        def tags() -> dict[str, str] | None:
            return _tags(instance) if instance.metadata_options.instance_metadata_tags == "enabled" else None

        region = _region(instance)
        keys = partial(_profile_keys, account, instance, region)
        life_cycle = instance.lifecycle or "on-demand"
        data = InstanceData(region, keys, instance.id, str(instance.placement.zone), tags, life_cycle, *_kind(instance))
        self._metadata.add(instance.id, data)
        if life_cycle == "spot" and self._interrupted:
            self._interrupted -= 1
            after, warning = self._plan.interrupted_after, self._plan.warning_seconds
            self._later(after, lambda: self.interrupt(instance.id, warning))
        elif life_cycle != "spot" and self._maintained and not _tags(instance)[TAG].startswith(CLUSTER):
            self._maintained -= 1
            self._later(self._plan.interrupted_after, lambda: self.maintain(instance.id))
        files = cloud_init_files(instance.user_data)
        folder, url = self._folder / instance.id, f"{self._metadata.url}/{instance.id}"

        timers: list[Snapshots] = []

        def clear() -> None:
            for timer in timers:
                timer.end()
            self._metadata.remove(instance.id)
            shutil.rmtree(folder, ignore_errors=True)

        machine = Machine(instance.id, self._plan.boot_seconds, clear)
        kubelet = partial(_kubelet, instance, partial(self._programs, instance.id))
        sandbox = MachineSandbox(instance.id, machine, kubelet, folder, url, self._log, files, self._store)
        program = machine.program = program_of(sandbox, self._clusters)
        if isinstance(program, (ControlPlane, Member)):
            timer = Snapshots(sandbox, program, self._plan.snapshot_seconds)
            timers.append(timer)
            timer.start()
        if machine.program is not None:
            self._machines[instance.id] = machine
            machine.start()

    def _programs(self, instance_id: str, hops: int = 1) -> dict[str, str]:
        """Environment for programs that were written for AWS, on a machine; nothing on one that is gone. ``hops``: how
        far its metadata's answers go."""
        try:
            metadata = self._metadata.own_url(instance_id)
        except KeyError:
            return {}
        endpoints = {"AWS_ENDPOINT_URL": self._store, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
        return {**endpoints, HOPS: str(hops)} if hops > 1 else endpoints


def _regions(account: str) -> dict[str, Any]:
    """EC2 of an account, by the regions in which anything was asked for."""
    return dict(ec2_backends[account])


def _region(instance: Any) -> str:
    return str(instance.ec2_backend.region_name)


def _kubelet(instance: Any, programs: Callable[[], dict[str, str]] = dict) -> Kubelet:
    """Kubelet with the facts that the instance tells of itself."""
    kind = INSTANCE_TYPES.get(instance.instance_type, {})
    return Kubelet(
        f"aws:///{instance.placement.zone}/{instance.id}",
        kind.get("VCpuInfo", {}).get("DefaultVCpus", 2),
        kind.get("MemoryInfo", {}).get("SizeInMiB", 4096),
        "arm64" if _kind(instance)[1] == "arm64" else "amd64",
        str(instance.private_ip or ""),
        programs=programs,
        gpus=_gpus(instance.instance_type) if _has_driver(instance) else 0,
    )


def _has_driver(instance: Any) -> bool:
    """Whether the instance started from an image with NVIDIA's driver, as the image's name says."""
    image = instance.ec2_backend.amis.get(instance.image_id)
    return image is not None and "nvidia" in str(image.name).lower()


def _kind(instance: Any) -> tuple[str, str]:
    """The instance's type and architecture."""
    kind = INSTANCE_TYPES.get(instance.instance_type, {})
    return str(instance.instance_type), str(kind.get("ProcessorInfo", {}).get("SupportedArchitectures", ["x86_64"])[0])


def _gpus(kind: str) -> int:
    """Number of GPUs of NVIDIA that machines of a type have."""
    gpus = INSTANCE_TYPES.get(kind, {}).get("GpuInfo", {}).get("Gpus", [])
    return sum(int(gpu["Count"]) for gpu in gpus if gpu["Manufacturer"] == "NVIDIA")


def _tags(instance: Any) -> dict[str, str]:
    # Its own ``get_tags`` walks through the tags of all resources, which change meanwhile.
    return dict(instance.ec2_backend.tags.get(instance.id, {}))


def _profile_keys(account: str, instance: Any, region: str) -> tuple[str, dict[str, str]]:
    """Name of the instance's role and keys of a session of it, named after the instance."""
    role = _role(account, instance)
    if role is None:
        raise AccessDenied(instance.id, "(the instance has no profile)")
    return role.name, service_session(role.arn, "ec2.amazonaws.com", instance.id, region)


def _node_keys(account: str, instance: Any, region: str) -> tuple[str, dict[str, str]]:
    """The same for a machine of a managed group: its profile is EKS's, with the group's role."""
    tags = _tags(instance)
    with LOCK:
        cluster = eks_backends[account][region].clusters.get(tags[CLUSTER_TAG])
        group = cluster.groups.get(tags[GROUP_TAG]) if cluster is not None else None
    if group is None:
        raise AccessDenied(instance.id, "(its group is gone)")
    arn = str(group.document["nodeRole"])
    return arn.rpartition("/")[2], service_session(arn, "ec2.amazonaws.com", instance.id, region)


def _role_arn(account: str, instance: Any) -> str:
    role = _role(account, instance)
    return "" if role is None else str(role.arn)


def _role(account: str, instance: Any) -> Any:
    """The role of the instance's profile; None without one."""
    profile = instance.iam_instance_profile or {}
    profiles = {profile.get("Arn"), profile.get("Name")} - {None}
    # moto keeps a profile that was associated after the launch in another place.
    later = ec2_backends[account][_region(instance)].iam_instance_profile_associations.get(instance.id)
    if later is not None:
        profiles.add(later.iam_instance_profile.arn)
    for profile_of_account in iam_backends[account]["aws"].instance_profiles.values():
        if profiles & {profile_of_account.arn, profile_of_account.name} and profile_of_account.roles:
            return profile_of_account.roles[0]
    return None
