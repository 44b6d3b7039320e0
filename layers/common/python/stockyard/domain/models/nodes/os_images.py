"""Images of operating systems as callers send and see them, and as manifests."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, Irremovable, View, check, read
from stockyard.domain.models.manifests.manifests import without_servers_fields
from stockyard.domain.models.nodes.node_fields import Camel, DnsLabel
from stockyard.domain.models.patterns import worded
from stockyard.domain.models.view_fields import CreatedAt, UpdatedAt, Version
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.nodes.os_images import CONTENT, OSImage, OSImageContent, OSImageDocument, has_credentials

_URL = worded(r"^(https?|oci|docker)://[!-~]{1,2000}$", "an address: https://, http://, oci:// or docker://")
_CHECKSUM = worded(
    r"^([0-9a-fA-F]{32}|[0-9a-fA-F]{64}|[0-9a-fA-F]{128}|https?://[!-~]{1,2000})$",
    "a digest of md5, sha256 or sha512 in hexadecimal digits, or the URL of a file with one",
)
Url = Annotated[str, StringConstraints(pattern=_URL)]
Checksum = Annotated[str, StringConstraints(pattern=_CHECKSUM)]
ChecksumType = Literal["md5", "sha256", "sha512", "auto"]
Format = Literal["raw", "qcow2", "vdi", "vmdk", "live-iso"]


class OSImageCreate(Input):
    """An image to enter."""

    name: DnsLabel
    """The name of the image, unique in the tenant. Properties say it as ``vcluster.com/os-image``."""
    url: Url
    """Where whoever writes a disk reads the image."""
    checksum: Checksum | None = None
    """The image's digest, or the URL of a file with it. Hosts of bare metal need one, but for a ``live-iso``."""
    checksum_type: ChecksumType | None = None
    """What the digest is made by; without it its length tells."""
    format: Format | None = None
    """The format of the image; without it whoever writes it finds out."""
    description: fields.Description = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        _check(self)
        return self

    def content(self) -> OSImageContent:
        """Content of the record."""
        return OSImageContent(**{name: getattr(self, name) for name in CONTENT})


class OSImagePatch(Input):
    """A JSON merge patch of an image: absent means as it was, null removes."""

    url: Irremovable[Url] = None
    """Where whoever writes a disk reads the image."""
    checksum: Checksum | None = None
    """The image's digest, or the URL of a file with it."""
    checksum_type: ChecksumType | None = None
    """What the digest is made by."""
    format: Format | None = None
    """The format of the image."""
    description: Irremovable[fields.Description] = None

    def content(self, image: OSImage) -> OSImageContent:
        """Content of the record with this patch. Raises ``InvalidInput`` for what it then would be."""
        merged = {name: getattr(image, name) for name in CONTENT}
        merged |= {name: getattr(self, name) for name in self.model_fields_set}
        return read(OSImageCreate, {"name": image.name, **merged}).content()


class OSImageView(View):
    """An image of an operating system."""

    id: str
    """The id of the image."""
    name: str
    """The name of the image, unique in the tenant."""
    url: str
    """Where whoever writes a disk reads the image."""
    checksum: str | None
    """The image's digest, or the URL of a file with it; null where it has none."""
    checksum_type: str | None
    """What the digest is made by; null where its length tells."""
    format: str | None
    """The format of the image; null where whoever writes it finds out."""
    description: str
    """Free text for people."""
    created_by: str
    """Who entered it."""
    created_at: CreatedAt
    updated_at: UpdatedAt
    version: Version


class OSImageMetadata(Input):
    """The name. An image has no labels."""

    name: DnsLabel

    @model_validator(mode="before")
    @classmethod
    def _sent(cls, document: Any) -> Any:
        return without_servers_fields(document)


class OSImageSpec(Camel):
    """The content of an image."""

    url: Url
    checksum: Checksum | None = None
    checksum_type: ChecksumType | None = None
    format: Format | None = None
    description: fields.Description = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        _check(self)
        return self


class OSImageManifest(Camel):
    """The document."""

    api_version: Literal["stockyard/v1"]
    kind: Literal["OSImage"]
    metadata: OSImageMetadata
    spec: OSImageSpec
    status: Any = Field(default=None, exclude=True)


def read_os_image(document: Any, at: FieldPath) -> OSImageDocument:
    """Read the manifest at that place. ``InvalidInput`` with every fault below the place."""
    manifest = read(OSImageManifest, document, at=at)
    return OSImageDocument(name=manifest.metadata.name, **{name: getattr(manifest.spec, name) for name in CONTENT})


def _check(image: OSImageCreate | OSImageSpec) -> None:
    for name, address in (("url", image.url), ("checksum", image.checksum or "")):
        if "://" in address and has_credentials(address):
            check([((name,), "must hold no user name or password: it is shown to whoever reads")])
    spelt = "checksum_type" if isinstance(image, OSImageCreate) else "checksumType"
    lengths = {"md5": 32, "sha256": 64, "sha512": 128}
    if image.checksum_type is not None and image.checksum is None:
        check([((spelt,), "is of a checksum, and there is none")])
    is_url = image.checksum is not None and "://" in image.checksum
    length = lengths.get(image.checksum_type or "")
    if image.checksum is not None and not is_url and length not in (None, len(image.checksum)):
        check([(("checksum",), f"a digest of {image.checksum_type} has {length} digits")])
