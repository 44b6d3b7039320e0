"""Ranges of addresses that people give the machines of a Kubernetes host."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

MOST_ADDRESSES = 65_536
"""Addresses that a range may have."""
Address = IPv4Address | IPv6Address


def addresses(text: str) -> list[Address]:
    """Addresses of a range, the lowest first: ``first-last``, with commas between several. Raises ``ValueError``."""
    listed: list[Address] = []
    for part in text.split(","):
        first, _, last = (piece.strip() for piece in part.partition("-"))
        try:
            low, high = ip_address(first), ip_address(last or first)
        except ValueError:
            raise ValueError("must be addresses, such as 192.168.100.10-192.168.100.50") from None
        if low.version != high.version or int(high) < int(low):
            raise ValueError(f"{part.strip()} is no range: its end is before its beginning")
        if len(listed) + int(high) - int(low) >= MOST_ADDRESSES:
            raise ValueError(f"has more than {MOST_ADDRESSES} addresses")
        listed += [type(low)(number) for number in range(int(low), int(high) + 1)]
    return sorted(listed, key=int)
