"""Making and unmaking things in a project, with the intent on the ledger before each call.

Ids are chosen by us, so that what an earlier try has made is found by its id; a thing of that id that is not ours stops
everything. Run twice, or by two at once, there is one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from stockyard.domain.records import Resource
from stockyard.domain.values.times import from_text
from stockyard.errors import VendorConflict, VendorError, VendorRefused, VendorTimeout, VendorUnavailable
from stockyard.ports import Ledger, Outcome
from stockyard.providers.clouds.cudo import values
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.marks import are_of_one, marks_of, text
from stockyard.providers.clouds.cudo.values import Disk, Network, NewVm, Rule, Vm

GROUP, DISK, MACHINE, NETWORK = "security_group", "disk", "vm", "network"
CHOICE, DISK_KEY = "choice", "disk_key"
"""Lines of the ledger that nothing in the project stands for: a decision, and a key in a Vault."""
_REMOVAL = (MACHINE, DISK, NETWORK, GROUP, CHOICE)
"""The order in which a removal succeeds. Groups go last: disks and networks have no marks of their own, and are known
by those of their cluster's groups."""
_SHAPE = "shape"
"""In the detail of a line: place and size of a disk, place and range of a network. They carry no marks, so what has the
id and another shape is somebody else's."""
_FAILED = "Delete the cluster or resume."
POLL_SECONDS = 5
MACHINE_SECONDS = 10
TTL_SECONDS = 7200
"""After which Cudo ends a machine by itself that nobody has adopted: longer than any phase that makes one."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """One step for one owner. ``marks`` say whose everything is; ``in_flight_seconds`` is how long a call may still
    take effect whose answer was lost."""

    cudo: Cudo
    ledger: Ledger
    marks: Mapping[str, str]
    now: datetime
    in_flight_seconds: int = 60
    lost: str = field(default="Delete the cluster and create it again; the cloud has lost a part of it.")
    failed: str = _FAILED
    """What a person can do about a thing that has failed."""

    # --- making -----------------------------------------------------------------------------------------------------

    def group(self, group_id: str, data_center: str, rules: Sequence[Rule]) -> str:
        """The security group with exactly these rules; one that is there is given them anew."""
        line = self._intended(GROUP, group_id)
        self._call(line, lambda: self.cudo.put_security_group(group_id, data_center, text(self.marks), rules))
        return self._noted(line)

    def disk(self, disk_id: str, data_center: str, size_gib: int) -> Disk | None:
        """The storage disk once it is ready; None while it is being made. ``VendorRefused`` for one that failed."""
        line = self._intended(DISK, disk_id, {_SHAPE: [data_center, size_gib]})
        disk = self.cudo.disk(disk_id)
        if disk is None:
            self._check_kept(line)
            disk = self._call(line, lambda: self.cudo.create_disk(disk_id, data_center, size_gib))
        elif (disk.data_center, disk.size_gib) != (data_center, size_gib):
            raise VendorConflict(f"There is another disk {disk_id} in the project.", code="ALREADY_EXISTS")
        self._noted(line)
        if disk.state == values.FAILED:
            raise VendorRefused(f"Disk {disk_id} has failed.", code="FAILED", hint=self.failed)
        return disk if disk.state == values.READY else None

    def network(self, network_id: str, data_center: str, cidr: str) -> Network | None:
        """The network once it is there; None while it is being made. ``VendorRefused`` for one that failed."""
        line = self._intended(NETWORK, network_id, {_SHAPE: [data_center, cidr]})
        network = self.cudo.network(network_id)
        if network is None or network.state == values.ABSENT:
            network = self._call(line, lambda: self.cudo.create_network(network_id, data_center, cidr))
        elif (network.data_center, network.cidr) != (data_center, cidr):
            raise VendorConflict(f"There is another network {network_id} in the project.", code="ALREADY_EXISTS")
        self._noted(line)
        if network.state == values.FAILED:
            raise VendorRefused(f"Network {network_id} has failed.", code="FAILED", hint=self.failed)
        return network if network.state == values.READY else None

    def machine(self, new_vm: NewVm, completed: Callable[[NewVm], NewVm] = lambda new_vm: new_vm) -> Vm | None:
        """The machine once it is on; None while it comes up. ``VendorRefused`` for one that failed, at once.

        ``completed`` gives it what is only asked for when it is really made. Until it is on, Cudo ends it by itself
        should nobody come back for it; then it is kept.
        """
        line = self._intended(MACHINE, new_vm.id)
        vm = self.cudo.vm(new_vm.id)
        if vm is None or vm.state == values.ABSENT:
            self._check_kept(line)
            vm = self._call(line, lambda: self.cudo.create_vm(completed(new_vm)))
        elif not are_of_one(vm.metadata, new_vm.metadata):
            raise VendorConflict(f"There is another machine {new_vm.id} in the project.", code="ALREADY_EXISTS")
        self._noted(line)
        if vm.state == values.FAILED:
            raise VendorRefused(f"Machine {new_vm.id} has failed.", code="FAILED", hint=self.failed)
        if vm.state != values.READY:
            return None
        if not line.detail.get("is_kept"):
            self.cudo.keep_vm(new_vm.id)
            self.ledger.made(line, new_vm.id, {**line.detail, "is_kept": True})
        return vm

    def choice(self, key: str, detail: Mapping[str, Any]) -> Resource:
        """Keep a decision on the ledger before anything is made by it; the first decision stays."""
        line = self._intended(CHOICE, key, detail)
        return line if line.state == "made" else self.ledger.made(line, line.key, line.detail)

    def _intended(self, kind: str, key: str, detail: Mapping[str, Any] | None = None) -> Resource:
        line = self.ledger.find(kind, key)
        return line if line is not None and line.state == "made" else self.ledger.intend(kind, key, detail)

    def _noted(self, line: Resource) -> str:
        if line.state != "made":
            self.ledger.made(line, line.key, line.detail)
        return line.key

    def _check_kept(self, line: Resource) -> None:
        """Check that nothing is made again that the ledger has as made and adopted: somebody has removed it, with what
        was on it."""
        if line.state == "made" and line.detail.get("is_kept"):
            raise VendorRefused(f"{line.kind} {line.key} is gone.", hint=self.lost)

    def _call(self, line: Resource, call: Callable[[], Any]) -> Any:
        """Make it. A refusal has made nothing, and the line says so; what may have happened stays intended. So does
        what an earlier try has asked for: its answer may have been lost, and the thing may still come."""
        try:
            return call()
        except (VendorTimeout, VendorUnavailable, VendorConflict):
            raise
        except VendorError:
            if line.state != "made" and line.detail.get("since", line.intended_at) == line.intended_at:
                self.ledger.gone(line)
            raise

    # --- unmaking ---------------------------------------------------------------------------------------------------

    def unmake(self, phase: str | None = None) -> Outcome:
        """Remove the lines of a phase, or all, as far as it goes now. Keys in a Vault are their driver's to remove."""
        own_lines = [line for line in self.ledger.lines(phase) if line.kind in _REMOVAL]
        lines = sorted(own_lines, key=lambda line: _REMOVAL.index(line.kind))
        for index, line in enumerate(lines):
            waiting = self._unmade(line)
            if waiting:
                remaining = tuple(f"{each.kind} {each.key}" for each in lines[index:])
                return Outcome(False, waiting, POLL_SECONDS, remaining=remaining)
        return Outcome(True)

    def _unmade(self, line: Resource) -> str | None:
        """None when the thing is gone for sure, else what is waited for."""
        removals = {
            GROUP: self._without_group,
            DISK: self._without_disk,
            MACHINE: self._without_machine,
            NETWORK: self._without_network,
        }
        waiting = removals[line.kind](line) if line.kind in removals else ""
        age = (self.now - from_text(line.intended_at)).total_seconds()
        if not waiting and line.state != "made" and age < self.in_flight_seconds:
            return f"{line.kind} {line.key} may still be made"
        if not waiting:
            self.ledger.gone(line)
        return waiting

    def _without_group(self, line: Resource) -> str | None:
        group = self.cudo.security_group(line.key)
        if group is None or not are_of_one(marks_of(group.description), self.marks):
            return None
        self.cudo.delete_security_group(line.key)
        return None if self.cudo.security_group(line.key) is None else f"security group {line.key} is being deleted"

    def _without_disk(self, line: Resource) -> str | None:
        disk = self.cudo.disk(line.key)
        if disk is None or _is_another(line, disk.data_center, disk.size_gib):
            return None
        if disk.vm_id:
            # Cudo refuses to delete a disk that a machine has.
            self.cudo.detach_disk(line.key)
        self.cudo.delete_disk(line.key)
        return None if self.cudo.disk(line.key) is None else f"disk {line.key} is being deleted"

    def _without_network(self, line: Resource) -> str | None:
        network = self.cudo.network(line.key)
        if network is None or network.state == values.ABSENT or _is_another(line, network.data_center, network.cidr):
            return None
        self.cudo.delete_network(line.key)
        network = self.cudo.network(line.key)
        return None if network is None or network.state == values.ABSENT else f"network {line.key} is being deleted"

    def _without_machine(self, line: Resource) -> str | None:
        vm = self.cudo.vm(line.key)
        if vm is None or vm.state == values.ABSENT or not are_of_one(vm.metadata, self.marks):
            return None
        self.cudo.terminate_vm(line.key)
        return f"machine {line.key} is being ended"


def _is_another(line: Resource, *shape: object) -> bool:
    return line.state != "made" and list(shape) != line.detail.get(_SHAPE, list(shape))
