"""Images of operating systems by name: small records that properties of node types refer to."""

from __future__ import annotations

from dataclasses import dataclass

from stockyard.domain.nodes.records import VersionedRecord

PROPERTY = "vcluster.com/os-image"
"""The property of a provider, node type or claim that names one."""


@dataclass(frozen=True, slots=True)
class OSImage(VersionedRecord):
    """An image that machines of one's own are written from: virtual machines and hosts of bare metal."""

    name: str
    url: str
    """Where whoever writes the disk reads it: ``https``, ``http``, ``oci`` or ``docker``."""
    checksum: str | None
    """Digest of the image, or the URL of a file with it; None where its kind has none."""
    checksum_type: str | None
    """``md5``, ``sha256``, ``sha512`` or ``auto``; None where the digest tells."""
    format: str | None
    """``raw``, ``qcow2``, ``vdi``, ``vmdk`` or ``live-iso``; None where whoever writes it finds out."""
    created_at: str
    updated_at: str
    description: str = ""
    created_by: str = ""
    sequence: int = 0


def os_image_name(name: str) -> str:
    """The key of the name of an image."""
    return f"os-image/{name}"
