"""Names of the things of a cluster in a project."""

from __future__ import annotations

LONGEST = 63
"""Characters that Cudo takes in an id."""
CONTROL_PLANE, NODE, DATA, NETWORK = "control-plane", "node", "data", "net"
"""The things of a cluster: its first machine and that machine's security group, the security group of its nodes, the
disk of etcd, and the network that all of its machines are in."""
_DIGEST = 12
"""Hex digits at the end of a client id, which make it unique."""


def name(prefix: str, client_id: str, thing: str) -> str:
    """``{prefix}-{client_id}-{thing}`` within what Cudo takes: the readable part of the client id is cut as needed, its
    last 12 digits stay. Raises ``ValueError`` where even these do not fit."""
    readable, digest = client_id[: -_DIGEST - 1], client_id[-_DIGEST:]
    room = LONGEST - len(f"{prefix}--{digest}-{thing}")
    if room < -1:
        raise ValueError(f"{thing} does not fit into names that begin with {prefix}")
    readable_part = readable[: max(0, room)].strip("-")
    return "-".join(part for part in (prefix, readable_part, digest, thing) if part)
