"""Self-managed Kubernetes clusters on Cudo Compute: ``ports.ClusterDriver`` by phases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from stockyard.domain.clusters.control_plane import MOST_NODES
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.records import Cluster
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import PermissionDenied, VendorError, VendorRefused
from stockyard.ports import CloudWork, ClusterDriver, ClusterPlan, Finding, Outcome, PriceList
from stockyard.ports.clusters import TOKEN
from stockyard.providers.clouds.cudo import marks, sheets
from stockyard.providers.clouds.cudo.access import Access
from stockyard.providers.clouds.cudo.client import Cudo
from stockyard.providers.clouds.cudo.making import DISK_KEY, Reconciler
from stockyard.providers.clouds.cudo.names import CONTROL_PLANE, DATA, NETWORK, NODE, name
from stockyard.providers.clouds.cudo.values import NewVm
from stockyard.providers.clouds.cudo.vault import NO_VAULT, VaultClient
from stockyard.providers.clusters.cudo import groups, inspection, network, planning, retag
from stockyard.providers.clusters.cudo.configuration import CudoConfig, is_encrypted
from stockyard.providers.clusters.cudo.machine import Machine, with_first_boot

__all__ = ["CudoClusterDriver", "CudoConfig"]

_ADDRESS = "vault"
"""In the detail of the line of a disk's key: the Vault where it is. The account may have another one later."""


class CudoClusterDriver(ClusterDriver):
    """Makes and removes a cluster's machines in the tenant's project."""

    retags = True

    provider_example = "examples/cudo-nodes.yaml"

    def __init__(self, config: CudoConfig, access: Access) -> None:
        self._config, self._access = config, access

    def attestation(self, cluster: Cluster) -> str:  # noqa: ARG002 - the port names it
        """See ``ports.clusters.AttestsControlPlane``: Cudo gives its machines no keys."""
        return TOKEN

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:  # noqa: ARG002 - what is sold is live
        """See ``ports.ClusterDriver.validate``: names that do not fit. What Cudo sells, ``inspect`` asks it."""
        return list(self._name_faults(cluster))

    def most_nodes(self, cluster: Cluster) -> int:  # noqa: ARG002 - the range is the same for all
        """See ``ports.clusters.BoundsNodes``."""
        return MOST_NODES

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        """See ``ports.ClusterDriver.plan``, by what the account was offered last."""
        sheet = _sheet(cluster, prices)
        return planning.plan(sheet, cluster.settings, self._config.name_prefix, cluster.client_id)

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:
        """See ``ports.clusters.ServesNodeGroups``."""
        return groups.provider(cluster, group)

    def group_items(self, cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
        """See ``ports.clusters.ServesNodeGroups``."""
        return planning.group_items(_sheet(cluster, prices).types, cluster.settings)

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        """See ``ports.ClusterDriver.inspect``."""
        own = []
        if is_encrypted(work.cluster) and not work.account.attributes.get("vault_address"):
            own = [Finding("/settings/no_vault", NO_VAULT)]
        data_center_id = str(work.account.attributes["data_center_id"])
        try:
            types = self._access.client(work.tenant, work.account).machine_types()
        except VendorError:
            if own:
                return own
            raise
        return [*own, *inspection.findings(types, work.cluster.settings, data_center_id)]

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterDriver.ensure``. ``KeyError`` for a phase that is not ours."""
        reconciler = self._reconciler(work)
        machine = Machine(reconciler, work, self._config)
        steps: dict[str, Callable[[], Outcome]] = {
            "account": partial(self._account, reconciler.cudo, work),
            "machine_type": machine.choose,
            "network": partial(self._network, reconciler, work, machine),
            "disk": partial(self._disk, work, machine),
            "control_plane": partial(self._control_plane, work, machine),
        }
        return steps[phase]()

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterDriver.remove``."""
        outcome = self._reconciler(work).unmake(phase)
        key = work.ledger.find(DISK_KEY, DATA)
        if not outcome.done or key is None or key.phase != phase:
            return outcome
        vault = self._access.vault_client(work.tenant, work.account)
        if vault is not None:
            vault.forget_key(work.cluster.client_id)
        work.ledger.gone(key)
        first_address = str(key.detail.get(_ADDRESS) or "")
        is_left = vault is None or first_address not in ("", work.account.attributes.get("vault_address"))
        there = f"the Vault at {first_address}" if first_address else "the Vault"
        warning = f"The key of its disk may be left in {there}, which the account has no more." if is_left else ""
        return replace(outcome, message=warning)

    def retag(self, work: CloudWork, stale_keys: Sequence[str]) -> Outcome:
        """See ``ports.Retags.retag``."""
        return retag.retag(self._access.client(work.tenant, work.account), work, stale_keys)

    def _account(self, cudo: Cudo, work: CloudWork) -> Outcome:
        cudo.check_project()
        if cudo.own_role() == "VIEWER":
            raise PermissionDenied(
                "the API key may only read in the project", hint="Give the cloud account the key of an editor."
            )
        if is_encrypted(work.cluster):
            self._vault(work).check()
        return Outcome(True, f"project {work.account.attributes['project_id']}")

    def _vault(self, work: CloudWork) -> VaultClient:
        vault = self._access.vault_client(work.tenant, work.account)
        if vault is None:
            raise VendorRefused(NO_VAULT, hint="Give the cloud account a Vault, and resume.")
        return vault

    def _disk(self, work: CloudWork, machine: Machine) -> Outcome:
        """The disk; and that there will be a key of it in the Vault, which the machine makes itself."""
        if is_encrypted(work.cluster) and work.ledger.find(DISK_KEY, DATA) is None:
            key = work.ledger.intend(DISK_KEY, DATA, {_ADDRESS: work.account.attributes.get("vault_address")})
            work.ledger.made(key, work.cluster.client_id)
        return machine.disk()

    def _control_plane(self, work: CloudWork, machine: Machine) -> Outcome:
        def completed(new_vm: NewVm) -> NewVm:
            if not is_encrypted(work.cluster):
                return with_first_boot(new_vm, work, self._config)
            client_id = work.cluster.client_id
            key = self._vault(work).key_of_machine(client_id)
            return with_first_boot(new_vm, work, self._config, key)

        return machine.ensure(completed)

    def _network(self, reconciler: Reconciler, work: CloudWork, machine: Machine) -> Outcome:
        return network.ensure(reconciler, work.cluster, machine.data_center(), self._config.name_prefix)

    def _reconciler(self, work: CloudWork) -> Reconciler:
        cudo = self._access.client(work.tenant, work.account)
        own_marks = marks.marks(work.installation, work.tenant, work.cluster.id, work.cluster.generation)
        return Reconciler(cudo, work.ledger, own_marks, work.now, self._config.in_flight_seconds)

    def _name_faults(self, cluster: Cluster) -> Iterator[Finding]:
        for thing in (CONTROL_PLANE, NODE, DATA, NETWORK):
            try:
                name(self._config.name_prefix, cluster.client_id, thing)
            except ValueError as error:
                yield Finding("/name", f"{error}.")
                return


def _sheet(cluster: Cluster, prices: PriceList) -> sheets.Sheet:
    """Last offers to the cluster's account; nothing where that is not known."""
    data = prices.sheet(cluster.cloud_account_id)
    try:
        return sheets.read(data) if data is not None else sheets.Sheet("", ())
    except VendorRefused:
        return sheets.Sheet("", ())
