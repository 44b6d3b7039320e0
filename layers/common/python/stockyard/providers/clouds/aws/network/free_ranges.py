"""Free parts of a VPC's range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from itertools import islice


def free_parts(vpc: IPv4Network, length: int, ranges_in_use: Iterable[IPv4Network], count: int) -> list[IPv4Network]:
    """The first ``count`` parts of this length that overlap nothing that is taken; fewer where there are no more."""
    if length < vpc.prefixlen:
        return []
    return list(islice(_free(vpc, length, list(ranges_in_use)), count))


def _free(vpc: IPv4Network, length: int, ranges_in_use: list[IPv4Network]) -> Iterator[IPv4Network]:
    # Part by part of the VPC a half each: a part that nothing is in is free as a whole, and one that is taken as a
    # whole holds nothing that is free.
    inside = [other for other in ranges_in_use if other.overlaps(vpc)]
    if any(vpc.subnet_of(other) for other in inside):
        return
    if vpc.prefixlen == length:
        if not inside:
            yield vpc
        return
    if not inside:
        yield from vpc.subnets(new_prefix=length)
        return
    for half in vpc.subnets():
        yield from _free(half, length, inside)
