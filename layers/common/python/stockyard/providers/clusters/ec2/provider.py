"""Self-managed Kubernetes clusters on EC2: ``ports.ClusterDriver`` by phases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from stockyard.domain.clusters.control_plane import MOST_NODES
from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.pools.records import NewPool
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.values.pointers import pointer
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import NotYetVisible, PermissionDenied, VendorNotFound
from stockyard.ports import CloudWork, ClusterDriver, ClusterPlan, Finding, Outcome, PriceList
from stockyard.ports.clusters import AdmitsPacks, BalancesMembers, GonePart, PacksAccount
from stockyard.ports.snapshots import KeepsSnapshots, Snapshot, SnapshotStore
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.policies import session
from stockyard.providers.clouds.aws.resources import leftovers
from stockyard.providers.clouds.aws.resources.cluster_building import check_account, gone_parts
from stockyard.providers.clouds.aws.sessions import OpenSecrets, SessionFactory, Sessions
from stockyard.providers.clusters.ec2 import groups, inspection, own_api, planning, retag
from stockyard.providers.clusters.ec2.building import Builder
from stockyard.providers.clusters.ec2.configuration import Ec2Config, region
from stockyard.providers.clusters.ec2.members import etcd_backup, etcd_volume, identity, machine, members
from stockyard.providers.clusters.ec2.network import bastion, endpoint, network, security
from stockyard.providers.kubernetes.client import KubernetesApi

__all__ = ["Ec2ClusterDriver", "Ec2Config"]

_NEVER_LATE = frozenset({"InvalidKeyPair.NotFound", "InvalidAMIID.NotFound"})
"""What we did not make, so that waiting does not bring it about."""

_ENSURE: dict[str, Callable[[Builder], Outcome]] = {
    "network": network.ensure,
    "security": security.ensure,
    "identity": identity.ensure,
    "endpoint": endpoint.ensure,
    bastion.PHASE: bastion.ensure,
    "control_plane": machine.ensure,
    "snapshots": etcd_volume.ensure_snapshots,
}


class Ec2ClusterDriver(ClusterDriver):
    """Makes and removes the AWS side of a cluster in the tenant's account."""

    looks_at_parts = True
    tags_members = True
    retags = True

    provider_example = "examples/ec2-nodes.yaml"
    egress_usd = planning.EGRESS_USD
    """See ``ports.clusters.BillsEgress``."""

    def __init__(
        self,
        config: Ec2Config,
        session_factory: SessionFactory,
        secrets: OpenSecrets | None = None,
        make_api: own_api.MakeApi = KubernetesApi,
    ) -> None:
        self._config, self._make_api = config, make_api
        self._sessions = Sessions(session_factory, secrets=secrets)

    @property
    def packs_admin(self) -> AdmitsPacks:
        """See ``ports.ClusterDriver.packs_admin``."""
        return self

    @property
    def balancer(self) -> BalancesMembers:
        """See ``ports.ClusterDriver.balancer``."""
        return self

    @property
    def snapshot_keeper(self) -> KeepsSnapshots:
        """See ``ports.ClusterDriver.snapshot_keeper``."""
        return self

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        """See ``ports.ClusterDriver.validate``."""
        return list(planning.faults(cluster, prices, self._config.name_prefix))

    def most_nodes(self, cluster: Cluster) -> int:  # noqa: ARG002 - the range is the same for all
        """See ``ports.clusters.BoundsNodes``."""
        return MOST_NODES

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        """See ``ports.ClusterDriver.plan``."""
        return planning.plan(cluster, prices, self._config.name_prefix)

    def things_of_change(self, before: Cluster, after: Cluster) -> tuple[Sequence[tuple[str, str]], ...]:
        """See ``ports.clusters.PlansChanges``."""
        order = planning.network_zones(before, after)
        return tuple(planning.creates(cluster, self._config.name_prefix, order) for cluster in (before, after))

    def leaving_zones(self, work: CloudWork) -> Mapping[str, str]:
        """See ``ports.clusters.LeavesZones``."""
        field = "subnets" if work.cluster.settings.get("subnets") else "zones"
        return dict.fromkeys(network.leaving_zones(work), pointer("settings", field))

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:  # noqa: ARG002 - one serves all
        """See ``ports.clusters.ServesNodeGroups``."""
        return groups.provider(cluster)

    def group_items(self, cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
        """See ``ports.clusters.ServesNodeGroups``."""
        return groups.group_items(cluster, prices)

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        """See ``ports.ClusterDriver.inspect``."""
        builder = self._builder(work)
        # What stands counts as used: a creation that goes on must not need room for it twice.
        is_new = work.cluster.status != "ready" and not work.ledger.lines()
        findings = inspection.findings(builder.calls, work.cluster, work.account, is_new=is_new)
        return [*findings, *(inspection.network_findings(builder) if work.cluster.status == "ready" else ())]

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterDriver.ensure``. ``KeyError`` for a phase that is not ours."""
        builder = self._builder(work)
        if phase == "account":
            return check_account(builder)
        try:
            return _ENSURE[phase](builder)
        except (VendorNotFound, PermissionDenied) as error:
            # What an earlier step made may not be known everywhere yet, nor its tags, which the permissions ask for.
            if error.code not in _NEVER_LATE and builder.hiding():
                raise NotYetVisible(error.detail, code=error.code) from error
            raise

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterDriver.remove``."""
        builder = self._builder(work)
        if phase == "leftovers":
            return leftovers.remove(builder.calls, work.cluster.client_id)
        if phase == bastion.PHASE:
            return bastion.remove(builder)
        if phase == "identity":
            etcd_backup.release(builder)
        outcome = builder.unmake(phase)
        if phase == "identity" and outcome.done and work.cluster.status == "deleting":
            remaining_things = etcd_backup.remaining_things(work.cluster, self._config.name_prefix)
            return replace(outcome, message=f"Stays: {', '.join(remaining_things)}.") if remaining_things else outcome
        if phase == "control_plane" and outcome.done:
            return leftovers.remove_rest(builder.calls, work.cluster.client_id)
        return outcome

    def packs_api(self, work: CloudWork) -> PacksAccount:
        """See ``ports.clusters.AdmitsPacks``."""
        return own_api.packs_api(work, self._make_api)

    def forget_packs(self, work: CloudWork) -> None:
        """See ``ports.clusters.AdmitsPacks``."""
        own_api.forget_packs(work, self._make_api)

    def member_pool(self, cluster: Cluster) -> NewPool:
        """See ``ports.clusters.BalancesMembers``."""
        return members.pool(cluster)

    def member_zones(self, work: CloudWork) -> Sequence[str]:
        """See ``ports.clusters.BalancesMembers``."""
        return members.zones(self._builder(work))

    def member_line(self) -> tuple[str, str]:
        """See ``ports.clusters.BalancesMembers``: as ``providers.nodes.ec2`` has it; a test compares the two."""
        return members.LINE

    def targets(self, work: CloudWork, machine_ids: Sequence[str]) -> Mapping[str, str]:
        """See ``ports.clusters.BalancesMembers``."""
        return members.targets(self._builder(work), machine_ids)

    def admit(self, work: CloudWork, machine_id: str) -> None:
        """See ``ports.clusters.BalancesMembers``."""
        members.admit(self._builder(work), machine_id)

    def withdraw(self, work: CloudWork, machine_id: str) -> None:
        """See ``ports.clusters.BalancesMembers``."""
        members.withdraw(self._builder(work), machine_id)

    def release_first(self, work: CloudWork) -> Outcome:
        """See ``ports.clusters.BalancesMembers``."""
        return members.release_first(self._builder(work))

    def gone_parts(self, work: CloudWork, lines: Sequence[Resource]) -> Sequence[GonePart]:
        """See ``ports.clusters.LooksAtParts``."""
        return gone_parts(self._builder(work), lines)

    def tag_members(self, work: CloudWork, machine_ids: Sequence[str]) -> str | None:
        """See ``ports.clusters.MarksMembers``."""
        return members.name_cluster(self._builder(work), machine_ids)

    def snapshot_store(self, cluster: Cluster) -> SnapshotStore | None:
        """See ``ports.snapshots.KeepsSnapshots``."""
        return etcd_backup.store(cluster, self._config.name_prefix)

    def snapshots(self, work: CloudWork) -> Sequence[Snapshot]:
        """See ``ports.snapshots.KeepsSnapshots``."""
        return etcd_backup.listed(self._builder(work))

    def snapshot(self, work: CloudWork, snapshot_id: str) -> Snapshot | None:
        """See ``ports.snapshots.KeepsSnapshots``."""
        return etcd_backup.described(self._builder(work), snapshot_id)

    def remove_snapshots(self, work: CloudWork, ids: Collection[str]) -> None:
        """See ``ports.snapshots.KeepsSnapshots``."""
        etcd_backup.remove(self._builder(work), ids)

    def open_snapshot(self, work: CloudWork, snapshot_id: str) -> None:
        """See ``ports.snapshots.KeepsSnapshots``."""
        etcd_backup.grant(self._builder(work), snapshot_id)

    def close_snapshots(self, work: CloudWork) -> None:
        """See ``ports.snapshots.KeepsSnapshots``."""
        etcd_backup.grant(self._builder(work))

    def kept_snapshots(self, cluster: Cluster) -> Sequence[str]:
        """See ``ports.snapshots.KeepsSnapshots``."""
        return etcd_backup.remaining_things(cluster, self._config.name_prefix)

    def retag(self, work: CloudWork, stale_keys: Sequence[str]) -> Outcome:
        """See ``ports.Retags.retag``."""
        return retag.retag(self._builder(work), stale_keys)

    def console(self, work: CloudWork) -> str | None:
        """See ``ports.ShowsConsole.console``."""
        return machine.console(self._builder(work))

    def _builder(self, work: CloudWork) -> Builder:
        limit = session.only(work.account, self._config.name_prefix, work.cluster.client_id)
        clients = self._sessions.of(work.account, work.session, work.tenant, limit)
        return Builder.of(Calls(clients, region(work.cluster)), work, self._config)
