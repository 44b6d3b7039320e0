"""Images of operating systems by name: small records that properties of node types refer to."""

from __future__ import annotations

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass

OS_IMAGE_KIND = "OSImage"
"""The kind of its manifests."""
PROPERTY = "vcluster.com/os-image"
"""The property of a provider, node type or claim that names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OSImageContent:
    """Content of an image's record that callers say."""

    url: str
    """Address from which whoever writes the disk reads it: ``https``, ``http``, ``oci`` or ``docker``."""
    checksum: str | None = None
    """Digest of the image, or the URL of a file with it; None where its kind has none."""
    checksum_type: str | None = None
    """``md5``, ``sha256``, ``sha512`` or ``auto``; None where the digest tells."""
    format: str | None = None
    """``raw``, ``qcow2``, ``vdi``, ``vmdk`` or ``live-iso``; None where whoever writes it finds out."""
    description: str = ""


CONTENT = ("url", "checksum", "checksum_type", "format", "description")
"""Names of the fields of :class:`OSImageContent`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OSImageDocument(OSImageContent):
    """A manifest of an image, whose form was checked."""

    name: str


@dataclass(frozen=True, slots=True)
class OSImage(VersionedRecord):
    """An image that machines of one's own are written from: virtual machines and hosts of bare metal. Its content is
    that of :class:`OSImageContent`."""

    name: str
    url: str
    checksum: str | None
    checksum_type: str | None
    format: str | None
    created_at: str
    updated_at: str
    description: str = ""
    created_by: str = ""
    sequence: int = 0


def has_credentials(url: str) -> bool:
    """Whether a URL holds a user name or a password."""
    return "@" in url.partition("://")[2].partition("/")[0]


def os_image_name(name: str) -> str:
    """The key of the name of an image."""
    return f"os-image/{name}"
