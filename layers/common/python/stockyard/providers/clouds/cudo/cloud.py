"""Cloud accounts in Cudo Compute: ``ports.Cloud`` by a project and an API key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import (
    CredentialsRevoked,
    NotFound,
    PermissionDenied,
    VendorError,
    VendorNotFound,
    VendorRefused,
)
from stockyard.ports import Cloud, Skipped, Tagged, Verification
from stockyard.providers.clouds.cudo import sheets
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.making import DISK, GROUP, MACHINE, NETWORK
from stockyard.providers.clouds.cudo.marks import INSTALLATION, marks_of, tagged
from stockyard.providers.clouds.cudo.names import CONTROL_PLANE, DATA, NODE
from stockyard.providers.clouds.cudo.names import NETWORK as NET
from stockyard.providers.clouds.cudo.sheets import Sheet

_OF_CLUSTER = re.compile(rf".*-([0-9a-f]{{12}})-(?:{CONTROL_PLANE}|{NODE}|{DATA}|{NET})", re.ASCII)
"""An id that we choose: the twelve digits tell a cluster from all others, whatever its name has before them. What a
tenant calls by a copy of such an id, and more, is the tenant's."""
_WITHOUT_VAULT = (
    "The account names no Vault: clusters need settings.no_vault, or the attributes vault_address, vault_role_id and "
    "vault_secret_id for keys of encrypted disks."
)
_MAY_WRITE = frozenset({"OWNER", "EDITOR"})


class CudoCloud(Cloud):
    """Things with our marks in tenants' projects, and proof that their keys work."""

    sells_by_account = True

    def __init__(self, access: Access) -> None:
        self._access = access

    def verify(self, account: CloudAccount, tenant: str) -> Verification:
        """Whether the key opens the project and may change it, whether the data center is there, and whether the
        account's Vault gives machines secret ids.

        Raises retryable ``VendorError`` leaves when Cudo or the Vault cannot be asked.
        """
        project = str(account.attributes["project_id"])
        try:
            cudo = self._access.client(tenant, account)
            cudo.check_project()
            role = cudo.own_role()
            data_centers = sorted(center.id for center in cudo.data_centers())
        except CredentialsRevoked as error:
            return Verification(False, f"{error.detail} {error.hint}".strip())
        except (PermissionDenied, VendorNotFound) as error:
            return Verification(False, f"The API key does not open project {project} ({error.code}).")
        if role == "VIEWER":
            return Verification(False, f"The API key may only read in project {project}. It has to be an editor's.")
        data_center = str(account.attributes["data_center_id"])
        if data_center not in data_centers:
            return Verification(
                False, f"Cudo has no data center {data_center}. There are {', '.join(data_centers) or 'none'}."
            )
        refusal = self._refusal_of_vault(account, tenant)
        if refusal:
            return Verification(False, refusal)
        warnings = [] if account.attributes.get("vault_address") else [_WITHOUT_VAULT]
        if role not in _MAY_WRITE:
            text = f"Cudo does not say what the key may do in project {project}: it may turn out to be too little."
            warnings.append(text)
        return Verification(True, f"The API key opens project {project}.", tuple(warnings))

    def offers(self, account: CloudAccount, tenant: str, moment: str) -> bytes:
        """See ``ports.clouds.SellsByAccount.offers``: all machine types of all data centers."""
        cudo = self._access.client(tenant, account)
        types = tuple(cudo.machine_types())
        if not types:
            # A project without a single type is a failure of the list.
            raise VendorRefused("Cudo lists no machine types.")
        prices = {center.id: center.network_price for center in cudo.data_centers() if center.network_price is not None}
        return sheets.written(Sheet(moment, types, str(account.attributes["data_center_id"]), prices))

    def _refusal_of_vault(self, account: CloudAccount, tenant: str) -> str | None:
        """Reason why the account's Vault cannot keep keys of disks; None when it can, or when there is none."""
        try:
            vault = self._access.vault_client(tenant, account)
            if vault is not None:
                vault.check()
        except VendorError as error:
            if error.retryable:
                raise
            return f"{error.detail} {error.hint}".strip()
        return None

    def principal(self, attributes: Mapping[str, Any]) -> str:
        """See ``ports.Cloud.principal``: the project. A key may be exchanged at any time."""
        return str(attributes.get("project_id") or "")

    def check_attributes(self, attributes: Mapping[str, Any]) -> None:
        """See ``ports.Cloud.check_attributes``: which data centers there are, only a call tells."""

    def machine_roles(self, account: CloudAccount, cluster: Cluster) -> tuple[str, Sequence[str]]:  # noqa: ARG002
        """See ``ports.Cloud.machine_roles``: machines in Cudo have no keys of their cloud, and prove it by tokens."""
        return "", ()

    def regions(self, account: CloudAccount) -> Sequence[str]:
        """See ``ports.Cloud.regions``: the account's data center."""
        return (str(account.attributes["data_center_id"]),)

    def template(self, account: CloudAccount, installation: str) -> dict[str, Any]:  # noqa: ARG002 - the port names it
        """Raises ``NotFound``: in Cudo there is nothing to deploy."""
        raise NotFound(f"Cloud account {account.id} is in Cudo, where nothing has to be deployed: a key is enough.")

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],  # noqa: ARG002 - a project is listed as a whole
        skipped: Skipped | None = None,  # noqa: ARG002 - and either answers or does not
    ) -> Sequence[Tagged]:
        """See ``ports.Cloud.tagged``: all of the project, whatever its data center."""
        things = _marked(self._access.client(tenant, account))
        return [thing for own, thing in things if (own, thing.tenant) == (installation, tenant)]

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        """See ``ports.Cloud.discard``."""
        if thing.tenant != tenant:
            return False
        cudo = self._access.client(tenant, account)
        for _, there in _marked(cudo):
            if (there.kind, there.vendor_id) == (thing.kind, thing.vendor_id):
                break
        else:
            return True
        if (there.tenant, there.resource_id) != (tenant, thing.resource_id):
            return False
        return _DISCARDED[thing.kind](cudo, thing.vendor_id)


def _without_disk(cudo: Cudo, disk_id: str) -> bool:
    disk = cudo.disk(disk_id)
    if disk is not None and disk.vm_id:
        return False
    cudo.delete_disk(disk_id)
    return cudo.disk(disk_id) is None


def _without_group(cudo: Cudo, group_id: str) -> bool:
    """A group stays as long as a disk or a network that is known by it alone."""
    digits = _digits(group_id)
    named_digits = {_digits(disk.id) for disk in cudo.disks()} | {_digits(network.id) for network in cudo.networks()}
    if digits and digits in named_digits:
        return False
    cudo.delete_security_group(group_id)
    return cudo.security_group(group_id) is None


def _without_network(cudo: Cudo, network_id: str) -> bool:
    cudo.delete_network(network_id)
    return cudo.network(network_id) is None


def _without_machine(cudo: Cudo, vm_id: str) -> bool:
    if cudo.vm(vm_id) is None:
        return True
    cudo.terminate_vm(vm_id)
    return False


_DISCARDED: Mapping[str, Callable[[Cudo, str], bool]] = {
    DISK: _without_disk,
    GROUP: _without_group,
    NETWORK: _without_network,
    MACHINE: _without_machine,
}


def _marked(cudo: Cudo) -> Iterator[tuple[str, Tagged]]:
    """Things with marks, each with the installation: machines, groups, networks, and disks that are on no machine.
    Disks and networks carry none: they are their cluster's, whose groups go after them and are called by the same
    digits."""
    vms, groups = cudo.vms(), cudo.security_groups()
    marks_by_digits = {_digits(group.id): marks_of(group.description) for group in groups}
    marks_by_digits.pop("", None)
    carrying: list[tuple[str, str, str, Mapping[str, str], str | None]] = [
        *((MACHINE, vm.id, vm.data_center, vm.metadata, vm.created_at) for vm in vms),
        *(
            (DISK, disk.id, disk.data_center, marks_by_digits.get(_digits(disk.id), {}), None)
            for disk in cudo.disks()
            if disk.is_storage and not disk.vm_id
        ),
        *(
            (NETWORK, network.id, network.data_center, marks_by_digits.get(_digits(network.id), {}), None)
            for network in cudo.networks()
        ),
        *((GROUP, group.id, group.data_center, marks_of(group.description), None) for group in groups),
    ]
    for kind, vendor_id, region, metadata, created_at in carrying:
        thing = tagged(kind, vendor_id, region, metadata, created_at)
        if thing is not None:
            yield metadata[INSTALLATION], thing


def _digits(thing_id: str) -> str:
    match = _OF_CLUSTER.fullmatch(thing_id)
    return match[1] if match else ""
