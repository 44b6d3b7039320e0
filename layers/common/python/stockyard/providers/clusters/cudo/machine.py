"""The phases of the control plane's machine: which type it is, its data disk, and the machine itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stockyard.domain.clusters import overlay
from stockyard.domain.records import Resource
from stockyard.errors import InsufficientCapacity, VendorError, VendorRefused
from stockyard.machines import control_plane as boot
from stockyard.machines.data_disk import DiskKey
from stockyard.ports import CloudWork, Outcome
from stockyard.providers.clouds.cudo import images, sizing
from stockyard.providers.clouds.cudo.labels import GPU_MODEL
from stockyard.providers.clouds.cudo.making import CHOICE, MACHINE_SECONDS, POLL_SECONDS, TTL_SECONDS, Reconciler
from stockyard.providers.clouds.cudo.names import CONTROL_PLANE, DATA, NETWORK, name
from stockyard.providers.clouds.cudo.values import MachineType, NewVm, Vm
from stockyard.providers.clusters.cudo import inspection
from stockyard.providers.clusters.cudo.configuration import (
    API_PORT,
    DATA_DISK_GIB,
    CudoConfig,
    control_plane,
    data_center,
    machine_name,
)


@dataclass(frozen=True, slots=True)
class Machine:
    """One phase of one cluster's machine."""

    reconciler: Reconciler
    work: CloudWork
    config: CudoConfig

    # --- which type -------------------------------------------------------------------------------------------------

    def choose(self) -> Outcome:
        """The types that will do, the cheapest first, and the image: decided once, so that a repeated try makes the
        same. Fact: ``place``. ``InsufficientCapacity`` where no type can be had."""
        line = self.work.ledger.find(CHOICE, CONTROL_PLANE)
        if line is None or line.state != "made":
            request = control_plane(self.work.cluster.settings)
            data_center_id = data_center(self.work.cluster, self.work.account)
            types = self._possible(self.reconciler.cudo.machine_types(), data_center_id)
            gpu = bool(request.gpus)
            image = images.choose(
                self.reconciler.cudo.images(), gpu=gpu, development=self.work.cluster.settings["dev_mode"]
            )
            line = self.reconciler.choice(
                CONTROL_PLANE, {"types": types, "data_center": data_center_id, "image": image}
            )
        data_center_id = str(line.detail["data_center"])
        return Outcome(
            True, f"{' or '.join(line.detail['types'])} in {data_center_id}", facts={"place": data_center_id}
        )

    def _possible(self, offered: Sequence[MachineType], data_center_id: str) -> list[str]:
        request = control_plane(self.work.cluster.settings)
        if request.machine_type is not None:
            faults = [finding.detail for finding in inspection.faults_of(offered, request, data_center_id)]
            if faults:
                raise VendorRefused(" ".join(faults), hint="Correct the control group, then delete the cluster.")
            return [request.machine_type]
        size = inspection.size_of(request)
        possible = [kind for kind in offered if kind.data_center == data_center_id and sizing.can_be_had(kind, size)]
        if not possible:
            raise InsufficientCapacity(inspection.nothing_free(request, data_center_id), code="NoMachineType")
        return [kind.name for kind in sorted(possible, key=lambda kind: (sizing.price(kind, size), kind.name))]

    def _choice(self) -> Resource:
        line = self.work.ledger.find(CHOICE, CONTROL_PLANE)
        if line is None:
            raise VendorRefused("the machine type is not on the ledger", hint="Resume from the machine_type phase.")
        return line

    def data_center(self) -> str:
        """Data center of everything of the cluster: decided with the type, whatever the account names since."""
        return str(self._choice().detail["data_center"])

    # --- its disk ---------------------------------------------------------------------------------------------------

    def disk(self) -> Outcome:
        """The disk with etcd's data, which is the machine's and stays when that is replaced."""
        disk_id = self._name(DATA)
        if self.reconciler.disk(disk_id, self.data_center(), DATA_DISK_GIB) is None:
            return Outcome(False, f"disk {disk_id} is being made", POLL_SECONDS)
        return Outcome(True, f"disk {disk_id} of {DATA_DISK_GIB} GiB")

    # --- the machine ------------------------------------------------------------------------------------------------

    def ensure(self, completed: Callable[[NewVm], NewVm]) -> Outcome:
        """The machine, once it is on and has its addresses. Facts: ``instance_id``, the addresses and the endpoint.

        Where Cudo has no room for a type the next one is tried; when all were refused, the last refusal is raised, and
        a later try begins anew. ``completed`` gives the new machine what is asked for only when it is really made.
        """
        choice = self._choice()
        refused = list(choice.detail.get("refused") or ())
        for kind in [kind for kind in choice.detail["types"] if kind not in refused]:
            try:
                vm = self.reconciler.machine(self._new_vm(choice, kind), completed)
            except InsufficientCapacity as error:
                refused.append(kind)
                choice = self._remembered(choice, refused, error)
                continue
            outcome = self._outcome(vm)
            if outcome.done and refused:
                # A machine that takes the place of this one may have the cheapest type again.
                self.work.ledger.made(choice, choice.key, {"refused": []})
            return outcome
        raise InsufficientCapacity(f"no room for {' or '.join(choice.detail['types'])}", code="NoMachineType")

    def _remembered(self, choice: Resource, refused: list[str], error: VendorError) -> Resource:
        """The choice with the types that were refused; when that is all of them, none is, and the last refusal goes
        on."""
        is_last = len(refused) == len(choice.detail["types"])
        choice = self.work.ledger.made(choice, choice.key, {"refused": [] if is_last else list(refused)})
        if is_last:
            raise error
        return choice

    def _new_vm(self, choice: Resource, kind: str) -> NewVm:
        request, settings = control_plane(self.work.cluster.settings), self.work.cluster.settings
        key = settings["ssh_public_key"]
        return NewVm(
            id=self._name(CONTROL_PLANE),
            data_center=str(choice.detail["data_center"]),
            machine_type=kind,
            vcpus=request.profile.vcpus,
            memory_gib=request.profile.memory_gib,
            boot_disk_gib=request.profile.disk_gib,
            gpus=request.gpus,
            image=str(choice.detail["image"]),
            start_script="",
            metadata={**self.work.cluster.tags, **self.reconciler.marks},
            security_groups=(self._name(CONTROL_PLANE),),
            network=self._name(NETWORK),
            storage_disks=(self._name(DATA),),
            ssh_keys=(key,) if key else (),
            ttl_seconds=TTL_SECONDS,
        )

    def _outcome(self, vm: Vm | None) -> Outcome:
        machine_id = self._name(CONTROL_PLANE)
        facts = {"instance_id": machine_id}
        if vm is None:
            return Outcome(False, f"{machine_id} is starting", MACHINE_SECONDS, facts=facts)
        if not vm.public_address or not vm.private_address:
            return Outcome(False, f"{machine_id} has no addresses yet", POLL_SECONDS, facts=facts)
        facts |= {
            "private_address": vm.private_address,
            "endpoint": f"https://{vm.public_address}:{API_PORT}",
            "machine_endpoint": f"https://{machine_name(self.work.cluster, self.config.dns_suffix)}:{API_PORT}",
        }
        return Outcome(True, f"{machine_id} runs at {vm.public_address}", facts=facts)

    def _name(self, thing: str) -> str:
        return name(self.config.name_prefix, self.work.cluster.client_id, thing)


def with_first_boot(new_vm: NewVm, work: CloudWork, config: CudoConfig, disk_key: DiskKey | None = None) -> NewVm:
    """The new machine with what it does at its first boot; with ``disk_key`` its data disk is encrypted."""
    cluster = work.cluster
    first_boot = boot.ControlPlaneMachine(
        api_url=config.api_url,
        cluster_id=cluster.id,
        client_id=cluster.client_id,
        kubernetes_version=cluster.kubernetes_version,
        issuer=config.issuer,
        tenant=work.tenant,
        creator=boot.person(cluster.created_by),
        token=work.machine_token,
        disk_key=disk_key,
        gpu_label=GPU_MODEL,
        overlay=bool(cluster.settings.get(overlay.SETTING)),
        sources=config.sources,
    ).first_boot()
    return replace(new_vm, start_script=first_boot.script())
