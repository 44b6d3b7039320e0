"""Addresses that a tenant has chosen and our functions call: where they may lead, and where they may not."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from stockyard.errors import VendorRefused, VendorUnavailable

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host and a port. Raises ``OSError`` for a name that leads nowhere, ``UnicodeError`` for none."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""Addresses of IPv4 in an IPv6 network (NAT64): the last four bytes."""
_OF_INSTANCES = IPv6Network("fd00:ec2::/32")
"""Where AWS serves metadata, names and time to what runs in it."""


def resolved(host: str, port: int) -> Sequence[str]:
    """What the system's look-up answers, in its order."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in answers))


def checked(host: str, port: int, resolve: Resolve) -> Sequence[str]:
    """The addresses of the host. Whoever calls one of these, and not the name, calls what was looked at.

    Raises ``VendorRefused`` when any of them is forbidden, ``VendorUnavailable`` when there is none.
    """
    try:
        addresses = resolve(host, port)
    except (OSError, UnicodeError):  # the latter for a name with a part that is empty or longer than 63 characters
        addresses = ()
    if not addresses:
        raise VendorUnavailable(f"The name {host} leads to no address.", code="NameNotResolved")
    if any(is_forbidden(address) for address in addresses):
        raise VendorRefused(
            f"{host} leads to an address that nobody outside may choose: loopback, link-local, multicast or reserved.",
            code="ForbiddenAddress",
            hint="Change the account's attributes: give another address.",
        )
    return addresses


def is_forbidden(text: str) -> bool:
    """Whether the address belongs to the calling machine itself or to services of its network, or to nobody.

    Private addresses are allowed: a stage may be put into a network of its own.
    """
    address = _embedded(ip_address(text.partition("%")[0]))
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or (isinstance(address, IPv6Address) and address in _OF_INSTANCES)
    )


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The address of IPv4 that one of IPv6 stands for; any other as it is."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
