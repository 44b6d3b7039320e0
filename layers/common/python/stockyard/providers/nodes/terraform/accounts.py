"""Account in which a provider's runs are carried out: the one that the document names, or the tenant's only one.

A stage's operator may have one too, off by default. Only shared providers may be carried out there, which the platform
alone registers: a template of a tenant's own never runs in an account of the operator.
"""

from __future__ import annotations

from collections.abc import Callable

from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.platform import is_shared
from stockyard.domain.records import CloudAccount, NodeProvider
from stockyard.errors import NodeCouldNotBeProvisioned
from stockyard.ports import Store

CLOUD = "aws"


def runner_account(store: Store, provider: NodeProvider, named: CloudAccount | None) -> CloudAccount:
    """The account of the provider's runs. ``named`` is the one of the document's ``runner.cloudAccount``.

    ``NodeCouldNotBeProvisioned`` says what to do where there is none, or several.
    """
    if named is not None:
        return named
    own = [account for account in store.list(CloudAccount, limit=100).items if account.provider == CLOUD]
    if len(own) == 1:
        return own[0]
    why = "no account of AWS is registered" if not own else f"{len(own)} accounts of AWS are registered"
    raise NodeCouldNotBeProvisioned(
        f"Node provider {provider.name} does not say where its templates are applied, and {why}:"
        " set spec.terraform.runner.cloudAccount."
    )


def wants_operator(provider: NodeProvider) -> bool:
    """Whether the document says ``runner.operator``."""
    return bool((block_of(provider).get("runner") or {}).get("operator"))


def operator_fault(provider: NodeProvider, operator_runner: str) -> str | None:
    """Reason why the provider's templates may not be applied in the operator's account; None when they may, or do not
    ask for it. ``operator_runner`` is the stage's setting."""
    if not wants_operator(provider):
        return None
    if not is_shared(provider):
        return "only shared node providers, which the platform registers, run in the operator's account"
    return (
        None if operator_runner else "this stage has no account of the operator's for runs: operator_runner is not set"
    )


def operator_account(
    store_of: Callable[[str], Store], provider: NodeProvider, operator_runner: str
) -> tuple[str, CloudAccount]:
    """Tenant and account of the operator's runs. ``NodeCouldNotBeProvisioned`` where there are none, or not for this
    provider."""
    fault = operator_fault(provider, operator_runner)
    tenant, _, number = operator_runner.partition("/")
    account = store_of(tenant).get(CloudAccount, number) if fault is None else None
    if account is None:
        raise NodeCouldNotBeProvisioned(
            f"Node provider {provider.name}: {fault or f'cloud account {operator_runner} is not registered'}."
        )
    return tenant, account
