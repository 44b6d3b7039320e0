"""Cloud account or cluster whose rights a node provider's machines are made with.

A provider's kind reads the reference from its document; nobody else does. A reference of digits is the number of an
account. Another one is a name: of an account of the kind's cloud or, where the kind takes one, of a cluster. Where
several accounts have the name it is that of the oldest, so that a new account never takes over a provider.
"""

from __future__ import annotations

from collections.abc import Iterable

from stockyard.domain.nodes import provider_kinds
from stockyard.domain.nodes.declared_types import block_of
from stockyard.domain.nodes.provider_kinds import AccountReference
from stockyard.domain.records import CloudAccount, Cluster, NodeClaim, NodeEnvironment, NodeProvider
from stockyard.errors import NotFound
from stockyard.operations.engine.find import find_cluster
from stockyard.operations.listing import every
from stockyard.operations.services import Services


def reference_of(provider: NodeProvider) -> AccountReference | None:
    """The reference in the provider's document; None where its machines need no account."""
    return provider_kinds.kind(provider.kind).account(block_of(provider))


def account_number(services: Services, provider: NodeProvider) -> str | None:
    """The number of the provider's account. One that the document gives as a number costs no look, and may be gone."""
    reference = reference_of(provider)
    if reference is None or reference.name.isdecimal():
        return reference.name if reference is not None else None
    account = _named(services, provider, reference)
    return account.id if account is not None else None


def account_of(services: Services, provider: NodeProvider) -> CloudAccount | None:
    """The account that a provider works in; None when it needs none, works in a cluster, or when it is gone."""
    reference = reference_of(provider)
    if reference is None:
        return None
    if not reference.name.isdecimal():
        return _named(services, provider, reference)
    return services.store.get(CloudAccount, reference.name)


def host_of(services: Services, provider: NodeProvider) -> Cluster | None:
    """The cluster of the tenant that makes the provider's machines; None where it works in an account or alone."""
    reference = reference_of(provider)
    if reference is None or not reference.takes_cluster or reference.name.isdecimal():
        return None
    return _cluster(services, reference) if _named(services, provider, reference) is None else None


def fault(services: Services, provider: NodeProvider) -> str | None:
    """Fault of the reference in words: nothing has that number or name, or several things have it. None for none."""
    reference = reference_of(provider)
    if reference is None:
        return None
    kind = provider_kinds.kind(provider.kind)
    name = reference.name
    accounts = _accounts(services, provider, name)
    if len(accounts) > 1:
        numbers = " and ".join(account.id for account in accounts)
        return f"{len(accounts)} cloud accounts of {kind.cloud_title} are called {name}: give the number, {numbers}"
    cluster = _cluster(services, reference) if reference.takes_cluster else None
    if accounts and cluster is not None:
        return f"a cloud account and a cluster are called {name}: give {accounts[0].id} or {cluster.id}"
    if accounts or cluster is not None:
        return None
    return f"there is no cloud account {name} of {kind.cloud_title}" + (
        f", and no cluster {name}" if reference.takes_cluster else ""
    )


def users_of_account(services: Services, account: CloudAccount, *, by_name: bool = False) -> list[NodeProvider]:
    """The tenant's providers that work in the account; ``by_name``: only those that would lose it with its name."""
    return [
        provider
        for provider in every(services.store, NodeProvider)
        if (account_number(services, provider) == account.id and _is_meant(provider, account, by_name))
        or (not by_name and _takes_as_only(services, provider, account))
    ]


def _takes_as_only(services: Services, provider: NodeProvider, account: CloudAccount) -> bool:
    """Whether a provider that names no account works in this one, because it is the only one of the cloud. One that has
    nodes or environments holds every account: it may have made them while there was no other."""
    kind = provider_kinds.kind(provider.kind)
    if kind.cloud != account.provider or not kind.takes_only_account(block_of(provider)):
        return False
    accounts = [each.id for each in every(services.store, CloudAccount) if each.provider == account.provider]
    if accounts == [account.id]:
        return True
    placements = (claim.placement for claim in every(services.store, NodeClaim))
    if any(placement is not None and placement.provider_id == provider.id for placement in placements):
        return True
    return any(True for _ in every(services.store, NodeEnvironment, where={"provider_id": provider.id}))


def users_of_cluster(services: Services, cluster: Cluster) -> list[NodeProvider]:
    """The tenant's providers whose machines the cluster makes."""
    return [
        provider
        for provider in every(services.store, NodeProvider)
        if (host := host_of(services, provider)) is not None and host.id == cluster.id
    ]


def _is_meant(provider: NodeProvider, account: CloudAccount, by_name: bool) -> bool:
    reference = reference_of(provider)
    return not by_name or (reference is not None and reference.name == account.name)


def _accounts(services: Services, provider: NodeProvider, name: str) -> list[CloudAccount]:
    """Accounts of the kind's cloud that have the number or the name, the oldest first."""
    cloud = provider_kinds.kind(provider.kind).cloud
    accounts: Iterable[CloudAccount | None] = (
        [services.store.get(CloudAccount, name)] if name.isdecimal() else every(services.store, CloudAccount)
    )
    candidates = (
        each for each in accounts if each is not None and each.provider == cloud and name in (each.id, each.name)
    )
    return sorted(candidates, key=lambda account: int(account.id))


def _named(services: Services, provider: NodeProvider, reference: AccountReference) -> CloudAccount | None:
    return next(iter(_accounts(services, provider, reference.name)), None)


def _cluster(services: Services, reference: AccountReference) -> Cluster | None:
    try:
        return find_cluster(services, reference.name)
    except NotFound:
        return None
