"""Range of each subnet of a cluster's own VPC, in every VPC and for every number of zones."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockyard.providers.clouds.aws.network.free_ranges import free_parts
from stockyard.providers.clusters.ec2.network.layout import (
    LETTERS,
    MOST_ZONES,
    counts_of,
    laid_out,
    merged,
    zones_by_key,
)

VPCS = st.builds(
    lambda address, length: IPv4Network((int(IPv4Address(address)), length), strict=False),
    st.ip_addresses(v=4),
    st.integers(16, 24),
)
COUNTS = st.integers(1, MOST_ZONES)


def assert_sound(vpc: IPv4Network, subnets: dict[str, str], count: int) -> None:
    ranges = [IPv4Network(text) for text in subnets.values()]
    letters = LETTERS[:count]
    assert list(subnets) == [f"{tier}-{letter}" for tier in ("public", "private") for letter in letters]
    assert all(subnet.subnet_of(vpc) and 16 < subnet.prefixlen <= 28 for subnet in ranges)
    ordered = sorted(ranges)
    assert all(int(a.broadcast_address) < int(b.network_address) for a, b in pairwise(ordered))


@given(VPCS, COUNTS)
def test_every_new_vpc_has_room_for_each_number_of_zones(vpc: IPv4Network, count: int) -> None:
    subnets = laid_out(str(vpc), [count])
    assert_sound(vpc, subnets, count)
    assert subnets == laid_out(str(vpc), [count])
    sizes = {key: IPv4Network(cidr).num_addresses for key, cidr in subnets.items()}
    assert len({size for key, size in sizes.items() if key.startswith("private")}) == 1, "zones are equal"
    assert min(sizes[f"private-{x}"] for x in LETTERS[:count]) >= max(sizes[f"public-{x}"] for x in LETTERS[:count])


@given(VPCS)
def test_two_zones_have_the_subnets_of_earlier_releases(vpc: IPv4Network) -> None:
    """Written as the releases before had it: sixteenths 0 and 1, and quarters 1 and 2."""
    sixteenths, quarters = (list(vpc.subnets(bits)) for bits in (4, 2))
    earlier = {"public-a": sixteenths[0], "public-b": sixteenths[1], "private-a": quarters[1], "private-b": quarters[2]}
    assert laid_out(str(vpc), [2]) == {key: str(subnet) for key, subnet in earlier.items()}


@given(VPCS.filter(lambda vpc: vpc.prefixlen < 22), st.sets(COUNTS, min_size=1))
def test_a_network_grows_beside_what_it_has(vpc: IPv4Network, numbers: set[int]) -> None:
    """In whatever steps, from one zone or more to six; what is there stays as it is."""
    counts = sorted(numbers)
    for index in range(len(counts)):
        subnets = laid_out(str(vpc), counts[: index + 1])
        assert_sound(vpc, subnets, counts[index])
        before = laid_out(str(vpc), counts[:index])
        assert before.items() <= subnets.items()


@given(VPCS.filter(lambda vpc: vpc.prefixlen >= 22), st.sets(COUNTS, min_size=2))
def test_a_full_vpc_says_so_and_never_overlaps(vpc: IPv4Network, numbers: set[int]) -> None:
    counts, full = sorted(numbers), "has no room for a public and a private subnet in each of"
    try:
        subnets = laid_out(str(vpc), counts)
    except ValueError as error:
        subnets, text = {}, str(error)
    else:
        text = full
        assert_sound(vpc, subnets, counts[-1])
    assert full in text


def test_a_small_vpc_of_two_zones_has_no_room_for_six() -> None:
    with pytest.raises(ValueError, match="in each of 6 zones"):
        laid_out("10.0.0.0/24", [2, 6])


@given(VPCS, st.lists(st.integers(0, 2**12 - 1), max_size=12), st.integers(16, 28), st.integers(1, 8))
def test_free_parts_are_those_that_a_search_by_trial_finds(
    vpc: IPv4Network, offsets: list[int], length: int, count: int
) -> None:
    small = [
        IPv4Network((int(vpc.network_address) + offset % (2 ** (28 - vpc.prefixlen)) * 16, 28)) for offset in offsets
    ]
    # The oracle looks at each part by itself; only so many that it ends soon.
    length = min(max(length, vpc.prefixlen), vpc.prefixlen + 8, 28)
    parts = [part for part in vpc.subnets(new_prefix=length) if not any(part.overlaps(other) for other in small)]
    assert free_parts(vpc, length, small, count) == parts[:count]
    assert free_parts(vpc, vpc.prefixlen - 1, small, count) == []


def test_zones_keep_their_letters() -> None:
    assert merged(["b", "a"], ["a", "c", "b"]) == ["b", "a", "c"]
    assert counts_of([["a", "b"], ["a", "b", "c"], ["a", "b"]], 5) == [2, 3, 5]
    assert zones_by_key(["x", "y"])["private-b"] == "y"
