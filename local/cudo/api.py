"""A Cudo Compute in this process, behind httpx's transport: it takes no request that Cudo's document does not know.

Machines and disks pass through the states that the vendor names, by the clock that it is given. Numbers of 64 bits
come as text and as numbers by turns, because both have been seen. Faults are planned by operation.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from local.cudo.document import Called, Judge, Outside, trimmed
from local.cudo.failure import Failure, scarce
from local.cudo.project import Json, Machine, Plan, Project, StoredDisk, StoredNetwork, check_id, page, stored
from local.cudo.stock import IMAGES, NETWORK, Offered, stock

TTL = re.compile(r"([0-9]+)s", re.ASCII)
OWNER = "owner@cudo.test"
"""Whose all keys are."""


_BY_PROJECT = frozenset({"GetProject", "GetProjectPermissions"})
"""Operations whose ``id`` is a project's."""


class SimulatedCudo:
    """``keys`` are API keys with the projects that each may use."""

    def __init__(
        self,
        keys: Mapping[str, str],
        now: Callable[[], datetime],
        *,
        judge: Judge | None = None,
        machine_seconds: float = 30.0,
        disk_seconds: float = 5.0,
        address_of: Callable[[int], str] | None = None,
    ) -> None:
        self.plan = Plan()
        self.stock: tuple[Offered, ...] = stock()
        self.role = "EDITOR"
        """What the owner of the keys is in every project."""
        self.outside: list[str] = []
        """Requests that the document does not know, and why: there should be none."""
        self.calls: Counter[str] = Counter()
        self.projects: dict[str, Project] = {project: Project() for project in keys.values()}
        self._keys, self._now, self._judge = keys, now, judge or trimmed()
        self._machine_seconds, self._disk_seconds = machine_seconds, disk_seconds
        self._address_of = address_of or (lambda number: f"198.51.{number // 250}.{number % 250 + 1}")
        """The public address of a machine, by its number."""
        self._lock = threading.RLock()
        self._numbers = 0

    def transport(self) -> httpx.MockTransport:
        """Transport for a client in place of the network."""
        return httpx.MockTransport(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The answer to one request."""
        with self._lock:
            try:
                return httpx.Response(200, json=self._answer(request))
            except Failure as failure:
                return httpx.Response(failure.status, json=failure.body)

    def machines(self) -> dict[str, Json]:
        """All machines of all projects, each with the script that it starts, by a name that no later machine has."""
        with self._lock:
            for project in self.projects.values():
                self._pass(project)
            return {
                f"{name}/{vm_id}/{machine.number}": {
                    **self._machine(project, machine),
                    "startScript": machine.body.get("startScript", ""),
                }
                for name, project in self.projects.items()
                for vm_id, machine in project.machines.items()
            }

    def _answer(self, request: httpx.Request) -> Json:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if key not in self._keys:
            raise Failure(401, "UNAUTHENTICATED", "The API key is not valid.")
        try:
            called = self._judge.judge(request.method, request.url.path, dict(request.url.params), request.content)
        except Outside as reason:
            self.outside.append(f"{request.method} {request.url.path}: {reason}")
            raise Failure(400, "INVALID_ARGUMENT", str(reason)) from None
        self.calls[called.operation] += 1
        self._spoil(called.operation)
        name = called.path.get("projectId") or (called.path.get("id") if called.operation in _BY_PROJECT else None)
        if name is not None and self._keys[key] != name:
            raise Failure(403, "PERMISSION_DENIED", f"Project '{name}' cannot be used with this key.")
        handler: Callable[[Project, Called], Json] = getattr(self, f"_{_snake(called.operation)}")
        project = self.projects[self._keys[key]]
        self._pass(project)
        return handler(project, called)

    def _spoil(self, operation: str) -> None:
        if self.plan.unavailable[operation]:
            self.plan.unavailable[operation] -= 1
            raise Failure(503, "UNAVAILABLE", "Try again later.")
        if self.plan.throttled[operation]:
            self.plan.throttled[operation] -= 1
            delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
            raise Failure(429, "RESOURCE_EXHAUSTED", "Too many requests.", [delay])

    def _pass(self, project: Project) -> None:
        """Catch up with the clock: machines expire, and those that were ended are gone."""
        now = self._now()
        for vm_id, machine in list(project.machines.items()):
            if machine.gone_at is None and machine.expires_at is not None and machine.expires_at <= now:
                self._end(project, vm_id, machine)
            if machine.gone_at is not None and machine.gone_at <= now:
                del project.machines[vm_id]

    # --- the account ------------------------------------------------------------------------------------------------

    def _get(self, _: Project, __: Called) -> Json:
        return {"emailAddress": OWNER, "firstName": "", "lastName": "", "picture": ""}

    def _get_project_permissions(self, _: Project, __: Called) -> Json:
        return {"permissions": [{"permissionRole": self.role, "role": self.role, "userEmail": OWNER, "userId": "me"}]}

    def _get_project(self, _: Project, called: Called) -> Json:
        return {"id": called.path["id"], "billingAccountId": "billing", "resourceCount": 0}

    def _list_vmdata_centers(self, _: Project, __: Called) -> Json:
        names = sorted({offered.data_center for offered in self.stock})
        where = {"latitude": 0.0, "longitude": 0.0}
        network = {"value": f"{NETWORK:f}"}
        fixed = {"supplierName": "supplier", "renewableEnergy": True, "s3Endpoint": "", "location": where}
        fixed["networkPriceHr"] = network
        return {"dataCenters": [{"id": name, "ipv4Free": 100, **fixed} for name in names]}

    def _list_vmmachine_types(self, _: Project, __: Called) -> Json:
        return {"machineTypes": [offered.document() for offered in self.stock]}

    def _list_public_vmimages(self, _: Project, __: Called) -> Json:
        fixed = {"description": "", "installedPackages": [], "platform": "linux", "sizeGib": 10}
        return {"images": [{"id": name, "name": name, "displayName": name, **fixed} for name in IMAGES]}

    # --- disks ------------------------------------------------------------------------------------------------------

    def _list_disks(self, project: Project, called: Called) -> Json:
        return page("disks", [self._disk(disk) for disk in project.disks.values()], called)

    def _create_storage_disk(self, project: Project, called: Called) -> Json:
        body = dict(called.body)
        check_id(body["id"])
        if body["id"] in project.disks:
            raise Failure(409, "ALREADY_EXISTS", f"Disk '{body['id']}' exists.")
        if body["dataCenterId"] not in {offered.data_center for offered in self.stock}:
            raise Failure(400, "INVALID_ARGUMENT", f"There is no data center '{body['dataCenterId']}'.")
        ready_at = self._now() + timedelta(seconds=self._disk_seconds)
        project.disks[body["id"]] = StoredDisk(body, ready_at, self._fails("CreateStorageDisk"))
        return {}

    def _get_disk(self, project: Project, called: Called) -> Json:
        return {"disk": self._disk(stored(project.disks, called, "Disk"))}

    def _delete_storage_disk(self, project: Project, called: Called) -> Json:
        disk = stored(project.disks, called, "Disk")
        if disk.vm_id:
            raise Failure(400, "FAILED_PRECONDITION", f"Disk '{called.path['id']}' is attached.")
        del project.disks[called.path["id"]]
        return {}

    def _detach_storage_disk(self, project: Project, called: Called) -> Json:
        stored(project.disks, called, "Disk").vm_id = ""
        return {}

    def _disk(self, disk: StoredDisk) -> Json:
        if self._now() < disk.ready_at:
            state = "CREATING"
        elif disk.fails:
            state = "FAILED"
        else:
            state = "ATTACHED" if disk.vm_id else "READY"
        attached = {"vmId": disk.vm_id} if disk.vm_id else {}
        return {**disk.body, **attached, "projectId": "project", "diskState": state}

    # --- networks ---------------------------------------------------------------------------------------------------

    def _list_networks(self, project: Project, called: Called) -> Json:
        return page("networks", [self._network(network) for network in project.networks.values()], called)

    def _create_network(self, project: Project, called: Called) -> Json:
        body = dict(called.body)
        check_id(body["id"])
        if body["id"] in project.networks:
            raise Failure(409, "ALREADY_EXISTS", f"Network '{body['id']}' exists.")
        ready_at = self._now() + timedelta(seconds=self._disk_seconds)
        project.networks[body["id"]] = StoredNetwork(body, ready_at, self._fails("CreateNetwork"))
        return self._network(project.networks[body["id"]])

    def _get_network(self, project: Project, called: Called) -> Json:
        return self._network(stored(project.networks, called, "Network"))

    def _delete_network(self, project: Project, called: Called) -> Json:
        stored(project.networks, called, "Network")
        name = called.path["id"]
        if any(nic.get("networkId") == name for m in project.machines.values() for nic in m.body.get("nics", ())):
            raise Failure(400, "FAILED_PRECONDITION", f"Network '{name}' is in use.")
        del project.networks[name]
        return {}

    def _network(self, network: StoredNetwork) -> Json:
        came_to_be = "FAILED" if network.fails else "ACTIVE"
        state = "CREATING" if self._now() < network.ready_at else came_to_be
        return {**network.body, "projectId": "project", "state": state, "priceHr": {"value": f"{NETWORK:f}"}}

    # --- machines ---------------------------------------------------------------------------------------------------

    def _list_vms(self, project: Project, _: Called) -> Json:
        return {"VMs": [self._machine(project, machine) for machine in project.machines.values()]}

    def _get_vm(self, project: Project, called: Called) -> Json:
        return {"VM": self._machine(project, stored(project.machines, called, "VM"))}

    def _create_vm(self, project: Project, called: Called) -> Json:
        body = dict(called.body)
        check_id(body["vmId"])
        if body["vmId"] in project.machines:
            raise Failure(409, "ALREADY_EXISTS", f"VM '{body['vmId']}' exists.")
        offered = self._offered(body["machineType"], body["dataCenterId"])
        self._check_size(offered, body)
        if body["bootDiskImageId"] not in IMAGES:
            raise Failure(400, "INVALID_ARGUMENT", f"There is no image '{body['bootDiskImageId']}'.")
        for name in body.get("storageDiskIds", ()):
            disk = project.disks.get(name)
            if disk is None or disk.vm_id or self._disk(disk)["diskState"] != "READY":
                raise Failure(400, "FAILED_PRECONDITION", f"Disk '{name}' is not ready to be attached.")
        groups = [name for nic in body.get("nics", ()) for name in nic.get("securityGroupIds", ())]
        if missing := sorted(set(groups) - set(project.groups)):
            raise Failure(400, "INVALID_ARGUMENT", f"There is no security group '{missing[0]}'.")
        for network in (nic["networkId"] for nic in body.get("nics", ()) if nic.get("networkId")):
            stored = project.networks.get(network)
            if stored is None or self._network(stored)["state"] != "ACTIVE":
                raise Failure(400, "FAILED_PRECONDITION", f"Network '{network}' is not ready.")
        now = self._now()
        self._numbers += 1
        machine = Machine(
            body, now, now + timedelta(seconds=self._machine_seconds), self._numbers, self._fails("CreateVM")
        )
        machine.expires_at = self._expiry(body)
        for name in body.get("storageDiskIds", ()):
            project.disks[name].vm_id = body["vmId"]
        self._take(offered, body, 1)
        project.machines[body["vmId"]] = machine
        return {"id": body["vmId"], "vm": self._machine(project, machine)}

    def _terminate_vm(self, project: Project, called: Called) -> Json:
        machine = stored(project.machines, called, "VM")
        if machine.gone_at is None:
            self._end(project, called.path["id"], machine)
        return {}

    def _start_vm(self, project: Project, called: Called) -> Json:
        stored(project.machines, called, "VM").power = "ACTIVE"
        return {}

    def _reboot_vm(self, project: Project, called: Called) -> Json:
        stored(project.machines, called, "VM")
        return {}

    def _stop_vm(self, project: Project, called: Called) -> Json:
        stored(project.machines, called, "VM").power = "STOPPED"
        return {}

    def _update_vmexpire_time(self, project: Project, called: Called) -> Json:
        machine = stored(project.machines, called, "VM")
        machine.expires_at = self._expiry(called.body)
        return {"expireTime": machine.expires_at.isoformat() if machine.expires_at else ""}

    def _update_vmmetadata(self, project: Project, called: Called) -> Json:
        machine = stored(project.machines, called, "VM")
        kept_metadata = machine.body.get("metadata", {}) if called.body.get("merge") else {}
        machine.body["metadata"] = {**kept_metadata, **called.body.get("metadata", {})}
        return {"metadata": machine.body["metadata"]}

    def _end(self, project: Project, vm_id: str, machine: Machine) -> None:
        machine.gone_at = self._now() + timedelta(seconds=self._machine_seconds / 10)
        self._take(self._offered(machine.body["machineType"], machine.body["dataCenterId"]), machine.body, -1)
        for disk in project.disks.values():
            if disk.vm_id == vm_id:
                disk.vm_id = ""

    def _machine(self, project: Project, machine: Machine) -> Json:
        body, number = machine.body, machine.number
        spelt: Callable[[int], Any] = str if number % 2 else int
        is_ready = self._now() >= machine.ready_at
        if machine.gone_at is not None:
            state = "DELETING"
        elif not is_ready:
            state = "PENDING" if number % 3 else "CLONING"
        else:
            state = "FAILED" if machine.fails else machine.power
        address = self._address_of(number) if is_ready and not machine.fails else ""
        return {
            "id": body["vmId"],
            "datacenterId": body["dataCenterId"],
            "machineType": body["machineType"],
            "projectId": "project",
            "commitmentTerm": "COMMITMENT_TERM_NONE",
            "state": state,
            "vcpus": spelt(body["vcpus"]),
            "memory": spelt(body["memoryGib"]),
            "gpuQuantity": spelt(body["gpus"]),
            "bootDiskSizeGib": spelt(body.get("bootDiskSizeGib", 0)),
            "metadata": dict(body.get("metadata", {})),
            "createTime": machine.made_at.isoformat(),
            "externalIpAddress": address,
            "internalIpAddress": f"10.0.{number // 250}.{number % 250 + 1}" if address else "",
            "storageDisks": [self._disk(disk) for disk in project.disks.values() if disk.vm_id == body["vmId"]],
        }

    def _offered(self, name: str, data_center: str) -> Offered:
        for offered in self.stock:
            if (offered.name, offered.data_center) == (name, data_center):
                return offered
        raise Failure(400, "INVALID_ARGUMENT", f"There is no machine type '{name}' in {data_center}.")

    def _check_size(self, offered: Offered, body: Json) -> None:
        vcpus, memory, gpus = body["vcpus"], body["memoryGib"], body["gpus"]
        entry = offered.document()
        ratio = vcpus / memory if memory else 0
        if not entry["minVcpuPerMemoryGib"] <= ratio <= entry["maxVcpuPerMemoryGib"]:
            raise Failure(400, "INVALID_ARGUMENT", f"{vcpus} vCPUs with {memory} GiB are not sold.")
        if bool(gpus) != bool(offered.gpu_model):
            raise Failure(400, "INVALID_ARGUMENT", f"{gpus} GPUs of {offered.name} are not sold.")
        free = offered.free
        if vcpus > free.vcpus or memory > free.memory_gib or (gpus > free.gpus):
            raise scarce(f"{offered.data_center} has no room for this {offered.name}.")

    def _take(self, offered: Offered, body: Json, count: int) -> None:
        offered.free.vcpus -= count * body["vcpus"]
        offered.free.memory_gib -= count * body["memoryGib"]
        offered.free.gpus -= count * body["gpus"]

    def _expiry(self, body: Mapping[str, Any]) -> datetime | None:
        match = TTL.fullmatch(body.get("ttl", ""))
        if match is not None:
            return self._now() + timedelta(seconds=int(match[1]))
        moment = body.get("expireTime")
        return datetime.fromisoformat(moment).astimezone(UTC) if moment else None

    # --- security groups --------------------------------------------------------------------------------------------

    def _list_security_groups(self, project: Project, called: Called) -> Json:
        return page("securityGroups", list(project.groups.values()), called)

    def _get_security_group(self, project: Project, called: Called) -> Json:
        return dict(stored(project.groups, called, "Security group"))

    def _create_security_group(self, project: Project, called: Called) -> Json:
        body = dict(called.body)
        check_id(body["id"])
        if body["id"] in project.groups:
            raise Failure(409, "ALREADY_EXISTS", f"Security group '{body['id']}' exists.")
        project.groups[body["id"]] = body
        return body

    def _update_security_group(self, project: Project, called: Called) -> Json:
        group = stored(project.groups, called, "Security group")
        group.update(called.body)
        return dict(group)

    def _delete_security_group(self, project: Project, called: Called) -> Json:
        stored(project.groups, called, "Security group")
        name = called.path["id"]
        for machine in project.machines.values():
            if any(name in nic.get("securityGroupIds", ()) for nic in machine.body.get("nics", ())):
                raise Failure(400, "FAILED_PRECONDITION", f"Security group '{name}' is in use.")
        del project.groups[name]
        return {}

    # --- common -----------------------------------------------------------------------------------------------------

    def _fails(self, operation: str) -> bool:
        fails = self.plan.failing[operation] > 0
        self.plan.failing[operation] -= fails
        return fails


def _snake(operation: str) -> str:
    """``CreateStorageDisk`` as ``create_storage_disk``; letters that follow each other stay together."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).lower()
