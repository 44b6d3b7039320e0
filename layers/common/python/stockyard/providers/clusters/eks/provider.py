"""Clusters on EKS: ``ports.ClusterDriver`` by phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stockyard.domain.nodes.manifests import ProviderDocument
from stockyard.domain.pools.group_mapping import Group
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.values.prices import PriceItem
from stockyard.errors import NotYetVisible, PermissionDenied, VendorNotFound
from stockyard.ports import CloudWork, ClusterDriver, ClusterPlan, Finding, Outcome, PriceList
from stockyard.ports.clusters import AdmitsPacks, ClusterToken, GonePart, MintsTokens, PacksAccount
from stockyard.providers.clouds.aws.calls import Calls
from stockyard.providers.clouds.aws.cluster_tokens import RoleKeys
from stockyard.providers.clouds.aws.policies import session
from stockyard.providers.clouds.aws.resources import retagging
from stockyard.providers.clouds.aws.resources.cluster_building import check_account, gone_parts
from stockyard.providers.clouds.aws.sessions import OpenSecrets, SessionFactory, Sessions
from stockyard.providers.clusters.eks import (
    addons,
    control_plane,
    groups,
    inspection,
    names,
    network,
    objects,
    planning,
    removal,
    storage,
    validation,
)
from stockyard.providers.clusters.eks.access import access, endpoint, identity, people
from stockyard.providers.clusters.eks.building import Builder
from stockyard.providers.clusters.eks.configuration import EksConfig, region
from stockyard.providers.clusters.eks.nodes import node_groups
from stockyard.providers.kubernetes.client import KubernetesApi

__all__ = ["EksClusterDriver", "EksConfig"]

_ENSURE: dict[str, Callable[[Builder], Outcome]] = {
    "account": check_account,
    "network": network.ensure,
    "identity": identity.ensure,
    "control_plane": control_plane.ensure,
    "access": access.ensure,
    "node_groups": node_groups.ensure,
    "addons": addons.ensure,
    "storage": storage.ensure,
}


class EksClusterDriver(ClusterDriver):
    """Makes and removes the AWS side of a cluster in the tenant's account."""

    looks_at_parts = True
    retags = True

    def __init__(
        self,
        config: EksConfig,
        session_factory: SessionFactory,
        make_api: objects.MakeApi = KubernetesApi,
        secrets: OpenSecrets | None = None,
    ) -> None:
        self._config, self._make_api = config, make_api
        self._sessions = Sessions(session_factory, secrets=secrets)
        self._role_keys = RoleKeys()

    @property
    def minter(self) -> MintsTokens:
        """See ``ports.ClusterDriver.minter``."""
        return self

    @property
    def packs_admin(self) -> AdmitsPacks:
        """See ``ports.ClusterDriver.packs_admin``."""
        return self

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        """See ``ports.ClusterDriver.validate``."""
        return [
            *validation.findings(cluster, prices),
            *planning.name_findings(cluster, self._config.name_prefix),
            *endpoint.findings(cluster, self._config.egress_addresses),
        ]

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:
        """See ``ports.ClusterDriver.plan``."""
        return planning.plan(cluster, prices, self._config.name_prefix)

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:  # noqa: ARG002 - one serves all
        """See ``ports.clusters.ServesNodeGroups``."""
        return groups.provider(cluster)

    def group_items(self, cluster: Cluster, prices: PriceList) -> Sequence[PriceItem]:
        """See ``ports.clusters.ServesNodeGroups``."""
        return planning.group_items(cluster, prices)

    def inspect(self, work: CloudWork) -> Sequence[Finding]:
        """See ``ports.ClusterDriver.inspect``."""
        return list(inspection.findings(self._builder(work)))

    def upgrade_findings(self, work: CloudWork) -> Sequence[Finding]:
        """See ``ports.clusters.Upgrades``."""
        return list(inspection.upgrade_findings(self._builder(work)))

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterDriver.ensure``. ``KeyError`` for a phase that is not ours."""
        builder = self._builder(work)
        try:
            if phase == objects.PHASE:
                return objects.ensure(builder, self._make_api)
            return _ENSURE[phase](builder)
        except (VendorNotFound, PermissionDenied) as error:
            # What an earlier step made may not be known everywhere yet, nor its tags, which the permissions ask for.
            if phase != "account" and builder.hiding():
                raise NotYetVisible(error.detail, code=error.code) from error
            raise

    def remove(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterDriver.remove``."""
        builder = self._builder(work)
        if phase == removal.LEFTOVERS:
            return removal.leftovers(builder, self._make_api)
        return removal.remove(phase, builder)

    def mint(self, work: CloudWork, role: str) -> ClusterToken:
        """See ``ports.clusters.MintsTokens.mint``."""
        return people.mint(self._builder(work), role, self._role_keys)

    def packs_api(self, work: CloudWork) -> PacksAccount:
        """See ``ports.clusters.AdmitsPacks``."""
        return objects.packs_api(self._builder(work), self._make_api)

    def forget_packs(self, work: CloudWork) -> None:
        """See ``ports.clusters.AdmitsPacks``."""
        objects.forget_packs(self._builder(work), self._make_api)

    def gone_parts(self, work: CloudWork, lines: Sequence[Resource]) -> Sequence[GonePart]:
        """See ``ports.clusters.LooksAtParts``."""
        return gone_parts(self._builder(work), lines)

    def group_of_node(self, cluster: Cluster, node: Mapping[str, Any]) -> tuple[str, str] | None:
        """See ``ports.clusters.AdoptsNodes.group_of_node``."""
        return people.group_of_node(cluster, node)

    def retag(self, work: CloudWork, stale_keys: Sequence[str]) -> Outcome:
        """See ``ports.Retags.retag``."""
        return retagging.retag(self._builder(work), stale_keys)

    def secret_name(self, cluster: Cluster) -> str:
        """See ``ports.clusters.MintsTokens.secret_name``."""
        return names.secret_name(cluster)

    def _builder(self, work: CloudWork) -> Builder:
        limit = session.only(work.account, self._config.name_prefix, work.cluster.client_id)
        clients = self._sessions.of(work.account, work.session, work.tenant, limit)
        return Builder.of(Calls(clients, region(work.cluster)), work, self._config)
