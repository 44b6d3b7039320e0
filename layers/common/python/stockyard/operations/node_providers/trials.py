"""Trials of a provider's document by the vendor that would make its machines."""

from __future__ import annotations

from collections.abc import Sequence

from stockyard.domain.records import NodeProvider
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, VendorError
from stockyard.operations.cloud_accounts.of_provider import account_of, host_of, reference_of
from stockyard.operations.services import Services


def trial_faults(
    services: Services,
    provider: NodeProvider,
    at: Sequence[str | int] = ("spec",),
    silent: set[str] | None = None,
) -> list[FieldProblem]:
    """Faults that the provider's vendor finds, with ``at`` before their places. A vendor that cannot be asked now
    refuses nothing: its answer comes with the first machine. Accounts that are ``silent`` are not asked, and one that
    turns out to be becomes one of them: each is waited for once."""
    source = services.node_sources.get(provider.kind)
    reference = reference_of(provider)
    if source is None or not source.judges_templates or reference is None:
        return []
    if silent is not None and reference.name in silent:
        return []
    try:
        account, host = account_of(services, provider), host_of(services, provider)
        findings = source.judge(provider, account, host, services.tenant)
    except VendorError as error:
        if error.retryable:
            if silent is not None:
                silent.add(reference.name)
            return []
        return [FieldProblem(pointer(*at, *reference.field), f"{error.detail} {error.hint}".strip())]
    return [
        FieldProblem(pointer(*at) + finding.pointer.removeprefix("/spec"), finding.detail)
        for finding in findings
        if not finding.warning
    ]
