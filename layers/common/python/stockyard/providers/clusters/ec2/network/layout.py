"""Ranges of the subnets of a cluster's own VPC: for each zone one that is public and one for machines.

Pure, and the same each time. A VPC is laid out for a number of zones, and may grow by further ones in what is free of
it: so a layout follows from the VPC's range and the numbers of zones that it has had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network

from stockyard.providers.clouds.aws.network.free_ranges import free_parts

MOST_ZONES = 6
LETTERS = "abcdef"
"""What subnets are called by, in the order of the zones."""
PUBLIC, PRIVATE = "public", "private"
_SMALLEST = 28
"""The longest prefix that AWS takes of a subnet."""
_LARGEST_PUBLIC, _LARGEST_PRIVATE = 4, 2
"""By how many bits subnets are at least longer than their VPC: a sixteenth for what is public, a quarter for
machines."""


def key(tier: str, index: int) -> str:
    """Name of the subnet of a zone: ``public-a``."""
    return f"{tier}-{LETTERS[index]}"


def laid_out(vpc_cidr: str, counts: Sequence[int]) -> dict[str, str]:
    """The subnets of a VPC by name, public ones first: laid out for the first of these numbers of zones, then grown to
    each next one.

    Raises ``ValueError`` where there is no room.
    """
    subnets: dict[str, IPv4Network] = {}
    vpc = IPv4Network(vpc_cidr)
    for count in counts:
        present = len(subnets) // 2
        reserve = MOST_ZONES - count if present else 0
        ranges = _ranges(vpc, list(subnets.values()), count - present, reserve)
        for offset, (public, private) in enumerate(ranges):
            subnets[key(PUBLIC, present + offset)] = public
            subnets[key(PRIVATE, present + offset)] = private
    ordered = [key(tier, index) for tier in (PUBLIC, PRIVATE) for index in range(len(subnets) // 2)]
    return {name: str(subnets[name]) for name in ordered}


def counts_of(generations: Iterable[Sequence[str]], wanted_zones: int) -> list[int]:
    """The numbers of zones with which a VPC was laid out, read from the zones of its subnets, and then the wanted
    number."""
    return sorted({*(len(zones) for zones in generations), wanted_zones})


def merged(earlier: Sequence[str], wanted_zones: Sequence[str]) -> list[str]:
    """The zones in the order of their letters: those that there are, then what is wanted besides."""
    return [*earlier, *(zone for zone in wanted_zones if zone not in earlier)]


def zones_by_key(zones: Sequence[str]) -> Mapping[str, str]:
    """The zone of each subnet by its name."""
    return {key(tier, index): zone for tier in (PUBLIC, PRIVATE) for index, zone in enumerate(zones)}


def _ranges(
    vpc: IPv4Network, ranges_in_use: Sequence[IPv4Network], count: int, reserve: int
) -> list[tuple[IPv4Network, IPv4Network]]:
    """A public and a private range for each of ``count`` zones: as large as they can be, machines' first.

    What grows leaves room for the ``reserve`` that may come later, if there is any way to.
    """
    for spare in dict.fromkeys((reserve, 0)):
        for private_bits in range(_LARGEST_PRIVATE, _SMALLEST - vpc.prefixlen + 1):
            for public_bits in range(max(_LARGEST_PUBLIC, private_bits), _SMALLEST - vpc.prefixlen + 1):
                ranges = _placed(vpc, ranges_in_use, count, (public_bits, private_bits))
                if ranges and _has_room(vpc, [*ranges_in_use, *(part for pair in ranges for part in pair)], spare):
                    return ranges
    raise ValueError(
        f"has no room for a public and a private subnet in each of {len(ranges_in_use) // 2 + count} zones"
    )


def _placed(
    vpc: IPv4Network, ranges_in_use: Sequence[IPv4Network], count: int, bits: tuple[int, int]
) -> list[tuple[IPv4Network, IPv4Network]]:
    """The first free ranges of these sizes, what is public before what is private; none where not all find room."""
    public = free_parts(vpc, vpc.prefixlen + bits[0], ranges_in_use, count)
    private = free_parts(vpc, vpc.prefixlen + bits[1], [*ranges_in_use, *public], count)
    return list(zip(public, private, strict=True)) if len(public) == len(private) == count else []


def _has_room(vpc: IPv4Network, ranges_in_use: Sequence[IPv4Network], count: int) -> bool:
    return len(free_parts(vpc, _SMALLEST, ranges_in_use, 2 * count)) == 2 * count
