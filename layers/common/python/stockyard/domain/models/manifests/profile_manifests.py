"""A cluster profile as a manifest: the fields of a request, its name in ``metadata``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from stockyard.domain.models import fields
from stockyard.domain.models.base import Input, read
from stockyard.domain.models.clusters.profiles import Cloud, PackName, ProfileContent
from stockyard.domain.models.manifests.manifests import without_servers_fields
from stockyard.domain.models.nodes.node_fields import Camel
from stockyard.domain.nodes.manifests import FieldPath
from stockyard.domain.profiles.cluster_profiles import ProfileDocument


class ProfileMetadata(Input):
    """The name. A profile has no labels."""

    name: PackName

    @model_validator(mode="before")
    @classmethod
    def _sent(cls, document: Any) -> Any:
        return without_servers_fields(document)


class ProfileSpec(ProfileContent):
    """One version of a profile. Without a description or a cloud that of the profile stays."""

    description: fields.Description | None = None
    cloud: Cloud | None = None


class ClusterProfileManifest(Camel):
    """The document."""

    api_version: Literal["stockyard/v1"]
    kind: Literal["ClusterProfile"]
    metadata: ProfileMetadata
    spec: ProfileSpec
    status: Any = Field(default=None, exclude=True)


def read_profile(document: Any, at: FieldPath) -> ProfileDocument:
    """Read the manifest at that place. ``InvalidInput`` with every fault below the place."""
    manifest = read(ClusterProfileManifest, document, at=at)
    spec = manifest.spec
    return ProfileDocument(manifest.metadata.name, spec.version, spec.content(), spec.description, spec.cloud)
