"""Cudo Compute's API over HTTPS, for one project: what clusters and nodes need of it.

Reads are repeated by the vendor's own guidance; a write is repeated only where it cannot have happened. What may have
happened is found again: whoever makes something that exists already gets it, if it carries the same metadata.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stockyard.errors import PermissionDenied, VendorConflict, VendorNotFound, VendorTimeout, VendorUnavailable
from stockyard.providers.clouds.cudo import marks, values
from stockyard.providers.clouds.cudo.errors import retry_delay, translated
from stockyard.providers.clouds.cudo.values import (
    DataCenter,
    Disk,
    MachineType,
    Network,
    NewVm,
    Rule,
    SecurityGroup,
    Vm,
)

if TYPE_CHECKING:
    import httpx

BASE_URL = "https://rest.compute.cudo.org"
FIRST_PAUSE, FACTOR, LONGEST_PAUSE = 0.5, 1.6, 30.0
"""Seconds between tries, with full jitter: the vendor's guidance."""
ATTEMPTS = 4
MOST_PAUSE = 10.0
"""No single pause is longer: the caller has a time limit, and its workflow tries again."""
SECONDS = 20.0
"""How long one call may take."""
NEVER = "2100-01-01T00:00:00Z"
"""When machines expire that are kept. The document does not say how to take an expiry away."""
PAGE = 100
MOST_PAGES = 100
_NOT_DONE = frozenset({429, 503})
"""Answers to a write that say that nothing was done."""


class Cudo:
    """The API with a key, within a project. ``transport`` replaces the network."""

    def __init__(
        self,
        api_key: str,
        project: str,
        *,
        base_url: str = BASE_URL,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._key, self._project = api_key, project
        self._base = base_url.rstrip("/")
        self._transport, self._pause, self._chance = transport, pause, chance
        self._client: httpx.Client | None = None

    def close(self) -> None:
        """Close the connections. A later call opens others."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    # --- the account ------------------------------------------------------------------------------------------------

    def check_project(self) -> None:
        """Raises ``CredentialsRevoked`` for a key that is none, ``PermissionDenied`` or ``VendorNotFound`` for a
        project that it cannot use."""
        self._read(f"/v1/projects/{self._project}")

    def own_role(self) -> str:
        """Role of the key's owner in the project: ``OWNER``, ``EDITOR`` or ``VIEWER``; empty where Cudo does not say.

        The document ties a role to a person's address; whoever may not list the roles is not told."""
        try:
            address = values.text(self._read("/v1/auth"), "emailAddress")
            permissions = self._read(f"/v1/projects/{self._project}:list-permissions").get("permissions") or ()
        except (PermissionDenied, VendorNotFound):
            return ""
        roles = [
            values.text(entry, "permissionRole")
            for entry in permissions
            if address and values.text(entry, "userEmail") == address
        ]
        return roles[0] if roles and roles[0] != "UNKNOWN" else ""

    def data_centers(self) -> Sequence[DataCenter]:
        """All data centers."""
        return [values.data_center(entry) for entry in self._read("/v1/vms/data-centers").get("dataCenters") or ()]

    def machine_types(self) -> Sequence[MachineType]:
        """All types of all data centers, with prices and what is free of them now."""
        answer = self._read("/v1/vms/machine-types", projectId=self._project)
        return [values.machine_type(entry) for entry in answer.get("machineTypes") or ()]

    def images(self) -> Sequence[str]:
        """The ids of the public images."""
        images = self._read("/v1/vms/public-images").get("images") or ()
        return [values.text(image, "id") for image in images]

    # --- disks ------------------------------------------------------------------------------------------------------

    def disk(self, disk_id: str) -> Disk | None:
        """The disk; None when there is none."""
        answer = self._read_if_there(self._of_project(f"disks/{disk_id}"))
        return values.disk(answer.get("disk") or answer) if answer is not None else None

    def disks(self) -> Sequence[Disk]:
        """All disks of the project."""
        return [values.disk(entry) for entry in self._pages(self._of_project("disks"), "disks")]

    def create_disk(self, disk_id: str, data_center: str, size_gib: int) -> Disk:
        """The storage disk of that id, new or made before. Raises ``VendorConflict`` when that one is another."""
        body = {"id": disk_id, "dataCenterId": data_center, "sizeGib": size_gib, "diskType": "DISK_TYPE_STORAGE"}
        try:
            self._write("POST", self._of_project("disks"), body)
        except VendorConflict:
            there = self.disk(disk_id)
            if there is None or (there.data_center, there.size_gib) != (data_center, size_gib):
                raise
            return there
        return Disk(disk_id, data_center, size_gib, values.PENDING)

    def detach_disk(self, disk_id: str) -> None:
        """Take a disk off its machine, which has to be done before it is deleted."""
        self._write("PUT", self._of_project(f"disk/{disk_id}/detach"))

    def delete_disk(self, disk_id: str) -> None:
        """Delete a disk; one that is gone is no error."""
        self._removed(self._of_project(f"disks/{disk_id}"))

    # --- networks ---------------------------------------------------------------------------------------------------

    def network(self, network_id: str) -> Network | None:
        """The network; None when there is none."""
        answer = self._read_if_there(self._of_project(f"networks/{network_id}"))
        return values.network(answer) if answer is not None else None

    def networks(self) -> Sequence[Network]:
        """All networks of the project."""
        return [values.network(entry) for entry in self._pages(self._of_project("networks"), "networks")]

    def create_network(self, network_id: str, data_center: str, cidr: str) -> Network:
        """The network of that id, new or made before. Raises ``VendorConflict`` when that one is another."""
        try:
            answer = self._write(
                "POST", self._of_project("networks"), {"id": network_id, "dataCenterId": data_center, "ipRange": cidr}
            )
        except VendorConflict:
            there = self.network(network_id)
            if there is None or (there.data_center, there.cidr) != (data_center, cidr):
                raise
            return there
        return values.network({"id": network_id, "dataCenterId": data_center, "ipRange": cidr, **answer})

    def delete_network(self, network_id: str) -> None:
        """Delete a network; one that is gone is no error."""
        self._removed(self._of_project(f"networks/{network_id}"))

    # --- machines ---------------------------------------------------------------------------------------------------

    def vm(self, vm_id: str) -> Vm | None:
        """The machine; None when there is none."""
        answer = self._read_if_there(self._of_project(f"vms/{vm_id}"))
        return values.vm(answer.get("VM") or answer) if answer is not None else None

    def vms(self) -> Sequence[Vm]:
        """All machines of the project."""
        return [values.vm(entry) for entry in self._read(self._of_project("vms")).get("VMs") or ()]

    def create_vm(self, new_vm: NewVm) -> Vm:
        """The machine of that id, new or made before. Raises ``VendorConflict`` when that one has the marks of another
        record in its metadata, or none."""
        try:
            answer = self._write("POST", self._of_project("vm"), new_vm.document())
        except VendorConflict:
            there = self.vm(new_vm.id)
            if there is None or not marks.are_of_one(there.metadata, new_vm.metadata):
                raise
            return there
        described = answer.get("vm") or {}
        return values.vm({"id": new_vm.id, "datacenterId": new_vm.data_center, **described})

    def terminate_vm(self, vm_id: str) -> None:
        """End a machine with its boot disk; one that is gone is no error. Its storage disks stay."""
        try:
            self._write("POST", self._of_project(f"vms/{vm_id}/terminate"))
        except VendorNotFound:
            return

    def start_vm(self, vm_id: str) -> None:
        """Switch a machine on."""
        self._write("POST", self._of_project(f"vms/{vm_id}/start"))

    def stop_vm(self, vm_id: str) -> None:
        """Switch a machine off. It is paid for all the same."""
        self._write("POST", self._of_project(f"vms/{vm_id}/stop"))

    def reboot_vm(self, vm_id: str) -> None:
        """Restart a machine."""
        self._write("POST", self._of_project(f"vms/{vm_id}/reboot"))

    def keep_vm(self, vm_id: str) -> None:
        """Put off the moment at which Cudo would end the machine by itself for as long as anybody cares."""
        self._write("POST", self._of_project(f"vm/{vm_id}/expire-time"), {"expireTime": NEVER})

    def set_metadata(self, vm_id: str, metadata: Mapping[str, str]) -> None:
        """Give the machine exactly this metadata."""
        body = {"metadata": dict(metadata), "merge": False}
        self._write("POST", self._of_project(f"vm/{vm_id}/metadata"), body)

    # --- security groups --------------------------------------------------------------------------------------------

    def security_group(self, group_id: str) -> SecurityGroup | None:
        """The group; None when there is none."""
        answer = self._read_if_there(self._of_project(f"security-groups/{group_id}"))
        return values.security_group(answer) if answer is not None else None

    def security_groups(self) -> Sequence[SecurityGroup]:
        """All groups of the project."""
        path = self._of_project("security-groups")
        return [values.security_group(entry) for entry in self._pages(path, "securityGroups")]

    def put_security_group(self, group_id: str, data_center: str, description: str, rules: Sequence[Rule]) -> None:
        """Make the group, or give the one that is there these rules. ``description`` tells whose it is: raises
        ``VendorConflict`` where it is another one."""
        document = {"dataCenterId": data_center, "description": description}
        document_with_rules: Mapping[str, Any] = {**document, "rules": [rule.document() for rule in rules]}
        there = self.security_group(group_id)
        if there is None:
            try:
                self._write("POST", self._of_project("security-groups"), {"id": group_id, **document_with_rules})
            except VendorConflict:
                there = self.security_group(group_id)
                if there is None:
                    raise
        if there is None:
            return
        its_marks, new_marks = marks.marks_of(there.description), marks.marks_of(description)
        are_ours = there.description == description or (bool(its_marks) and marks.are_of_one(its_marks, new_marks))
        if there.data_center != data_center or not are_ours:
            raise VendorConflict(f"There is another security group {group_id} in the project.", code="ALREADY_EXISTS")
        if there.rules != frozenset(rules):
            self._write("PATCH", self._of_project(f"security-groups/{group_id}"), document_with_rules)

    def delete_security_group(self, group_id: str) -> None:
        """Delete a group; one that is gone is no error."""
        self._removed(self._of_project(f"security-groups/{group_id}"))

    # --- calls ------------------------------------------------------------------------------------------------------

    def _of_project(self, path: str) -> str:
        return f"/v1/projects/{self._project}/{path}"

    def _read(self, path: str, **query: Any) -> Mapping[str, Any]:
        return self._call("GET", path, query, None, repeated=True)

    def _read_if_there(self, path: str) -> Mapping[str, Any] | None:
        try:
            return self._read(path)
        except VendorNotFound:
            return None

    def _pages(self, path: str, name: str) -> Iterator[Mapping[str, Any]]:
        """Every entry of a list. Ends where a page is not full, whatever the count says: entries may go meanwhile."""
        for number in range(1, MOST_PAGES + 1):
            entries = self._read(path, pageNumber=number, pageSize=PAGE).get(name) or ()
            yield from entries
            if len(entries) < PAGE:
                return

    def _write(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        return self._call(method, path, {}, body, repeated=False)

    def _removed(self, path: str) -> None:
        try:
            self._call("DELETE", path, {}, None, repeated=True)
        except VendorNotFound:
            return

    def _call(
        self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None, *, repeated: bool
    ) -> Mapping[str, Any]:
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            try:
                answer = self._send(method, path, query, body)
            except (VendorTimeout, VendorUnavailable):
                if last or not repeated:
                    raise
                self._wait(attempt, None)
                continue
            if answer.is_success:
                return _object(answer)
            error = translated(answer.status_code, answer.content)
            again = error.retryable and not isinstance(error, VendorConflict)
            if last or not again or not (repeated or answer.status_code in _NOT_DONE):
                raise error
            self._wait(attempt, retry_delay(answer.content))
        raise AssertionError

    def _wait(self, attempt: int, asked_for: float | None) -> None:
        most = min(LONGEST_PAUSE, FIRST_PAUSE * FACTOR**attempt)
        self._pause(min(MOST_PAUSE, max(asked_for or 0.0, most * self._chance())))

    def _send(self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None) -> httpx.Response:
        import httpx  # kept out of cold starts

        if self._client is None:
            headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
            self._client = httpx.Client(
                base_url=self._base,
                headers=headers,
                transport=self._transport,
                timeout=SECONDS,
                follow_redirects=False,
            )
        try:
            return self._client.request(method, path, params=query or None, json=body)
        except httpx.TimeoutException as error:
            raise VendorTimeout("Cudo did not answer in time", code=type(error).__name__) from None
        except httpx.HTTPError as error:
            raise VendorUnavailable("Cudo cannot be reached", code=type(error).__name__) from None


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        document = answer.json() if answer.content else {}
    except ValueError:
        raise VendorUnavailable("Cudo's answer is no JSON", code=str(answer.status_code)) from None
    if not isinstance(document, dict):
        raise VendorUnavailable("Cudo's answer is no object", code=str(answer.status_code))
    return document
