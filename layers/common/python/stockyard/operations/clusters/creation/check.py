"""The checks of a new cluster that need the account, the catalogue or the cloud. Nothing is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stockyard.domain import cloud_kinds
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import FieldProblem, InvalidInput, VendorError
from stockyard.lifecycle.clusters.change_scope import speaks_against
from stockyard.lifecycle.clusters.cluster_changes import Difference
from stockyard.operations.clusters.creation.zone_users import zone_findings
from stockyard.operations.engine.ledger import Owner, StoreLedger
from stockyard.operations.fleet.pools.groups import group_findings
from stockyard.operations.quotas.network_room import room_findings
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, ClusterDriver, Finding


def account_of(services: Services, number: int, cluster_type: str, driver: str | None = None) -> CloudAccount:
    """The account a new cluster of that type may use, else ``InvalidInput`` at ``/cloud_account_id``; or at
    ``/driver`` where that is none of the account's."""
    account = services.store.get(CloudAccount, str(number))
    if account is None:
        raise InvalidInput.at("/cloud_account_id", f"There is no cloud account {number}.")
    if (account.provider, cluster_type) not in services.driver_names:
        title = cloud_kinds.clouds()[account.provider].title
        raise InvalidInput.at("/cloud_account_id", f"Clusters on {title} are not built yet.")
    drivers = services.driver_names[account.provider, cluster_type]
    if driver not in (None, *drivers):
        title = cloud_kinds.clouds()[account.provider].title
        raise InvalidInput.at("/driver", f"Clusters on {title} are made by {' or '.join(drivers)}.")
    if account.verification == "failed":
        text = f"The last verification of cloud account {number} failed: {account.verification_message}"
        raise InvalidInput.at("/cloud_account_id", text)
    return account


def check(
    services: Services, cluster: Cluster, account: CloudAccount, changes: Sequence[Difference] | None = None
) -> list[Finding]:
    """Warnings; ``InvalidInput`` with every fault found in the catalogue or the cloud. A ready cluster is one that
    stands, as it is to be: ``changes`` are what is to change of it, and what is wrong elsewhere is a warning.

    Prices of a region that nobody has named before are waited for a while. When the cloud does not answer just now, its
    live checks are skipped: the background phase reports.
    """
    services.price_requests.wait(str(cluster.settings.get("region_name") or ""))
    findings = list(services.cluster_drivers[cluster.driver].validate(cluster, services.prices))
    findings += group_findings(services, cluster)
    findings += room_findings(services, cluster)
    findings = findings if changes is None else of_change(findings, changes)
    if all(finding.warning for finding in findings):
        live = _live_findings(services, cluster, account)
        findings += live if changes is None else of_change(live, changes)
    refuse(findings)
    return findings


def of_change(findings: Sequence[Finding], changes: Sequence[Difference]) -> list[Finding]:
    """The findings of a change: a fault of what the change does not touch is a warning."""
    return [
        finding
        if finding.warning or speaks_against(finding.pointer, changes, dispensable=finding.dispensable)
        else replace(finding, warning=True)
        for finding in findings
    ]


def refuse(findings: Sequence[Finding]) -> None:
    """``InvalidInput`` with all findings that are no warnings, if there are any."""
    faults = [FieldProblem(f.pointer, f.detail) for f in findings if not f.warning]
    if faults:
        raise InvalidInput.of(faults)


def live_findings(driver: ClusterDriver, work: CloudWork) -> list[Finding]:
    """Findings of the cloud about the settings, and about the minor that a cluster which stands is to have."""
    findings = list(driver.inspect(work))
    # Who may not even make such a cluster may mostly not ask about it either, and a denial would hide why.
    is_refused = not all(finding.warning for finding in findings)
    if work.cluster.status == "ready" and not is_refused:
        findings += driver.upgrade_findings(work)
    return findings


def _live_findings(services: Services, cluster: Cluster, account: CloudAccount) -> list[Finding]:
    ledger = StoreLedger(services, Owner.of_cluster(cluster, "check", 0), "account")
    work = CloudWork(
        services.tenant, services.installation, cluster, account, ledger, services.clock.now(), f"check-{cluster.id}"
    )
    driver = services.cluster_drivers[cluster.driver]
    # Of the records alone: they answer also where the cloud does not.
    findings = zone_findings(services, driver, work) if cluster.status == "ready" else []
    try:
        return [*findings, *live_findings(driver, work)]
    except VendorError as error:
        detail = f"The cloud account could not be asked ({error.error_type}); it is checked again in the background."
        return [*findings, Finding("/cloud_account_id", detail, warning=True)]
