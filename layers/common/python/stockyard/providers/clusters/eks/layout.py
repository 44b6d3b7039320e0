"""Ranges of the VPC of a cluster on EKS, and their purposes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network

from stockyard.providers.clouds.aws.network.free_ranges import free_parts

LARGEST, SMALLEST = 16, 28
"""Lengths of the prefixes that AWS takes, of a VPC and of a subnet."""
USUAL_SUBNETS = 3
"""How many public subnets a cluster has that names neither subnets nor zones."""
_PARTS = 4
"""A computed subnet is one of the sixteen parts of its VPC, so 4 bits longer."""
_BESIDE = 48 * 256
"""How many addresses behind its public subnet Modelplane puts a private one."""
_SERVICES = ("172.20.0.0/16", "10.100.0.0/16")
"""The ranges that EKS has for services, whatever VPC a cluster is in."""


def public_cidrs(vpc_cidr: str, count: int = USUAL_SUBNETS) -> list[str]:
    """The public subnets of a VPC whose subnets nobody names: of ``10.0.0.0/16`` the defaults of Modelplane.

    Raises ``ValueError`` where the VPC has no room for so many.
    """
    vpc = IPv4Network(vpc_cidr)
    length = min(vpc.prefixlen + _PARTS, SMALLEST)
    parts = [str(part) for part, _ in zip(vpc.subnets(new_prefix=length), range(count), strict=False)]
    if len(parts) < count:
        raise ValueError(f"has no room for {count} subnets")
    return parts


def private_cidrs(vpc_cidr: str, subnet_cidrs: Sequence[str]) -> list[str]:
    """The private subnet beside each public one, as large as that: the same for the same ranges.

    Modelplane adds 48 to the third number of the public subnet's address. Where that range lies in the VPC and is
    free it is taken, else the first free one. Raises ``ValueError`` where the VPC has no room for all.
    """
    vpc, public = IPv4Network(vpc_cidr), [IPv4Network(text) for text in subnet_cidrs]
    private: dict[int, IPv4Network] = {}
    for index, subnet in enumerate(public):
        beside = _beside(subnet)
        if beside is not None and beside.subnet_of(vpc) and _is_free(beside, [*public, *private.values()]):
            private[index] = beside
    # The larger first: a small one finds room in what they leave, not the other way round.
    for index in sorted(
        set(range(len(public))) - private.keys(), key=lambda number: (public[number].prefixlen, number)
    ):
        private[index] = _first_free(vpc, public[index].prefixlen, [*public, *private.values()])
    return [str(private[index]) for index in range(len(public))]


def service_cidr(vpc_cidr: str) -> str:
    """The range of the cluster's services: the first of EKS's that the VPC does not overlap."""
    vpc = IPv4Network(vpc_cidr)
    return next(text for text in _SERVICES if not vpc.overlaps(IPv4Network(text)))


def _beside(subnet: IPv4Network) -> IPv4Network | None:
    try:
        return IPv4Network((IPv4Address(int(subnet.network_address) + _BESIDE), subnet.prefixlen))
    except ValueError:
        return None  # no range begins there, or no address is there


def _is_free(candidate: IPv4Network, networks: Iterable[IPv4Network]) -> bool:
    return not any(candidate.overlaps(other) for other in networks)


def _first_free(vpc: IPv4Network, length: int, networks: Sequence[IPv4Network]) -> IPv4Network:
    free = free_parts(vpc, length, networks, 1)
    if not free:
        raise ValueError("leave no room for the private subnets, one as large as each of these")
    return free[0]
