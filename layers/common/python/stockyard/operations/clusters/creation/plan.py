"""Resources that a cluster would make, and its costs: the plan of a dry run. What stands in the cloud is the driver's
to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stockyard.domain.month_budgets import Scope, passing_text, usd_month_of
from stockyard.domain.pools.node_groups import name_of, worker_groups
from stockyard.domain.records import Cluster
from stockyard.domain.values.notes import remark
from stockyard.domain.values.prices import PriceItem
from stockyard.operations.costs.plan_notes import known_hour, passed_budgets
from stockyard.operations.pricing import kept_warnings, plan_of, price
from stockyard.operations.services import Services
from stockyard.ports import Finding
from stockyard.ports.clusters import ClusterPlan


def billed_items(services: Services, cluster: Cluster) -> Sequence[PriceItem]:
    """The bill of the cluster while it stands, with the nodes that every group has at the start."""
    driver = services.cluster_drivers[cluster.driver]
    return [*driver.plan(cluster, services.prices).items, *driver.group_items(cluster, services.prices)]


def plan(services: Services, cluster: Cluster, findings: Sequence[Finding]) -> dict[str, Any]:
    """The body of a dry run's answer."""
    driver_plan = services.cluster_drivers[cluster.driver].plan(cluster, services.prices)
    pools = [("pool", name_of(group)) for group in worker_groups(cluster.settings)]
    creates = [("keycloak client", cluster.client_id), *driver_plan.creates, *pools]
    return plan_of(
        billed_items(services, cluster),
        creates=[{"kind": kind, "name": name} for kind, name in creates],
        warnings=[*_warnings(cluster, findings, driver_plan), *_budget_warnings(services, cluster)],
    )


def _budget_warnings(services: Services, cluster: Cluster) -> list[dict[str, Any]]:
    own = {Scope(cluster.id): usd_month_of(cluster.limits)}
    more = known_hour(billed_items(services, cluster))
    passed = passed_budgets(services, cluster.id, "", more, own)
    return [{"pointer": "", "detail": f"{passing_text(budget, more)} It would be refused."} for budget in passed]


def answer_of(services: Services, cluster: Cluster, findings: Sequence[Finding]) -> dict[str, Any]:
    """Warnings and costs in the plan of the cluster: the answer to its creation says the same."""
    driver_plan = services.cluster_drivers[cluster.driver].plan(cluster, services.prices)
    return {"warnings": _warnings(cluster, findings, driver_plan), "price": price(billed_items(services, cluster))}


def _warnings(cluster: Cluster, findings: Sequence[Finding], driver_plan: ClusterPlan) -> list[dict[str, str]]:
    return [
        *(remark(finding.pointer, finding.detail) for finding in findings if finding.warning),
        *(remark(finding.pointer, finding.detail) for finding in driver_plan.remarks),
        *kept_warnings(cluster.keep_failed, driver_plan.items),
    ]
