"""Cloud accounts that are head nodes: ``ports.Cloud`` by the calls of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from stockyard.domain.records import CloudAccount, Cluster
from stockyard.domain.values import times
from stockyard.errors import NotFound, VendorError, VendorRefused
from stockyard.ports import Cloud, Skipped, Tagged, Verification
from stockyard.providers.clouds.bcm import calls, sheets
from stockyard.providers.clouds.bcm.access import Access, ends_at, inventory_of
from stockyard.providers.clouds.bcm.client import HeadNode
from stockyard.providers.clouds.bcm.devices import Device
from stockyard.providers.clouds.bcm.marks import MAY_INSTALL
from stockyard.providers.clouds.bcm.release import Release
from stockyard.providers.clouds.bcm.sheets import Host, Sheet

HOST = "host"
"""Kind of the things with our marks: on the ledger, and for the sweep."""
SOON = timedelta(days=30)
"""How long before its end a certificate is warned of."""
MOST_SYSTEMS = 200
"""Hosts whose hardware is asked for in one refresh."""
MOST_TIME = timedelta(seconds=8)
"""How long one refresh asks for hardware: a verification reads the inventory too, and people wait for it."""
_TRIALS = "Stockyard has never been tried on a real head node: see the page on BCM."


@dataclass(frozen=True, slots=True)
class HeadNodes(Cloud):
    """Head nodes of tenants. ``now`` gives the time by which certificates end."""

    sells_by_account = True

    access: Access
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def verify(self, account: CloudAccount, tenant: str) -> Verification:
        """Whether the head node is the one that was pinned, takes the certificate and has the calls that are needed.
        The message names the hosts that Stockyard may install.

        Raises retryable ``VendorError`` leaves when the head node cannot be asked.
        """
        end = ends_at(account)
        if end is not None and end <= self.now():
            return Verification(False, f"The client certificate ended at {times.to_text(end)}: give a new one.")
        try:
            head_node = self.access.client(tenant, account)
            missing = calls.missing(head_node.page())
            if missing:
                return Verification(False, f"The head node's page /api has no {', '.join(missing)}.")
            devices = head_node.devices()
            for device in devices[:1]:
                device.mode_field  # noqa: B018 - raises where the release is not known
            release = head_node.release()
        except VendorError as error:
            if error.retryable:
                raise
            return Verification(False, f"{error.detail} {error.hint}".strip())
        names = sorted(device.hostname for device in devices if device.may_install)
        text = f"Stockyard may install {_names(names)}." if names else f"No node's notes have {MAY_INSTALL}."
        warnings = [_TRIALS]
        if end is not None and end - self.now() < SOON:
            warnings.append(f"The client certificate ends at {times.to_text(end)}: give a new one before.")
        for purpose, lack in _LACKS.items():
            if purpose not in release.optional:
                warnings.append(f"The head node's page has no call that tells {lack}")
        return Verification(True, f"The head node has {len(devices)} devices. {text}", tuple(warnings))

    def offers(self, account: CloudAccount, tenant: str, moment: str) -> bytes:
        """See ``ports.clouds.SellsByAccount.offers``: every device, with its groups and hardware."""
        head_node = self.access.client(tenant, account)
        devices = [device for device in head_node.devices() if device.uuid and device.hostname]
        groups = head_node.groups()
        ends, count = self.now() + MOST_TIME, 0
        hosts: list[Host] = []
        for device in devices:
            resources: Mapping[str, str | int] = {}
            if device.may_install and count < MOST_SYSTEMS and self.now() < ends:
                hardware = self._resources(head_node, device)
                count = MOST_SYSTEMS if hardware is None else count + 1
                resources = hardware or {}
            inside = tuple(sorted(name for name, members in (groups or {}).items() if device.uuid in members))
            hosts.append(Host(device.uuid, device.hostname, _why_not(device, tenant), inside, resources))
        names = None if groups is None else tuple(sorted(groups))
        tells_status = calls.STATUS in head_node.release().optional
        return sheets.written(Sheet(moment, tuple(hosts), names, tells_status))

    @staticmethod
    def _resources(head_node: HeadNode, device: Device) -> Mapping[str, str | int] | None:
        """Hardware of one device: empty where it is not told, and the document has to say it; None where the head node
        does not answer such questions now."""
        try:
            return sheets.resources_of(head_node.system(device.uuid))
        except VendorError as error:
            return None if error.retryable else {}

    def principal(self, attributes: Mapping[str, Any]) -> str:
        """See ``ports.Cloud.principal``: the head node. A certificate may be exchanged at any time."""
        return inventory_of(attributes)

    def check_attributes(self, attributes: Mapping[str, Any]) -> None:
        """See ``ports.Cloud.check_attributes``: what a head node has, only a call tells."""

    def machine_roles(self, account: CloudAccount, cluster: Cluster) -> tuple[str, Sequence[str]]:  # noqa: ARG002
        """See ``ports.Cloud.machine_roles``: hosts have no keys of their head node, and prove it by tokens."""
        return "", ()

    def regions(self, account: CloudAccount) -> Sequence[str]:  # noqa: ARG002
        """See ``ports.Cloud.regions``: none that prices are known of."""
        return ()

    def template(self, account: CloudAccount, installation: str) -> dict[str, Any]:  # noqa: ARG002 - the port names it
        """The allow-list of the site's connector. Raises ``NotFound`` for an account that needs no site."""
        if not account.attributes.get("via"):
            raise NotFound(
                f"Cloud account {account.id} is a head node that is called directly: nothing is deployed there."
            )
        text = "\n".join(calls.allow_list()) + "\n"
        meta = {"name": "stockyard-site-allowed", "namespace": "stockyard-site"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"allowed": text}}

    def tagged(
        self,
        account: CloudAccount,
        installation: str,
        tenant: str,
        regions: Sequence[str],  # noqa: ARG002 - an inventory is listed as a whole
        skipped: Skipped | None = None,  # noqa: ARG002 - and either answers or does not
    ) -> Sequence[Tagged]:
        """See ``ports.Cloud.tagged``: the devices that carry marks of their own, of the tenant."""
        inventory, things = inventory_of(account.attributes), []
        for device in self.access.client(tenant, account).devices():
            marks = device.marks
            if marks is not None and (marks.installation, marks.tenant) == (installation, tenant):
                things.append(Tagged(HOST, device.uuid, inventory, tenant, marks.resource, marks.generation))
        return things

    def discard(self, account: CloudAccount, thing: Tagged, tenant: str) -> bool:
        """See ``ports.Cloud.discard``: one step of the release of a host that belongs to no record."""
        if thing.kind != HOST or thing.tenant != tenant:
            return False
        head_node = self.access.client(tenant, account)
        device = head_node.device(thing.vendor_id)
        if device is None:
            return True
        marks = device.marks
        if marks is None or (marks.tenant, marks.resource) != (tenant, thing.resource_id):
            return marks is None
        release = Release(head_node, device.uuid, marks.installation, tenant, marks.resource, self.now())
        return release.step().is_over


_LACKS: Mapping[str, str] = {
    calls.GROUPS: "node groups: node types name their nodes.",
    calls.STATUS: "the status of devices: nobody sees when an installation ends, and no host is switched off after it.",
    calls.SYSTEM: "the hardware of devices: node types have to say their resources.",
}


def _why_not(device: Device, tenant: str) -> str | None:
    """Reason why a device is none that the tenant can have; None for one that it has, or could have."""
    if not device.is_node:
        return "it is no compute node"
    if not device.may_install:
        return f"its notes have no {MAY_INSTALL}"
    marks = device.marks
    if marks is not None and marks.tenant != tenant:
        return "another tenant has it"
    try:
        device.mode_field  # noqa: B018 - raises where it cannot be installed
    except VendorRefused as refusal:
        return refusal.detail
    return None


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)
