"""Steps of a change of a ready cluster, in order and in words: the rows of its operation that have something to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from stockyard.domain.clusters.snapshots import SETTING as SETTING_OF_SNAPSHOTS
from stockyard.domain.pools.node_groups import name_of, worker_groups
from stockyard.domain.records import Cluster
from stockyard.domain.values.frozen import dataclass
from stockyard.lifecycle.clusters.repave import OF_MEMBERS, REQUIRED, SETTING, Reason
from stockyard.lifecycle.procedure import Procedure


@dataclass(frozen=True, slots=True)
class _Step:
    before: Cluster
    after: Cluster
    reasons: Sequence[Reason]
    packs: str = ""
    replaced_members: Sequence[str] = ()

    def differs(self, *names: str) -> bool:
        return any(self.before.settings.get(name) != self.after.settings.get(name) for name in names)

    @property
    def is_upgrade(self) -> bool:
        return self.before.kubernetes_version != self.after.kubernetes_version

    def approval(self) -> Iterator[str]:
        if self.reasons and self.before.settings.get(SETTING) == REQUIRED:
            yield f"Wait for approval: {' '.join(reason['message'] for reason in self.reasons)}"

    def network(self) -> Iterator[str]:
        if self.differs("zones", "subnets") and (self._new_zones() or not self._leaving_zones()):
            where = self._in(self._new_zones())
            yield f"Make subnets, routes and gateways{where}; nodes and members may then stand there."
        if self.differs("nat_gateways"):
            yield "Make the NAT gateways that come, lead the routes there, then remove those that nothing leads to."

    def _zones(self, cluster: Cluster) -> list[str]:
        subnets = (entry["zone"] for entry in cluster.settings.get("subnets") or ())
        return [str(zone) for zone in (*subnets, *(cluster.settings.get("zones") or ()))]

    def _new_zones(self) -> list[str]:
        """The zones that come; those that nobody had named before may be there already."""
        before = self._zones(self.before)
        return [zone for zone in self._zones(self.after) if before and zone not in before]

    def _leaving_zones(self) -> list[str]:
        after = self._zones(self.after)
        return [zone for zone in self._zones(self.before) if after and zone not in after]

    @staticmethod
    def _in(zones: Sequence[str]) -> str:
        return f" in {', '.join(zones)}" if zones else " of zones that come"

    def security(self) -> Iterator[str]:
        if self.differs("api_cidrs", "ssh_cidrs"):
            yield "Let in what the CIDRs say, then no more what they said before."

    def endpoint(self) -> Iterator[str]:
        if not self.differs("zones", "subnets"):
            return
        leaving = ", ".join(self._leaving_zones())
        if self._new_zones() or not leaving:
            yield f"Have the balancer stand{self._in(self._new_zones())} too."
        if leaving:
            yield f"Take {leaving} out of the balancer, then remove what the cluster's network has there."

    def snapshots(self) -> Iterator[str]:
        if self.differs("etcd_snapshots"):
            yield "Change how many daily snapshots are kept; those that there are stay until they are too many."

    def identity(self) -> Iterator[str]:
        if self.differs(SETTING_OF_SNAPSHOTS):
            yield "Make or give up the bucket of etcd's snapshots, and the right of members to write to it."
            before, after = ((side.settings.get(SETTING_OF_SNAPSHOTS) or {}) for side in (self.before, self.after))
            if before.get("bucket") not in (None, after.get("bucket")):
                yield f"Snapshots in {before['bucket']} stay there, and nobody removes them but its owner."

    def bastion(self) -> Iterator[str]:
        if self.differs("bastion"):
            yield "Make, replace or remove the bastion."

    def members(self) -> Iterator[str]:
        if self.differs("control_plane_size") or OF_MEMBERS & {reason["code"] for reason in self.reasons}:
            yield "Replace or add members of the control plane one after the other; most of them serve all the time."
            for name in self.replaced_members:
                yield (
                    f"Add a member in the place of {name}; when it is healthy take {name} out of the balancer and of"
                    " etcd, and remove it."
                )

    def version_skew(self) -> Iterator[str]:
        if self.is_upgrade:
            minor = self.after.kubernetes_version
            yield f"Wait until the API server has {minor}; from then on new nodes have it, and none has it before."

    def surplus(self) -> Iterator[str]:
        names = {name_of(group) for group in worker_groups(self.after.settings)}
        removed_names = [name_of(group) for group in worker_groups(self.before.settings) if name_of(group) not in names]
        if removed_names:
            yield f"Drain the nodes of {', '.join(removed_names)} and give them back."

    def pools(self) -> Iterator[str]:
        pools = [reason["pool"] for reason in self.reasons if "pool" in reason]
        if self.is_upgrade or self.before.nodes_since != self.after.nodes_since:
            yield "Replace the nodes of every pool one by one, within its budgets."
        elif pools:
            yield f"Replace the nodes of {', '.join(pools)} one by one, within the budgets of each."
        elif worker_groups(self.before.settings) != worker_groups(self.after.settings):
            yield "Bring the pools to their groups."

    def profile(self) -> Iterator[str]:
        if self.packs:
            yield self.packs


_WORDS: Mapping[str, Callable[[_Step], Iterator[str]]] = {
    "approval": _Step.approval,
    "network": _Step.network,
    "security": _Step.security,
    "endpoint": _Step.endpoint,
    "identity": _Step.identity,
    "bastion": _Step.bastion,
    "snapshots": _Step.snapshots,
    "members": _Step.members,
    "version_skew": _Step.version_skew,
    "surplus": _Step.surplus,
    "pools": _Step.pools,
    "profile": _Step.profile,
}


def steps(
    procedure: Procedure,
    before: Cluster,
    after: Cluster,
    reasons: Sequence[Reason],
    *,
    packs: str = "",
    members: Sequence[str] = (),
) -> list[str]:
    """The steps that have something to do; none of rows whose words nobody has written. ``packs`` says what becomes of
    packs of profiles, ``members`` are those of the control plane that are replaced."""
    step = _Step(before, after, reasons, packs, members)
    return [text for name in procedure.names if name in _WORDS for text in _WORDS[name](step)]
