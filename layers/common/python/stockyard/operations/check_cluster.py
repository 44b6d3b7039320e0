"""The checks of a new cluster that need the account, the catalogue or the cloud. Nothing is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stockyard.domain import times
from stockyard.domain.control_plane import LEAST_MEMORY_MIB, LEAST_VCPU
from stockyard.domain.records import CloudAccount, Cluster
from stockyard.errors import FieldProblem, InvalidInput, VendorError
from stockyard.operations.ledger import Owner, StoreLedger
from stockyard.operations.plan_cluster import control_plane_type
from stockyard.operations.services import Services
from stockyard.ports import CloudWork, Finding

ROLE_NAME_LIMIT = 64


def account_of(services: Services, number: int) -> CloudAccount:
    """The account a new cluster may use, else ``InvalidInput`` at ``/cloud_account_id``."""

    def refuse(detail: str) -> InvalidInput:
        return InvalidInput(detail, errors=[FieldProblem("/cloud_account_id", detail)])

    account = services.store.get(CloudAccount, str(number))
    if account is None:
        raise refuse(f"There is no cloud account {number}.")
    if account.provider not in services.providers:
        raise refuse(f"Clusters on {account.provider} are not built yet.")
    if account.verification == "failed":
        raise refuse(f"The last verification of cloud account {number} failed: {account.verification_message}")
    return account


def check(services: Services, cluster: Cluster, account: CloudAccount) -> list[Finding]:
    """Warnings; ``InvalidInput`` with every fault found in the catalogue or the cloud.

    When the cloud does not answer just now, its live checks are skipped: the background phase reports.
    """
    _check_role_name(services, cluster)
    findings = list(_catalog_findings(services, cluster.settings))
    if not findings:
        findings = _live_findings(services, cluster, account)
    faults = [FieldProblem(f.pointer, f.detail) for f in findings if not f.warning]
    if faults:
        raise InvalidInput(f"{len(faults)} field(s) are not valid.", errors=faults)
    return findings


def _check_role_name(services: Services, cluster: Cluster) -> None:
    name = f"{services.rules.name_prefix}-{cluster.client_id}-node-role"
    if len(name) > ROLE_NAME_LIMIT:
        detail = f"The role name {name} would have more than {ROLE_NAME_LIMIT} characters."
        raise InvalidInput(detail, errors=[FieldProblem("/name", detail)])


def _live_findings(services: Services, cluster: Cluster, account: CloudAccount) -> list[Finding]:
    ledger = StoreLedger(services, Owner.of_cluster(cluster, "check", 0), "account")
    work = CloudWork(
        services.tenant, services.installation, cluster, account, ledger, services.clock.now(), f"check-{cluster.id}"
    )
    try:
        return list(services.providers[cluster.provider].inspect(work))
    except VendorError as error:
        detail = f"The cloud account could not be asked ({error.error_type}); it is checked again in the background."
        return [Finding("/cloud_account_id", detail, warning=True)]


def _instance_types(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if settings.get("control_plane_instance_type"):
        yield "/settings/control_plane_instance_type", str(settings["control_plane_instance_type"])
    for i, group in enumerate(settings.get("autoscaler_node_groups") or ()):
        for j, name in enumerate(group.get("instance_types") or ()):
            yield f"/settings/autoscaler_node_groups/{i}/instance_types/{j}", str(name)


def _catalog_findings(services: Services, settings: Mapping[str, Any]) -> Iterator[Finding]:
    region = str(settings.get("region_name") or "us-east-1")
    for pointer, name in _instance_types(settings):
        if services.prices.offered(region, name) is False:
            yield Finding(pointer, f"{name} is not offered in {region}.")
    yield from _size_findings(services, settings, region)


def _size_findings(services: Services, settings: Mapping[str, Any], region: str) -> Iterator[Finding]:
    """A type that is too small for a control plane, where the person has written it. What is not known may do."""
    pointer, name = "/settings/control_plane_instance_type", control_plane_type(settings)
    for i, group in enumerate(settings.get("autoscaler_node_groups") or ()):
        if group.get("role") == "control":
            pointer = f"/settings/autoscaler_node_groups/{i}/instance_types/0"
            break
    known = services.prices.instance(region, name)
    if known and (known["vcpu"] < LEAST_VCPU or known["memory_mib"] < LEAST_MEMORY_MIB):
        yield Finding(
            pointer,
            f"{name} has {known['vcpu']} vCPU and {known['memory_mib']} MiB; a control plane needs at least"
            f" {LEAST_VCPU} vCPU and {LEAST_MEMORY_MIB} MiB. Choose a larger type.",
        )


def expired(services: Services, lease: str | None) -> bool:
    """Whether a lease has run out."""
    return lease is None or services.clock.now() > times.from_text(lease)
