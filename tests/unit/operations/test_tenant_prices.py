"""Prices as a tenant sees them: everybody's list, and what its own accounts were offered."""

from __future__ import annotations

from stockyard.domain.records import PriceSheet
from stockyard.domain.values import ids
from stockyard.operations.tenant_prices import TenantPrices
from stockyard.ports import Put
from tests.unit.operations.conftest import World

SHEET = b"what the cloud has written"


def put_sheet(world: World, tenant: str, data: bytes = SHEET) -> None:
    """Keep a sheet of the tenant's account 2."""
    world.registry.store(tenant).commit(Put(PriceSheet(ids.account_sheet("2"), "2026-01-01T00:00:00.000Z", data)))


def test_a_sheet_is_that_of_the_tenants_own_account(world: World) -> None:
    assert world.services.prices.sheet(2) is None
    put_sheet(world, "another-tenant", b"another's")
    assert world.services.prices.sheet(2) is None
    put_sheet(world, world.services.tenant)
    assert world.services.prices.sheet(2) == SHEET
    assert world.services.prices.sheet(1) is None


def test_a_refreshed_sheet_is_seen_at_once(world: World) -> None:
    prices = world.services.prices
    put_sheet(world, world.services.tenant, b"older")
    assert prices.sheet(2) == b"older"
    put_sheet(world, world.services.tenant)
    assert prices.sheet(2) == SHEET


def test_what_everybody_pays_comes_from_the_public_list(world: World) -> None:
    public = world.services.factories.prices()
    prices = TenantPrices(public, world.services.store)
    assert prices.instance("us-east-1", "t3.medium") == public.instance("us-east-1", "t3.medium") is not None
    assert prices.offered("us-east-1", "t3.medium") is public.offered("us-east-1", "t3.medium")
    assert prices.rate("us-east-1", "gp3") == public.rate("us-east-1", "gp3") is not None
