"""The table of an overlay's machines: no address twice, none given out again within a day, hubs by places."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.domain.clusters import overlay
from stockyard.domain.clusters.overlay import Full, Table, admitted, entries, released
from stockyard.domain.values import times

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = "100.64.0.0/20"
OWNERS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans(), st.integers(0, 100_000)), max_size=60)


@given(OWNERS)
def test_no_address_is_of_two_machines_nor_comes_back_within_a_day(steps: list[tuple[str, bool, int]]) -> None:
    table, now, departures = Table(), NOW, dict[str, datetime]()
    for owner, comes, seconds in steps:
        now += timedelta(seconds=seconds)
        if comes:
            before = table.peers.get(owner, {}).get("address")
            table = admitted(table, SPAN, owner, f"key of {owner}", now)
            address = str(table.peers[owner]["address"])
            assert before in (None, address)
            assert before or address not in departures or departures[address] + overlay.REST_SPAN <= now
        elif owner in table.peers:
            departures[str(table.peers[owner]["address"])] = now
            table = released(table, owner, now)
        addresses = [peer["address"] for peer in table.peers.values()]
        assert len(set(addresses)) == len(addresses)
        assert Table.read(table.text()) == table


def test_addresses_are_of_the_lower_half_alone_and_end() -> None:
    table = Table(number=2046)
    for number in range(3):
        table = admitted(table, SPAN, f"ncl_{number}", "key", NOW)
    assert [peer["address"] for peer in table.peers.values()] == ["100.64.7.254", "100.64.7.255", "100.64.0.1"]
    addresses = [f"100.64.{n // 256}.{n % 256}" for n in range(1, 2048)]
    resting = dict.fromkeys(addresses[1_500:], times.to_text(NOW))
    full = Table({address: {"address": address, "key": ""} for address in addresses[:1_500]}, resting)
    with pytest.raises(Full, match="are used"):
        admitted(full, SPAN, "one more", "key", NOW)
    many = Table({str(n): {"address": str(n), "key": ""} for n in range(overlay.MOST_PEERS)})
    with pytest.raises(Full, match=f"at most {overlay.MOST_PEERS}"):
        admitted(many, "100.64.0.0/16", "one more", "key", NOW)


def test_each_hub_has_a_slot_of_its_own_until_it_leaves() -> None:
    table = Table()
    for number in range(overlay.HUBS):
        table = admitted(table, SPAN, f"ncl_{number}", "key", NOW, local=f"10.0.0.{number}", hub=True)
    assert [peer["slot"] for peer in table.peers.values()] == list(range(overlay.HUBS))
    with pytest.raises(Full, match="hubs"):
        admitted(table, SPAN, "one more", "key", NOW, hub=True)
    assert admitted(table, SPAN, "ncl_3", "another key", NOW, hub=True).peers["ncl_3"]["slot"] == 3
    table = released(table, "ncl_3", NOW)
    assert admitted(table, SPAN, "one more", "key", NOW, hub=True).peers["one more"]["slot"] == 3


def test_the_list_says_where_hubs_are_and_nothing_of_others_but_their_keys() -> None:
    table = admitted(Table(), SPAN, "clu_1", "hub's key", NOW, local="10.0.0.5", hub=True)
    table = admitted(table, SPAN, "ncl_1", "node's key", NOW, local="10.0.0.6")
    assert entries(table, "api.test") == [
        {
            "address": "100.64.0.1",
            "key": "hub's key",
            "hub": True,
            "endpoints": ["10.0.0.5:51820", "api.test:51820"],
        },
        {"address": "100.64.0.2", "key": "node's key"},
    ]
    assert released(table, "ncl_1", NOW).version() != table.version()
    assert released(table, "nobody", NOW) is table


def test_a_full_table_is_a_record_and_its_list_a_config_map() -> None:
    """The longest rows that there can be; what is more is refused by name."""
    span = "100.112.0.0/12"
    peers: dict[str, dict[str, object]] = {
        f"ncl_{n:026}": {"address": f"100.127.{n // 250}.{n % 250}", "key": f"{n:043}="} for n in range(1_999)
    }
    peers |= {f"ncl_hub_{n:022}": {**peer, "slot": n, "local": "192.168.255.254"}
              for n, peer in enumerate(list(peers.values())[:overlay.HUBS])}  # fmt: skip
    table = admitted(Table(dict(list(peers.items())[8:]), number=1), span, "ncl_" + "x" * 26, "k" * 44, NOW)
    assert len(table.text()) < 350_000
    assert len(json.dumps(entries(table, "e" * 200), separators=(",", ":"))) < 1_000_000
    resting = {f"100.115.{n // 250}.{n % 250}": times.to_text(NOW) for n in range(3_000)}
    crowded = Table({owner: peers[owner] for owner in list(peers)[:1_900]}, resting)
    with pytest.raises(Full, match="came and went"):
        admitted(crowded, span, "ncl_" + "x" * 26, "k" * 44, NOW)
    present = next(iter(crowded.peers))
    assert admitted(crowded, span, present, "another", NOW).peers[present]["key"] == "another"
    admitted(crowded, span, "ncl_" + "x" * 26, "k" * 44, NOW + overlay.REST_SPAN)


def test_a_row_has_256_bytes() -> None:
    row = len(str({"address": "100.127.255.254", "key": "k" * 44, "hub": True, "endpoints": ["e" * 100]}))
    assert row <= 256
    assert overlay.MOST_PEERS * 2 * 256 < 1024 * 1024
