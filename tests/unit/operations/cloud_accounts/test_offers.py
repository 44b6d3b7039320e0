"""Offers of cloud accounts are kept for each, refreshed account by account, and go with the account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from stockyard.domain.records import CloudAccount, PriceSheet
from stockyard.domain.values import ids
from stockyard.errors import CredentialsRevoked, VendorTimeout, VendorUnavailable
from stockyard.operations.cloud_accounts.accounts import change_account, delete_account, verify_account
from stockyard.operations.cloud_accounts.offers import MOST_BYTES, MOST_SILENCE, MOST_TIME, OffersRefresh, Report
from stockyard.operations.services import Services
from stockyard.ports import Cloud, Create, Replace, Store, Verification
from tests.harness.worlds.ports import partial_port, with_ports
from tests.unit.operations.conftest import World, make_world

TIME = "2026-01-01T00:00:00.000Z"


class Market(Cloud):
    """A cloud that sells by account. ``faults`` are raised by project, every call takes ``seconds``."""

    sells_by_account = True

    def __init__(self, world: World) -> None:
        self._world = world
        self.faults: dict[str, Exception] = {}
        self.asked: list[str] = []
        self.seconds = 0.0
        self.size = 0

    def offers(self, account: CloudAccount, tenant: str, moment: str) -> bytes:
        project = str(account.attributes["project_id"])
        self.asked.append(f"{tenant}/{account.id}")
        self._world.clock.advance(self.seconds)
        if project in self.faults:
            raise self.faults[project]
        return f"{project} at {moment}".encode().ljust(self.size)

    def verify(self, account: CloudAccount, tenant: str) -> Verification:
        return Verification(account.attributes["project_id"] != "closed", "asked")

    def check_attributes(self, attributes: Mapping[str, Any]) -> None: ...

    def regions(self, account: CloudAccount) -> tuple[str, ...]:
        return ()

    def principal(self, attributes: Mapping[str, Any]) -> str:
        return str(attributes["project_id"])


class Yard:
    """Two tenants with accounts in a market, and a refresh over both."""

    def __init__(self) -> None:
        self.world = make_world()
        self.market = partial_port(Market, self.world)
        clouds = {**self.world.services.clouds, "market": self.market}
        self.services = with_ports(self.world.services, clouds=clouds)
        self.refresh = OffersRefresh(self.world.registry, self.world.clock, self.services_of)

    def services_of(self, tenant: str) -> Services:
        return replace(self.services, store=self.store(tenant))

    def store(self, tenant: str) -> Store:
        return self.world.registry.store(tenant)

    def account(self, tenant: str, number: str, project: str, verification: str = "verified") -> CloudAccount:
        attributes = {"project_id": project}
        account = CloudAccount(number, "market", "m", "", attributes, "x", verification, "", TIME, TIME)
        self.store(tenant).commit(Create(account))
        return account

    def sheet(self, tenant: str, number: str) -> bytes | None:
        return self.services_of(tenant).prices.sheet(int(number))

    def sheets(self, tenant: str) -> list[str]:
        return [sheet.id for sheet in self.store(tenant).list(PriceSheet).items]


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_every_verified_account_of_every_tenant_is_refreshed_each_time(yard: Yard) -> None:
    yard.account("acme", "2", "one")
    yard.account("globex", "1", "two")
    yard.account("globex", "3", "new", "unverified")
    assert set(yard.refresh.run().refreshed) == {"acme/2", "globex/1"}
    assert yard.sheet("acme", "2") == f"one at {yard.services.now()}".encode()
    assert (yard.sheets("acme"), yard.sheets("globex")) == (["account-2"], ["account-1"])
    yard.world.clock.advance(900)
    yard.refresh.run()
    assert yard.sheet("globex", "1") == f"two at {yard.services.now()}".encode()
    assert yard.services_of("globex").store.get(PriceSheet, ids.account_sheet("1")).refreshed_at == yard.services.now()


def test_accounts_of_clouds_that_sell_to_all_alike_are_not_asked(yard: Yard) -> None:
    assert yard.refresh.run() == Report({}, {})


@pytest.mark.parametrize("fault", [CredentialsRevoked("the key is no more"), KeyError("price")])
def test_an_account_that_fails_keeps_its_sheet_and_hinders_no_other(yard: Yard, fault: Exception) -> None:
    for number, project in (("2", "one"), ("3", "two"), ("4", "three")):
        yard.account("acme", number, project)
    yard.refresh.run()
    before = yard.sheet("acme", "3")
    yard.world.clock.advance(900)
    yard.market.faults["two"] = fault
    report = yard.refresh.run()
    assert set(report.refreshed) == {"acme/2", "acme/4"}
    assert list(report.failed) == ["acme/3"]
    assert yard.sheet("acme", "3") == before
    assert yard.sheet("acme", "2") == f"one at {yard.services.now()}".encode()


@pytest.mark.parametrize("fault", [VendorTimeout("no answer"), VendorUnavailable("down")])
def test_a_cloud_that_does_not_answer_is_asked_no_more_by_this_run(yard: Yard, fault: Exception) -> None:
    for number in range(2, 9):
        yard.account("acme", str(number), f"p{number}")
        yard.market.faults[f"p{number}"] = fault
    report = yard.refresh.run()
    assert len(yard.market.asked) == MOST_SILENCE
    assert len(report.failed) == 7
    assert sorted(report.failed.values())[:5] == ["NotAsked"] * 5
    yard.market.faults.clear()
    assert len(yard.refresh.run().refreshed) == 7


def test_a_run_ends_in_time_and_each_account_has_its_turn(yard: Yard) -> None:
    for number in range(2, 12):
        yard.account("acme", str(number), f"p{number}")
    yard.market.seconds = MOST_TIME.total_seconds() / 4
    report = yard.refresh.run()
    assert (len(report.refreshed), len(report.failed)) == (4, 6)
    for _ in range(40):
        yard.refresh.run()
    assert len(yard.sheets("acme")) == 10, "each run begins somewhere else"


def test_an_answer_for_an_account_that_changed_meanwhile_is_dropped(yard: Yard) -> None:
    account = yard.account("acme", "2", "one")

    def moved(of_account: CloudAccount, tenant: str, moment: str) -> bytes:
        yard.store(tenant).commit(Replace(replace(account, attributes={"project_id": "other"}, version=2)))
        return b"of the old project"

    yard.market.offers = moved
    report = yard.refresh.run()
    assert (list(report.failed), yard.sheets("acme")) == (["acme/2"], [])


def test_a_sheet_too_large_for_a_record_is_refused(yard: Yard) -> None:
    yard.account("acme", "2", "one")
    yard.market.size = MOST_BYTES + 1
    assert "VendorRefused" in yard.refresh.run().failed["acme/2"]
    assert verify_account(yard.services, "2", "user:ann").verification == "verified"
    assert yard.sheets("acme") == []


def test_verification_brings_the_first_sheet_with_it(yard: Yard) -> None:
    yard.account("acme", "2", "one", "unverified")
    yard.account("acme", "3", "closed", "unverified")
    assert verify_account(yard.services, "2", "user:ann").verification == "verified"
    assert yard.sheet("acme", "2") == f"one at {yard.services.now()}".encode()
    assert verify_account(yard.services, "3", "user:ann").verification == "failed"
    assert yard.sheets("acme") == ["account-2"]


def test_an_account_is_verified_also_where_its_offers_cannot_be_had(yard: Yard) -> None:
    yard.account("acme", "2", "one", "unverified")
    yard.market.faults["one"] = VendorUnavailable("down")
    assert verify_account(yard.services, "2", "user:ann").verification == "verified"
    assert yard.sheet("acme", "2") is None


def test_the_sheet_goes_with_the_account_or_with_its_project(yard: Yard) -> None:
    for number in ("2", "3"):
        yard.account("acme", number, f"p{number}")
    yard.refresh.run()
    delete_account(yard.services, "2", "user:ann")
    assert yard.sheets("acme") == ["account-3"]
    changed = change_account(yard.services, "3", 1, {"description": "same place"}, "user:ann", "request")
    assert yard.sheets("acme") == ["account-3"]
    attributes = {"attributes": {"project_id": "elsewhere"}}
    change_account(yard.services, "3", changed.version, attributes, "user:ann", "request")
    assert yard.sheets("acme") == []
