"""Account in which a provider's runs are carried out: the one that the document names, or the tenant's only one."""

from __future__ import annotations

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
