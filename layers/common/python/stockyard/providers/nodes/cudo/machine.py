"""A claim's machine: made by the first option that Cudo has room for, looked at, switched, ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stockyard.domain.nodes.node_types import ANY
from stockyard.domain.records import PlacementOption, Resource
from stockyard.domain.values.states import DesiredPower, MachineState
from stockyard.errors import (
    InsufficientCapacity,
    NodeCouldNotBeProvisioned,
    VendorQuotaExceeded,
    VendorRefused,
)
from stockyard.machines import node
from stockyard.ports import Ledger, Outcome
from stockyard.ports.node_work import Machine, NodeWork
from stockyard.providers.clouds.cudo import names, values
from stockyard.providers.clouds.cudo.making import MACHINE, MACHINE_SECONDS, POLL_SECONDS, TTL_SECONDS, Reconciler
from stockyard.providers.clouds.cudo.sizing import Size
from stockyard.providers.clouds.cudo.values import NewVm, Vm
from stockyard.providers.nodes.cudo.configuration import CudoNodesConfig, disk_gib
from stockyard.providers.nodes.cudo.node_class import NodeClass
from stockyard.providers.nodes.cudo.types import of_type_name, type_name

REBOOT = "reboot"
"""A line of the ledger: an operation has rebooted the machine."""
_STATES: dict[str, MachineState] = {
    values.PENDING: "starting",
    values.READY: "running",
    values.STOPPED: "stopped",
    values.FAILED: "gone",
    values.ABSENT: "gone",
}
"""A machine that has failed never comes back, so it is as lost as one that is gone."""
_MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class Launch:
    """One try to launch one claim's machine."""

    reconciler: Reconciler
    work: NodeWork
    config: CudoNodesConfig
    node_class: NodeClass

    def run(self) -> Outcome:
        """Done when the machine is on and kept. ``InsufficientCapacity`` names all that was refused."""
        vm_id = self._vm_id()
        options = self._options()
        refused: list[tuple[str, str, str]] = []
        own: list[tuple[str, str, str]] = []
        code = hint = ""
        for option in options:
            try:
                vm = self.reconciler.machine(self._new_vm(vm_id, option), self._with_first_boot)
            except (InsufficientCapacity, VendorQuotaExceeded) as error:
                code = error.code
                refused.append(
                    (option.type_of(self.work.provider.name), option.capacity_type, self.node_class.data_center)
                )
                if isinstance(error, VendorQuotaExceeded):
                    own.append(refused[-1])
                    hint = f" {error.detail} {error.hint}"
                continue
            if vm is None:
                return Outcome(False, f"Machine {vm_id} is coming up.", MACHINE_SECONDS)
            return self._launched(vm, option.capacity_type)
        tried = list(dict.fromkeys(name for name, _, _ in refused))
        more = ", ..." if len(tried) > _MAX_NAMES else ""
        raise InsufficientCapacity(
            f"Cudo has no room in {self.node_class.data_center} for {', '.join(tried[:_MAX_NAMES])}{more}.{hint}",
            code=code,
            refused=refused,
            own=own,
        )

    def _options(self) -> tuple[PlacementOption, ...]:
        placed, there = self.work.claim.placement, self.node_class.data_center
        if placed is None:
            raise NodeCouldNotBeProvisioned("The claim is not placed.")
        options = tuple(option for option in placed.options if there in option.zones or ANY in option.zones)
        if not options:
            raise NodeCouldNotBeProvisioned(f"The claim is placed outside {there}, where its cluster's network is.")
        return options

    def _vm_id(self) -> str:
        """Id of the machine which an earlier try has announced, else a new one: it is of this claim and attempt alone,
        so that it never meets a machine that is still being ended."""
        line = machine_line(self.reconciler.ledger)
        if line is not None:
            return line.key
        claim, cluster = self.work.claim, self.work.cluster
        suffix = claim.id.rpartition("_")[2].lower()
        client_id = cluster.client_id if cluster is not None else ""
        return names.name(self.config.name_prefix, client_id, f"{names.NODE}-{suffix}-{claim.attempt}")

    def _new_vm(self, vm_id: str, option: PlacementOption) -> NewVm:
        parts = of_type_name(option.type_of(self.work.provider.name), disk_gib(self.work.provider))
        if parts is None:
            raise NodeCouldNotBeProvisioned(f"{option.type} is no size of a machine type of Cudo.")
        machine_type, size = parts
        return NewVm(
            id=vm_id,
            data_center=self.node_class.data_center,
            machine_type=machine_type,
            vcpus=size.vcpus,
            memory_gib=size.memory_gib,
            gpus=size.gpus,
            boot_disk_gib=size.disk_gib,
            image=self._image(size),
            start_script="",
            metadata={**(self.work.cluster.tags if self.work.cluster else {}), **self.reconciler.marks},
            security_groups=(self.node_class.security_group,),
            network=self.node_class.network,
            ttl_seconds=TTL_SECONDS,
        )

    def _image(self, size: Size) -> str:
        image = self.node_class.gpu_image if size.gpus else self.node_class.image
        if not image:
            raise VendorRefused("Cudo lists no image with NVIDIA's driver.", hint="Ask Cudo which images it has.")
        return image

    def _with_first_boot(self, new_vm: NewVm) -> NewVm:
        """Pack the user data of the machine, which is done only when it is really made."""
        work, cluster = self.work, self.work.cluster
        if cluster is None:
            raise NodeCouldNotBeProvisioned("A node on Cudo joins a cluster; the claim names none.")
        script = node.first_boot_by_token(self.config, cluster, work.claim.id, work.machine_token).script()
        return replace(new_vm, start_script=script)

    def _launched(self, vm: Vm, capacity_type: str) -> Outcome:
        """Result of the launch, as Cudo shows the machine: an earlier try may have made it by another option."""
        size = Size(vm.vcpus, vm.memory_gib, 0, vm.gpus)
        name = f"{self.work.provider.name}.{type_name(vm.machine_type, size)}"
        facts = {"machine_id": vm.id, "type": name, "capacity_type": capacity_type, "zone": vm.data_center}
        return Outcome(True, f"{vm.id} ({name}) was launched in {vm.data_center}.", facts=facts)


def machine_line(ledger: Ledger) -> Resource | None:
    """The ledger line of the claim's machine; None when none is announced."""
    lines: Iterable[Resource] = ledger.lines()
    return next((line for line in lines if line.kind == MACHINE), None)


def look(reconciler: Reconciler) -> Machine:
    """The machine as Cudo has it."""
    line = machine_line(reconciler.ledger)
    if line is None or line.state != "made":
        return Machine("absent")
    vm = reconciler.cudo.vm(line.key)
    if vm is None:
        return Machine("gone", line.key)
    return Machine(_STATES[vm.state], line.key, zone=vm.data_center)


def power(reconciler: Reconciler, state: DesiredPower, operation: str) -> Outcome:
    """Start, stop or reboot it; not done until Cudo says so. An operation reboots once."""
    now = look(reconciler)
    if now.state in ("absent", "gone"):
        raise NodeCouldNotBeProvisioned("The claim has no machine.")
    if state == "Reboot":
        line = reconciler.ledger.intend(REBOOT, operation)
        if line.state != "made":
            reconciler.cudo.reboot_vm(now.machine_id)
            reconciler.ledger.made(line, now.machine_id)
        return Outcome(True, f"{now.machine_id} was rebooted.", facts={"power": "On"})
    if now.state == {"On": "running", "Off": "stopped"}[state]:
        return Outcome(True, f"{now.machine_id} is {state}.", facts={"power": state})
    if state == "On" and now.state == "stopped":
        reconciler.cudo.start_vm(now.machine_id)
    if state == "Off" and now.state == "running":
        reconciler.cudo.stop_vm(now.machine_id)
    return Outcome(False, f"{now.machine_id} is {now.state}.", POLL_SECONDS)


def terminate(reconciler: Reconciler) -> Outcome:
    """End the machine; done when Cudo shows it no more."""
    for line in reconciler.ledger.lines():
        if line.kind == REBOOT:
            reconciler.ledger.gone(line)
    return reconciler.unmake()
