"""Keep what each cloud account is offered, where its cloud sells by account: types, prices, and what is free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from stockyard.domain.records import CloudAccount, PriceSheet
from stockyard.domain.values import ids
from stockyard.domain.values.frozen import dataclass
from stockyard.errors import StockyardError, VendorRefused, VendorTimeout, VendorUnavailable
from stockyard.operations.services import Services
from stockyard.ports import Check, Clock, Put, Registry
from stockyard.ports.clouds import Cloud

MOST_TIME = timedelta(minutes=2)
"""How long a run begins with further accounts. The rest has its turn in a later run: each begins somewhere else."""
MOST_SILENCE = 2
"""How many accounts of one cloud find it unreachable before a run asks it no more."""
MOST_BYTES = 300_000
"""Of a sheet. A record of the table holds 400 KB."""
VERIFIED = "verified"


@dataclass(frozen=True, slots=True)
class Report:
    """Accounts as ``tenant/number``: how many bytes the new sheet of each has, and why others keep what they had."""

    refreshed: Mapping[str, int]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OffersRefresh:
    """The use case, with the ports it needs."""

    registry: Registry
    clock: Clock
    services_of: Callable[[str], Services]

    def run(self) -> Report:
        """Refresh each verified account whose cloud sells by account. One that fails keeps its sheet and hinders no
        other; a cloud that does not answer is not asked again and again."""
        refreshed: dict[str, int] = {}
        failed: dict[str, str] = {}
        silent: dict[str, int] = {}
        ends = self.clock.now() + MOST_TIME
        for tenant, account in self._accounts():
            name = f"{tenant}/{account.id}"
            if self.clock.now() >= ends or silent.get(account.provider, 0) >= MOST_SILENCE:
                failed[name] = "NotAsked"
                continue
            try:
                refreshed[name] = refresh(self.services_of(tenant), account)
            except StockyardError as fault:
                failed[name] = f"{fault.error_type}: {fault.detail}"
                if isinstance(fault, VendorTimeout | VendorUnavailable):
                    silent[account.provider] = silent.get(account.provider, 0) + 1
            except Exception as fault:
                # An answer that nobody has thought of, too, is that account's alone.
                failed[name] = type(fault).__name__
        return Report(refreshed, failed)

    def _accounts(self) -> list[tuple[str, CloudAccount]]:
        """Accounts to be asked, from a random one on: so that those behind a slow one are not always the same."""
        accounts = [
            (tenant, account)
            for tenant, account in self.registry.all(CloudAccount)
            if account.verification == VERIFIED and _seller(self.services_of(tenant), account) is not None
        ]
        start = int.from_bytes(self.clock.randomness(4)) % len(accounts) if accounts else 0
        return accounts[start:] + accounts[:start]


def refresh(services: Services, account: CloudAccount) -> int:
    """Ask for the account's offers and keep them; how many bytes the sheet has. Raises ``VendorError`` leaves, and
    ``Conflict`` when the account was changed or removed meanwhile: then the answer may be another project's."""
    sheet = _new_sheet(services, account)
    if sheet is None:
        return 0
    services.store.commit(Check(CloudAccount, account.id, {"version": account.version}), Put(sheet))
    return len(sheet.data)


def first_sheet(services: Services, account: CloudAccount) -> PriceSheet | None:
    """The sheet of an account that was just verified. None where its cloud does not sell by account, or does not tell
    now: the next refresh brings it."""
    try:
        return _new_sheet(services, account)
    except StockyardError:
        return None


def _new_sheet(services: Services, account: CloudAccount) -> PriceSheet | None:
    cloud = _seller(services, account)
    if cloud is None:
        return None
    moment = services.now()
    data = cloud.offers(account, services.tenant, moment)
    if len(data) > MOST_BYTES:
        raise VendorRefused(f"what account {account.id} is offered has {len(data)} bytes, compressed")
    return PriceSheet(ids.account_sheet(account.id), moment, data)


def _seller(services: Services, account: CloudAccount) -> Cloud | None:
    cloud = services.clouds.get(account.provider)
    return cloud if cloud is not None and cloud.sells_by_account else None
