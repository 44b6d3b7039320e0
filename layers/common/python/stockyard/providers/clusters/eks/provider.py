"""Clusters on EKS: ``ports.ClusterDriver`` by phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stockyard.domain.manifests import ProviderDocument
from stockyard.domain.node_groups import Group
from stockyard.domain.records import Cluster
from stockyard.ports import CloudWork, ClusterPlan, Finding, Outcome, PriceList
from stockyard.providers.clouds.aws.sessions import SessionFactory, Sessions
from stockyard.providers.clusters.eks import groups, validation


@dataclass(frozen=True, slots=True)
class EksConfig:
    """Names and addresses of this stage. Fields mean what they mean in ``stockyard.settings``."""

    name_prefix: str
    api_url: str
    issuer: str
    visibility_seconds: int = 60


_ENSURE: dict[str, Callable[[CloudWork], Outcome]] = {}


class EksClusterDriver:
    """Makes and removes the AWS side of a cluster in the tenant's account."""

    def __init__(self, config: EksConfig, session_factory: SessionFactory) -> None:
        self._config = config
        self._sessions = Sessions(session_factory)

    def validate(self, cluster: Cluster, prices: PriceList) -> Sequence[Finding]:
        """See ``ports.ClusterDriver.validate``."""
        return list(validation.findings(cluster, prices))

    def plan(self, cluster: Cluster, prices: PriceList) -> ClusterPlan:  # noqa: ARG002
        """See ``ports.ClusterDriver.plan``."""
        return ClusterPlan((), ())

    def group_provider(self, cluster: Cluster, group: Group) -> ProviderDocument:  # noqa: ARG002 - one serves all
        """See ``ports.clusters.ServesNodeGroups``."""
        return groups.provider(cluster)

    def inspect(self, work: CloudWork) -> Sequence[Finding]:  # noqa: ARG002
        """See ``ports.ClusterDriver.inspect``."""
        return ()

    def ensure(self, phase: str, work: CloudWork) -> Outcome:
        """See ``ports.ClusterDriver.ensure``. ``KeyError`` for a phase that is not ours."""
        return _ENSURE[phase](work)

    def remove(self, phase: str, work: CloudWork) -> Outcome:  # noqa: ARG002
        """See ``ports.ClusterDriver.remove``."""
        raise KeyError(phase)
