"""Cloud accounts: register, change, verify, delete."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from stockyard.domain.records import CloudAccount, Cluster, Name, NodeClaim, Operation, PriceSheet
from stockyard.domain.values import ids
from stockyard.domain.values.states import Verification
from stockyard.errors import (
    Conflict,
    InUse,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    UnexpectedBehavior,
    VendorError,
)
from stockyard.lifecycle.change import Transition
from stockyard.operations.cloud_accounts.of_provider import users_of_account
from stockyard.operations.engine.tell import account_writes
from stockyard.operations.listing import every
from stockyard.operations.quotas.limits import check_room, limit_of, refusal
from stockyard.operations.services import Services
from stockyard.ports import Add, Create, Put, Remove, Replace

EXTERNAL_ID_BYTES = 24
QUOTA = "cloud_accounts"
MOST_NAMES = 10
"""Nodes that a refusal names."""


def find_account(services: Services, number_or_name: str) -> CloudAccount:
    """The account of that number, or the only one of that name. Raises ``NotFound``, and ``InvalidInput`` for a name
    that several accounts have."""
    account = services.store.get(CloudAccount, number_or_name) if number_or_name.isdecimal() else None
    if account is not None:
        return account
    named = [account for account in every(services.store, CloudAccount) if account.name == number_or_name]
    if not named:
        raise NotFound(f"There is no cloud account {number_or_name}.")
    if len(named) > 1:
        numbers = " and ".join(account.id for account in named)
        raise InvalidInput(f"{len(named)} cloud accounts are called {number_or_name}: give the number, {numbers}.")
    return named[0]


def plan_registration(services: Services, provider: str, attributes: Mapping[str, Any]) -> None:
    """Refuse what ``register_account`` would refuse, by the same checks."""
    services.clouds[provider].check_attributes(attributes)
    check_room(services, QUOTA)


def register_account(
    services: Services,
    *,
    provider: str,
    name: str,
    description: str,
    attributes: dict[str, Any],
    tags: dict[str, str],
    actor: str,
    claim: str | None = None,
    secrets: Mapping[str, str] = MappingProxyType({}),
) -> CloudAccount:
    """A new, unverified account with the tenant's next number and an external id that we generate (192 bits).

    ``claim`` names the request where it may be repeated: a second try finds what the first one made. ``secrets`` are
    sealed before the record is there, so that no account is without; the sweep removes those of no account. Raises
    ``InvalidInput`` for what the cloud does not have, and ``QuotaExceeded``.
    """
    name_of_claim = f"claim/{claim}"
    if claim and (claim_name := services.store.get(Name, name_of_claim)):
        return find_account(services, claim_name.owner)
    plan_registration(services, provider, attributes)
    number = services.store.next_number("cloud-account")
    now = services.now()
    account = CloudAccount(
        id=str(number),
        provider=provider,
        name=name,
        description=description,
        attributes=attributes,
        external_id=base64.urlsafe_b64encode(services.clock.randomness(EXTERNAL_ID_BYTES)).decode(),
        verification="unverified",
        verification_message="Not verified yet.",
        created_at=now,
        updated_at=now,
        secrets=tuple(secrets),
        tags=tags,
        sequence=1,
    )
    for secret, value in secrets.items():
        services.secrets.put(ids.account_secret(services.tenant, account.id, secret), value)
    transition = Transition("CloudAccount", None, "unverified", "Registered", f"Cloud account {number} was registered.")
    claimed = [Create(Name(name_of_claim, account.id))] if claim else []
    limit = limit_of(services, QUOTA)
    use = Add(f"quota/{QUOTA}", 1, limit=limit)
    try:
        services.store.commit(use, Create(account), *claimed, *account_writes(services, actor, account, transition))
    except Conflict as conflict:
        _forget_secrets(services, account.id, secrets)
        if conflict.index == 0:
            raise refusal(QUOTA, limit) from conflict
        raise
    _request_prices(services, account)
    return account


def _request_prices(services: Services, account: CloudAccount) -> None:
    """Plans in the account's regions are to have prices."""
    for region in services.clouds[account.provider].regions(account):
        services.price_requests.request(region)


def change_account(
    services: Services,
    number: str,
    version: int,
    fields: dict[str, Any],
    actor: str,
    request_id: str,
    secrets: Mapping[str, str | None] = MappingProxyType({}),
) -> CloudAccount:
    """The changed account. New attributes make it unverified again; who we are in an account in use stays.

    ``secrets`` are sealed first: who repeats a change that was cut off gives the same ones again. One that is None is
    taken away.
    """
    account = find_account(services, number)
    if account.version != version:
        raise PreconditionFailed(f"The cloud account is at version {account.version}, not {version}.")
    attributes = fields.get("attributes") or account.attributes
    services.clouds[account.provider].check_attributes(attributes)
    is_moved = moves(services, account, attributes)
    if is_moved:
        _check_unused(services, account)
    if fields.get("name", account.name) != account.name:
        _check_name(services, account)
    changed = replace(account, **fields, updated_at=services.now(), version=version + 1, sequence=account.sequence + 1)
    if changed.attributes != account.attributes or secrets:
        changed = replace(
            changed, verification="unverified", verification_message="The attributes changed.", warnings=()
        )
    if is_moved:
        changed = replace(changed, principal_id="")
    transition = Transition(
        "CloudAccount", account.verification, changed.verification, "Changed", f"Changed: {', '.join(sorted(fields))}."
    )
    subject = f"cloud-account/{account.id}"
    for secret, value in secrets.items():
        if value is not None:
            services.secrets.put(ids.account_secret(services.tenant, account.id, secret), value)
    audit = services.audit_record(actor, "ChangeCloudAccount", subject, request_id, transition.message)
    # What another project was offered says nothing of this one.
    old_sheet = [Remove(PriceSheet, ids.account_sheet(number))] if moves(services, account, attributes) else []
    try:
        services.store.commit(
            Replace(changed), Create(audit), *old_sheet, *account_writes(services, actor, changed, transition)
        )
    except Conflict as conflict:
        raise PreconditionFailed("The cloud account was changed by someone else just now.") from conflict
    _forget_secrets(services, account.id, [secret for secret, value in secrets.items() if value is None])
    _request_prices(services, changed)
    return changed


def _check_unused(services: Services, account: CloudAccount) -> None:
    """``InUse`` where clusters or nodes stand in the account: whoever it is elsewhere could not remove them."""
    if users := clusters_of(services, account.id):
        raise InUse(f"Cloud account {account.id} is used by {', '.join(cluster.name for cluster in users)}.")
    providers = {provider.id for provider in users_of_account(services, account)}
    claims = every(services.store, NodeClaim) if providers else ()
    nodes = [claim.name for claim in claims if claim.placement and claim.placement.provider_id in providers]
    if nodes:
        more = f" and {len(nodes) - MOST_NAMES} more" if len(nodes) > MOST_NAMES else ""
        raise InUse(f"Cloud account {account.id} is used by the nodes {', '.join(sorted(nodes)[:MOST_NAMES])}{more}.")


def _check_name(services: Services, account: CloudAccount) -> None:
    """``InUse`` where node providers know the account by the name that it has."""
    users = ", ".join(provider.name for provider in users_of_account(services, account, by_name=True))
    if users:
        raise InUse(f"Cloud account {account.name} keeps its name: node providers {users} refer to it by that.")


def _forget_secrets(services: Services, number: str, secrets: Iterable[str]) -> None:
    for secret in secrets:
        services.secrets.delete(ids.account_secret(services.tenant, number, secret))


def moves(services: Services, account: CloudAccount, attributes: Mapping[str, Any]) -> bool:
    """Whether with these attributes we would be somebody else in the cloud, or somewhere else."""
    cloud = services.clouds[account.provider]
    return cloud.principal(attributes) != cloud.principal(account.attributes)


def clusters_of(services: Services, number: str) -> list[Cluster]:
    """Every cluster that stands on the account, also half-made ones."""
    return list(every(services.store, Cluster, where={"cloud_account_id": int(number)}))


def verify_account(services: Services, number: str, actor: str) -> CloudAccount:
    """Prove that the credentials work, and for us alone; the result is on the account. One that works gets its first
    sheet of offers where its cloud sells by account, so that it can be planned with at once.

    ``UnexpectedBehavior`` when the cloud does not answer; the last result stays.
    """
    account = find_account(services, number)
    try:
        verification = services.clouds[account.provider].verify(account, services.tenant)
    except VendorError as error:
        raise UnexpectedBehavior(f"The cloud could not be asked ({error.error_type}): {error.detail}") from error
    now = services.now()
    state: Verification = "verified" if verification.works else "failed"
    reason = "Verified" if verification.works else "NotVerified"
    changed = replace(
        account,
        verification=state,
        verification_message=verification.message,
        warnings=verification.warnings,
        principal_id=verification.principal_id or account.principal_id,
        verified_at=now,
        updated_at=now,
        version=account.version + 1,
        sequence=account.sequence + 1,
    )
    transition = Transition("CloudAccount", account.verification, state, reason, verification.message)
    from stockyard.operations.cloud_accounts.offers import first_sheet

    sheet = first_sheet(services, changed) if verification.works else None
    writes = [] if sheet is None else [Put(sheet)]
    services.store.commit(Replace(changed), *writes, *account_writes(services, actor, changed, transition))
    return changed


def delete_account(services: Services, number: str, actor: str) -> Operation:
    """Remove an account that nothing uses. ``InUse`` names the clusters and node providers that do. The operation is
    over when it is returned."""
    account = find_account(services, number)
    users = [f"cluster {cluster.name}" for cluster in clusters_of(services, number)]
    users += [f"node provider {provider.name}" for provider in users_of_account(services, account)]
    if users:
        raise InUse(f"Cloud account {number} is used by {', '.join(users)}.")
    removed_account = replace(account, sequence=account.sequence + 1, version=account.version + 1)
    transition = Transition(
        "CloudAccount", account.verification, None, "Deleted", f"Cloud account {number} was removed."
    )
    now = services.now()
    subject = f"cloud-account/{number}"
    operation = Operation(
        services.new_id(ids.OPERATION), "delete_cloud_account", subject, "succeeded", (), now, now, actor, account.name
    )
    services.store.commit(
        Remove(CloudAccount, account.id, version=account.version),
        Remove(PriceSheet, ids.account_sheet(number)),
        Add(f"quota/{QUOTA}", -1),
        Create(operation),
        *account_writes(services, actor, removed_account, transition),
    )
    _forget_secrets(services, account.id, account.secrets)
    return operation
