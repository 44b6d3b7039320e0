"""Number of nodes that the network of a cluster takes. One more would be paid for, and never become ready."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stockyard.domain.pools.budgets import UNBOUNDED
from stockyard.domain.pools.node_groups import AUTOSCALER_GROUPS, GROUPS, name_of
from stockyard.domain.pools.records import ClusterClaim
from stockyard.domain.records import Cluster
from stockyard.domain.values.pointers import pointer
from stockyard.errors import QuotaExceeded
from stockyard.operations.listing import every
from stockyard.operations.services import Services
from stockyard.ports import Finding


def most_nodes(services: Services, cluster: Cluster) -> int | None:
    """Largest number of nodes that the cluster can have; None where its driver knows no limit."""
    driver = services.cluster_drivers.get(cluster.driver)
    return driver.most_nodes(cluster) if driver is not None else None


def remaining_nodes(services: Services, cluster: Cluster) -> int:
    """Number of further claims that the network of the cluster has room for."""
    most = most_nodes(services, cluster)
    if most is None:
        return UNBOUNDED
    # The first machine of a control plane has no claim.
    count = 1 + sum(1 for _ in every(services.store, ClusterClaim, prefix=f"{cluster.id}/"))
    return max(0, most - count)


def check_network_room(services: Services, cluster: Cluster, new: int) -> None:
    """``QuotaExceeded`` where so many new claims would be more than the network of the cluster takes."""
    if remaining_nodes(services, cluster) < new:
        raise network_refusal(services, cluster)


def network_refusal(services: Services, cluster: Cluster) -> QuotaExceeded:
    """The error for a node that the network of the cluster has no room for."""
    most = most_nodes(services, cluster)
    return QuotaExceeded(f"The network of cluster {cluster.name} takes {most} nodes, its control plane among them.")


def check_least(services: Services, cluster: Cluster, least: Iterable[int]) -> None:
    """``QuotaExceeded`` where pools that have to have ``least`` nodes each are more than the network takes."""
    most, sum_of_least = most_nodes(services, cluster), sum(least)
    if most is not None and sum_of_least + 1 > most:
        text = f"The network of the cluster takes {most} nodes, its control plane among them"
        raise QuotaExceeded(f"{text}; its pools have to have {sum_of_least}.")


def room_findings(services: Services, cluster: Cluster) -> Sequence[Finding]:
    """The group of the settings with which a cluster has more nodes than its network takes: a fault where it has them
    at least, a warning where it may come to have them."""
    most = most_nodes(services, cluster)
    if most is None:
        return ()
    findings: list[Finding] = []
    setting = AUTOSCALER_GROUPS if cluster.settings.get(AUTOSCALER_GROUPS) else GROUPS
    groups = list(cluster.settings.get(setting) or ())
    for field in ("min_size", "max_size"):
        count = 0
        for index, group in enumerate(groups):
            count += int(group.get(field) or 0)
            if count <= most:
                continue
            text = f"The network of the cluster takes {most} nodes; with {name_of(group)} it has"
            text += (
                f" {count} at least." if field == "min_size" else f" up to {count}. It grows to {most}, and no further."
            )
            findings.append(Finding(pointer("settings", setting, index, field), text, warning=field == "max_size"))
            break
    return findings
