"""The ranges of a cluster's subnets: none overlaps, all lie in the VPC, and Modelplane's own are found again."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv4Network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stockyard.providers.clusters.eks.layout import private_cidrs, public_cidrs, service_cidr

BASES = st.sampled_from(["10.0.0.0", "10.8.0.0", "10.100.0.0", "172.16.0.0", "172.20.0.0", "172.31.0.0", "192.168.0.0"])


@st.composite
def networks(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A VPC and two to six ranges in it that do not overlap, of any sizes that AWS takes."""
    vpc = IPv4Network((draw(BASES), draw(st.integers(16, 25))))
    subnets: list[IPv4Network] = []
    for _ in range(draw(st.integers(2, 6))):
        length = draw(st.integers(vpc.prefixlen + 1, 28))
        index = draw(st.integers(0, 2 ** (length - vpc.prefixlen) - 1))
        subnet = IPv4Network((int(vpc.network_address) + index * 2 ** (32 - length), length))
        if not any(subnet.overlaps(other) for other in subnets):
            subnets.append(subnet)
    assume(len(subnets) >= 2)
    return str(vpc), [str(subnet) for subnet in subnets]


@given(networks())
def test_private_subnets_lie_in_the_vpc_and_overlap_nothing(drawn: tuple[str, list[str]]) -> None:
    vpc, public = drawn
    if 16 * sum(IPv4Network(text).num_addresses for text in public) > IPv4Network(vpc).num_addresses:
        # There may be no room, as they lie; less than this always has room.
        with suppress(ValueError):
            check_private(vpc, public)
    else:
        check_private(vpc, public)


def check_private(vpc: str, public: list[str]) -> None:
    private = private_cidrs(vpc, public)
    assert private == private_cidrs(vpc, list(public))
    parts = [IPv4Network(text) for text in (*public, *private)]
    assert all(part.subnet_of(IPv4Network(vpc)) for part in parts)
    assert not any(a.overlaps(b) for index, a in enumerate(parts) for b in parts[:index])
    assert [IPv4Network(text).prefixlen for text in private] == [IPv4Network(text).prefixlen for text in public]


@given(networks())
def test_where_the_range_of_the_original_is_free_it_is_taken(drawn: tuple[str, list[str]]) -> None:
    vpc, public = drawn
    try:
        private = private_cidrs(vpc, public)
    except ValueError:
        return
    for text, subnet in zip(public, private, strict=True):
        address, _, length = text.partition("/")
        first, second, third, fourth = address.split(".")
        if int(third) + 48 > 255:
            continue
        original = IPv4Network(f"{first}.{second}.{int(third) + 48}.{fourth}/{length}", strict=False)
        fits = str(original.network_address) == f"{first}.{second}.{int(third) + 48}.{fourth}"
        fits = fits and original.subnet_of(IPv4Network(vpc))
        if fits and not any(original.overlaps(IPv4Network(other)) for other in public):
            assert subnet == str(original)


@pytest.mark.parametrize(
    ("vpc", "public", "private"),
    [
        (
            "10.0.0.0/16",
            ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"],
            ["10.0.48.0/20", "10.0.64.0/20", "10.0.80.0/20"],
        ),
        ("10.8.0.0/16", ["10.8.0.0/20", "10.8.16.0/20"], ["10.8.48.0/20", "10.8.64.0/20"]),
        (
            "10.0.0.0/16",
            ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20", "10.0.48.0/20"],
            ["10.0.112.0/20", "10.0.64.0/20", "10.0.80.0/20", "10.0.96.0/20"],
        ),
        ("10.0.0.0/24", ["10.0.0.0/26", "10.0.0.64/26"], ["10.0.0.128/26", "10.0.0.192/26"]),
        ("10.0.0.0/16", ["10.0.0.0/18", "10.0.64.0/18"], ["10.0.128.0/18", "10.0.192.0/18"]),
        ("10.0.0.0/16", ["10.0.224.0/20", "10.0.240.0/20"], ["10.0.0.0/20", "10.0.16.0/20"]),
    ],
)
def test_private_subnets_of(vpc: str, public: list[str], private: list[str]) -> None:
    assert private_cidrs(vpc, public) == private


def test_a_full_vpc_has_no_private_subnets() -> None:
    with pytest.raises(ValueError, match="no room"):
        private_cidrs("10.0.0.0/16", ["10.0.0.0/17", "10.0.128.0/18"])


def test_public_subnets_of_a_vpc_whose_subnets_nobody_names() -> None:
    assert public_cidrs("10.0.0.0/16") == ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"]
    assert public_cidrs("192.168.0.0/24", 2) == ["192.168.0.0/28", "192.168.0.16/28"]
    with pytest.raises(ValueError, match="no room for 6 subnets"):
        public_cidrs("10.0.0.0/26", 6)


@given(st.integers(0, 2**32 - 1), st.integers(16, 28))
def test_services_never_have_the_addresses_of_the_vpc(address: int, length: int) -> None:
    vpc = IPv4Network((address, length), strict=False)
    assert not vpc.overlaps(IPv4Network(service_cidr(str(vpc))))


def test_a_vpc_of_the_usual_range_has_the_services_that_eks_gives_it() -> None:
    assert service_cidr("10.100.0.0/16") == "172.20.0.0/16"
    assert service_cidr("172.20.16.0/20") == "10.100.0.0/16"
