"""The records of cluster profiles: what a tenant has written, and what stands of it in a cluster."""

from __future__ import annotations

from typing import Any

from stockyard.domain.nodes.records import VersionedRecord
from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.rights import ADMIN, OPERATOR


@dataclass(frozen=True, slots=True)
class ProfileVersion:
    """One version of a profile. What it contains never changes, and stands in ``parts`` records of its own."""

    number: str
    digest: str
    """SHA-256 of the content."""
    parts: int
    created_at: str
    created_by: str
    rights: str = OPERATOR
    """Of who has made it, see ``pack_rights``: an administrator allows what the version says by making it."""
    size: int = 0
    """Bytes of its parts."""


@dataclass(frozen=True, slots=True)
class ClusterProfile(VersionedRecord):
    """A template of what stands in clusters, by layers. ``id`` is ``cpr_...``; the last version is the newest."""

    name: str
    description: str
    cloud: str
    """The clusters that it is for, see ``cloud_kinds.profile_clouds``."""
    versions: tuple[ProfileVersion, ...]
    created_at: str
    updated_at: str
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class ProfilePart(VersionedRecord):
    """A part of a version's content, which is compressed. ``id`` is ``profile id/version/number``."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ProfileUse(VersionedRecord):
    """Use of a profile by a cluster. ``id`` is ``profile id/cluster id``. A profile with uses is not deleted."""

    cluster_id: str


PACK_PENDING, PACK_APPLYING, PACK_READY, PACK_FAILED = "Pending", "Applying", "Ready", "Failed"


@dataclass(frozen=True, slots=True)
class PackStatus:
    """State of a pack: ``Pending``, ``Applying``, ``Ready`` or ``Failed``."""

    profile: str
    layer: str
    name: str
    tag: str
    condition: str = PACK_PENDING
    message: str = ""
    started_at: str | None = None
    ended_at: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterPacks(VersionedRecord):
    """The packs of a cluster. ``id`` is the cluster's.

    ``profiles`` is what is wanted; ``objects`` what may stand in the cluster because of us, in the order in which it
    was applied: it is written before an object is applied, and shortened when one is gone.
    """

    profiles: tuple[dict[str, Any], ...]
    packs: tuple[PackStatus, ...]
    objects: tuple[str, ...] = ()
    """``pack|apiVersion|kind|namespace|name``, each."""
    drift: tuple[str, ...] = ()
    """Objects that are not as they were applied, when somebody looked last."""
    compared_at: str | None = None
    sequence: int = 0
    rights: str = ADMIN
    """Of who has chosen last: objects of a profile that is not chosen any more are removed with them."""
