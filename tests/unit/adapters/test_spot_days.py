"""Spot prices of the last day: what each hourly refresh adds, what goes with time, and how much is written and read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from local.testing.memory_store import MemoryRegistry
from stockyard.adapters.catalog import Ec2PriceList, StoredPriceSheets, pack_day
from stockyard.domain.nodes import spot_days
from stockyard.domain.nodes.offers import SpotPrice, SpotPrices
from stockyard.domain.values import times

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def refreshed(hour: float, **prices: dict[str, float]) -> SpotPrices:
    """The prices of an hour; names of types have ``_`` for a dot."""
    types = {
        name.replace("_", "."): {zone: SpotPrice(usd, usd, usd) for zone, usd in zones.items()}
        for name, zones in prices.items()
    }
    return SpotPrices("us-east-1", times.to_text(BEGIN + timedelta(hours=hour)), types)


def test_each_hour_with_another_price_is_a_point_and_what_is_older_than_a_day_goes() -> None:
    store = MemoryRegistry().platform()
    sheets, prices = StoredPriceSheets(store), Ec2PriceList(store)
    assert prices.spot_history("us-east-1", "m5.large") == {}

    def points_of(name: str = "m5.large") -> dict[str, list[tuple[int, float]]]:
        return {
            zone: [(round((times.from_text(at) - BEGIN) / timedelta(hours=1)), usd) for at, usd in points]
            for zone, points in prices.spot_history("us-east-1", name).items()
        }

    sheets.write_spot(refreshed(0, m5_large={"a": 0.03, "b": 0.04}, c5_large={"a": 0.02}))
    sheets.write_spot(refreshed(1, m5_large={"a": 0.03, "b": 0.05}, c5_large={"a": 0.02}))
    sheets.write_spot(refreshed(2, m5_large={"a": 0.031, "b": 0.05}, c5_large={"a": 0.02}))
    assert points_of() == {"a": [(0, 0.03), (2, 0.031)], "b": [(0, 0.04), (1, 0.05)]}
    assert points_of("c5.large") == {"a": [(0, 0.02)]}
    sheets.write_spot(refreshed(2, m5_large={"a": 0.031, "b": 0.05}))
    assert points_of()["a"] == [(0, 0.03), (2, 0.031)], "a refresh that runs twice adds nothing"
    sheets.write_spot(refreshed(25.2, m5_large={"a": 0.031}))
    assert points_of() == {"a": [(0, 0.03), (2, 0.031)]}, "what held at the beginning of the day stays"
    assert points_of("c5.large") == {}, "a type that is sold no more goes with its last point"
    sheets.write_spot(refreshed(26, m5_large={"a": 0.031}))
    assert points_of() == {"a": [(2, 0.031)]}


def test_a_question_about_a_type_reads_one_small_part(seed: int) -> None:
    chance = Random(seed)
    names = [name for name in (f"f{n // 12}.s{n % 12}" for n in range(1000)) if spot_days.part_of(name) == 0]
    assert 100 <= len(names) <= 150
    prices = {name: {zone: round(chance.uniform(0.01, 3), 4) for zone in "abcdef"} for name in names}
    day: spot_days.Points = {}
    for hour in range(25):
        # Four prices a day of each pool, as EC2 has smoothed them.
        for zones in prices.values():
            for zone in zones:
                if chance.random() < 1 / 6:
                    zones[zone] = round(zones[zone] * chance.uniform(0.97, 1.03), 4)
        refresh = {
            name: {zone: SpotPrice(usd, usd, usd) for zone, usd in zones.items()} for name, zones in prices.items()
        }
        day = spot_days.merged(day, refresh, BEGIN + timedelta(hours=hour))
    assert len(pack_day(day)) < 40_000
