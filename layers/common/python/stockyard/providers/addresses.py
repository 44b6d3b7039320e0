"""Addresses that callers name and our functions call: where they may lead, and where they may not.

Every such address goes through a ``Guard``, see ``guarded_transport``: a tenant's Vault, the API of a Kubernetes host.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from stockyard.errors import VendorRefused, VendorUnavailable

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host and a port. Raises ``OSError`` for a name that leads nowhere, ``UnicodeError`` for none."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""Addresses of IPv4 in an IPv6 network (NAT64): the last four bytes."""
_TRANSLATED_HERE = IPv6Network("64:ff9b:1::/48")
"""As before, of a network's own."""
_OF_CLOUDS = tuple(map(ip_network, ("fd00:ec2::/32", "168.63.129.16/32", "100.100.100.200/32", "2001::/32")))
"""Where clouds serve metadata, names and time to what runs in them; and Teredo, whose addresses hide others."""
_PRIVATE = tuple(
    map(
        ip_network,
        (
            *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "192.0.0.0/24"),
            *("fc00::/7", "fec0::/10"),
        ),
    )
)
"""Of networks of somebody's own, which the same address means another thing in."""


def resolved(host: str, port: int) -> Sequence[str]:
    """Answer of the system's look-up, in its order."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in answers))


@dataclass(frozen=True, slots=True)
class Guard:
    """Rules of a stage for the addresses that callers name."""

    allow_private: bool = False
    """Whether an address may be of somebody's own network: the stage's functions stand in one that reaches it."""
    stand_ins: frozenset[str] = frozenset()
    """Hosts with ports that are called without a look, though they lead to this machine: a local cloud's stand-ins."""
    resolve: Resolve = resolved

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of the host. Whoever calls one of these, and not the name, calls what was looked at.

        Raises ``VendorRefused`` when any of them is forbidden, ``VendorUnavailable`` when there is none.
        """
        if f"{bracketed(host)}:{port}" in self.stand_ins:
            return (host,)
        try:
            addresses = self.resolve(host, port)
        except (OSError, UnicodeError):  # the latter for a name with a part that is empty or longer than 63 characters
            addresses = ()
        if not addresses:
            raise VendorUnavailable(f"The name {host} leads to no address.", code="NameNotResolved")
        if any(is_forbidden(address) for address in addresses):
            raise VendorRefused(
                f"{host} leads to an address that nobody outside may choose: loopback, link-local, multicast or "
                "reserved.",
                code="ForbiddenAddress",
                hint="Change the account's attributes: give another address.",
            )
        if not self.allow_private and any(is_private(address) for address in addresses):
            raise VendorRefused(
                f"{host} leads to a private address, and this stage calls none.",
                code="PrivateAddress",
                hint="Its operator may set network and allow_private_addresses.",
            )
        return addresses


def guard_of(settings: Any) -> Guard:
    """Guard of the installation with these settings (``stockyard.settings``)."""
    stand_ins = frozenset(filter(None, settings.stand_in_hosts.split(",")))
    return Guard(settings.allow_private_addresses, stand_ins)


def bracketed(host: str) -> str:
    """The host as a URL writes it: an address of IPv6 stands in brackets."""
    return f"[{host}]" if ":" in host else host


def is_forbidden(text: str) -> bool:
    """Whether the address belongs to the calling machine itself or to services of its network, or to nobody."""
    address = _embedded(ip_address(text.partition("%")[0]))
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or any(address in network for network in _OF_CLOUDS)
    )


def is_private(text: str) -> bool:
    """Whether the address is one of a network that the calling function may be in, and the caller is not."""
    address = _embedded(ip_address(text.partition("%")[0]))
    return any(address in network for network in _PRIVATE)


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The address of IPv4 that one of IPv6 stands for; any other as it is."""
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED or address in _TRANSLATED_HERE:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
