"""The AWS accounts whose request events are a tenant's, as the platform has set them. The platform keeps the lists: an
account is one tenant's and no other's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stockyard.domain.records import Fact
from stockyard.domain.values.rights import OPERATOR
from stockyard.errors import Conflict, InvalidInput, PreconditionFailed
from stockyard.operations.services import Services
from stockyard.ports import Create, Remove, Replace, Store, Write

_LIST, _OWNER = "event-accounts/", "event-account/"
"""Before a tenant: its list. Before an account: whose it is."""


def tenant_of_account(platform: Store, account: str) -> str | None:
    """The tenant that events of an AWS account are requests of; None: of nobody."""
    fact = platform.get(Fact, f"{_OWNER}{account}")
    return fact.value if fact else None


def rights_of_events(platform: Store, tenant: str) -> str:
    """Rights that requests by event of the tenant have, as ``domain.values.rights`` names them."""
    fact = platform.get(Fact, f"{_LIST}{tenant}")
    return _read(fact)["rights"] if fact else OPERATOR


def _read(fact: Fact) -> dict[str, Any]:
    """Accounts and rights of a list."""
    value: dict[str, Any] = json.loads(fact.value)
    return value


def event_accounts_view(platform: Services, tenant: str) -> dict[str, Any]:
    """The list as an ``EventAccountsView`` document; ``version`` is 0 until it is set."""
    fact = platform.store.get(Fact, f"{_LIST}{tenant}")
    if fact is None:
        return {"accounts": [], "rights": OPERATOR, "updated_at": None, "version": 0}
    return {**_read(fact), "updated_at": fact.time, "version": fact.version}


def check_free(platform: Services, tenant: str, accounts: Sequence[str]) -> None:
    """``InvalidInput`` at each account that is another tenant's."""
    for number, account in enumerate(accounts):
        if tenant_of_account(platform.store, account) not in (None, tenant):
            raise InvalidInput.at(f"/accounts/{number}", "Events of this account are another tenant's requests.")


def set_event_accounts(
    platform: Services, tenant: str, accounts: Sequence[str], version: int, rights: str = OPERATOR
) -> dict[str, Any]:
    """The list, changed, with whose each account is, and the ``rights`` of all of them.

    ``PreconditionFailed`` unless it stands at ``version``.

    An account of another tenant is ``InvalidInput``; it has to be taken from that tenant's list first.
    """
    current = event_accounts_view(platform, tenant)
    if current["version"] != version:
        raise PreconditionFailed(f"The list of event accounts is at version {current['version']}, not {version}.")
    check_free(platform, tenant, accounts)
    now = platform.now()
    fact = Fact(
        f"{_LIST}{tenant}", json.dumps({"accounts": list(accounts), "rights": rights}), now, version=version + 1
    )
    removed = (Remove(Fact, f"{_OWNER}{account}") for account in current["accounts"] if account not in accounts)
    added = (Fact(f"{_OWNER}{account}", tenant, now) for account in accounts if account not in current["accounts"])
    writes: list[Write] = [Replace(fact) if version else Create(fact), *removed, *map(Create, added)]
    try:
        platform.store.commit(*writes)
    except Conflict as conflict:
        raise PreconditionFailed("The list or one of its accounts was changed by someone else just now.") from conflict
    return event_accounts_view(platform, tenant)
