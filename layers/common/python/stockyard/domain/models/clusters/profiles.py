"""Cluster profiles as callers send and see them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, RootModel, StringConstraints, model_validator

from stockyard import kubernetes_versions
from stockyard.domain import cloud_kinds
from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, Input, View, check, refuse, repeated
from stockyard.domain.models.manifests.views import ManifestView
from stockyard.domain.models.patterns import worded
from stockyard.domain.models.view_fields import CreatedAt, UpdatedAt
from stockyard.domain.profiles.cluster_profiles import K8S, LAYERS, OS, is_regex, value_fault
from stockyard.domain.profiles.pack_templates import TemplateFault, load_yaml

SEMANTIC = r"^(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})(-[0-9A-Za-z.-]{1,32})?$"
_DIGEST = r"^sha256:[0-9a-f]{64}$"
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
_TEXT = 512 * 1024

Semantic = Annotated[str, StringConstraints(max_length=64, pattern=worded(SEMANTIC, "a version, such as 1.0.0"))]
PackName = Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(fields.subdomain)]
Scalar = str | int | float | bool


def _regex(text: str) -> str:
    if not is_regex(text):
        raise ValueError("is no regular expression of RE2, which has no references back and does not look around")
    return text


def _cloud(name: str) -> str:
    if name not in cloud_kinds.profile_clouds():
        raise ValueError(f"must be {' or '.join(cloud_kinds.profile_clouds())}")
    return name


def _clouds(schema: dict[str, Any]) -> None:
    schema["enum"] = list(cloud_kinds.profile_clouds())


def _values(value: Any) -> dict[str, Any]:
    """Values as an object: YAML text is read."""
    if isinstance(value, str):
        try:
            trees = load_yaml(value)
        except TemplateFault as fault:
            raise ValueError(str(fault)) from None
        value = trees[0] if trees and trees[0] is not None else {}
        if len(trees) > 1 or not isinstance(value, dict):
            raise ValueError("must be one YAML object")
    return dict(value)


Cloud = Annotated[str, AfterValidator(_cloud), Field(json_schema_extra=_clouds)]
"""The cloud that the profile is for, or ``all``."""
Values = Annotated[dict[str, Any] | str, AfterValidator(_values)]


class Variable(Input):
    """Value that differs from cluster to cluster. ``{{ .profile.var.NAME }}`` in values and manifests stands for it."""

    name: Annotated[str, StringConstraints(pattern=_VARIABLE)]
    """The name of the variable."""
    type: Literal["string", "number", "boolean"] = "string"
    """What values it takes."""
    default: Scalar | None = None
    """The value where a cluster gives none."""
    required: bool = False
    """Whether a cluster has to give a value."""
    regex: Annotated[str, StringConstraints(max_length=256), AfterValidator(_regex)] | None = None
    """A regular expression of RE2 that a text has to match as a whole."""
    description: fields.Description = ""
    """What the variable is for."""

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        if self.default is not None and (fault := value_fault(self.model_dump(), self.default)):
            raise refuse((("default",), fault))
        return self


class Manifest(Input):
    """Kubernetes objects: ``content`` is their YAML, or ``url`` where it is, with the ``digest`` that it must have."""

    name: PackName
    """The name of the manifest within its pack."""
    content: Annotated[str, StringConstraints(min_length=1, max_length=_TEXT), AfterValidator(fields.no_nul)] | None = (
        None
    )
    """The objects as YAML."""
    url: Annotated[str, StringConstraints(max_length=1024, pattern=r"^https://[^\s@]+$")] | None = None
    """Where the YAML is fetched from when the version is made."""
    digest: Annotated[str, StringConstraints(pattern=_DIGEST)] | None = None
    """The SHA-256 that what is fetched must have."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        faults: list[Fault] = []
        if (self.content is None) == (self.url is None):
            faults.append((("content",), "give content or url, and not both"))
        elif self.url is not None and self.digest is None:
            faults.append((("digest",), "this field is required with url"))
        elif self.url is None and self.digest is not None:
            faults.append((("digest",), "belongs to url"))
        check(faults)
        return self


class Pack(Input):
    """One thing that a cluster has. Of ``k8s`` the tag is the cluster's minor, of ``os`` the name is the image family;
    these two have no manifests."""

    layer: Literal["os", "k8s", "cni", "csi", "addon"]
    """The layer that the pack is of; packs stand in the order of their layers."""
    name: PackName
    """The name of the pack; of ``os`` the image family."""
    tag: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    """The version of the pack; of ``k8s`` the minor of Kubernetes."""
    namespace: PackName | None = None
    """Of objects that name none, where their kind has one."""
    values: Values = Field(default_factory=dict)
    """What the templates of the manifests are filled in with: an object, or its YAML."""
    manifests: Annotated[list[Manifest], Field(max_length=40)] = Field(default_factory=list)
    """What the pack applies, in this order."""

    @model_validator(mode="after")
    def _fits_layer(self) -> Self:
        faults: list[Fault] = []
        if self.layer in (OS, K8S) and self.manifests:
            faults.append((("manifests",), f"a pack of the layer {self.layer} has none"))
        if self.layer == K8S and self.tag not in kubernetes_versions.TESTED:
            faults.append((("tag",), f"must be {' or '.join(kubernetes_versions.TESTED)}"))
        if self.layer == OS and self.name not in cloud_kinds.image_families():
            faults.append((("name",), f"must be {' or '.join(cloud_kinds.image_families())}"))
        if self.layer not in (OS, K8S) and not self.manifests:
            faults.append((("manifests",), "must have at least 1 entries"))
        names = [manifest.name for manifest in self.manifests]
        faults += [(("manifests", *path), text) for path, text in repeated(names, "is the name of another one", "name")]
        check(faults)
        return self


class ProfileContent(Input):
    """Content of a version of a profile, and its number."""

    version: Semantic
    """The number of the version, such as ``1.0.0``; once in the profile."""
    variables: Annotated[list[Variable], Field(max_length=64)] = Field(default_factory=list)
    """What differs from cluster to cluster."""
    packs: Annotated[list[Pack], Field(min_length=1, max_length=40)]
    """What a cluster with the profile has, in the order of the layers."""

    @model_validator(mode="after")
    def _packs_in_order(self) -> Self:
        layers = [pack.layer for pack in self.packs]
        faults: list[Fault] = [
            (("packs", index, "layer"), f"comes before {layers[index - 1]}; the order is {', '.join(LAYERS)}")
            for index in range(1, len(layers))
            if LAYERS.index(layers[index]) < LAYERS.index(layers[index - 1])
        ]
        for layer in (OS, K8S):
            faults += [
                (("packs", index, "layer"), f"there is another pack of the layer {layer}")
                for index, name in enumerate(layers)
                if name == layer and layer in layers[:index]
            ]
        for field, names in (
            ("packs", [pack.name for pack in self.packs]),
            ("variables", [variable.name for variable in self.variables]),
        ):
            faults += [((field, *path), text) for path, text in repeated(names, "is the name of another one", "name")]
        check(faults)
        return self

    def content(self) -> dict[str, Any]:
        """Content of the version's parts, without nulls."""
        document = self.model_dump(include={"variables", "packs"}, exclude_none=True)
        return {"variables": document["variables"], "packs": document["packs"]}


class ClusterProfileCreate(ProfileContent):
    """A cluster profile to make, with its first version."""

    name: PackName
    """The name of the profile, unique in the tenant."""
    description: fields.Description = ""
    cloud: Cloud = cloud_kinds.ANY_CLOUD


class ClusterProfilePut(ProfileContent):
    """A further version of a profile. The earlier ones stay."""

    description: fields.Description | None = None
    """Free text for people; the profile's stays where none is given."""


class ProfileChoice(Input):
    """A profile of a cluster: which, in which version, and what is different there."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    """The name or id of the profile."""
    version: Semantic | None = None
    """The version; the newest where none is given."""
    variables: Annotated[dict[str, Scalar], Field(max_length=64)] = Field(default_factory=dict)
    """Values of the variables of the profile, by name."""
    pack_values: Annotated[dict[str, Values], Field(max_length=40)] = Field(default_factory=dict)
    """Values that are laid over those of a pack, by the name of the pack."""


MAX_PROFILES = 5
"""Of a cluster."""
Choices = Annotated[list[ProfileChoice], Field(max_length=MAX_PROFILES)]
"""The profiles of a cluster, at most 5."""


def choice_documents(choices: list[ProfileChoice]) -> tuple[dict[str, Any], ...]:
    """The choices as plain documents."""
    return tuple(choice.model_dump() for choice in choices)


class ClusterProfilesPut(Input):
    """All profiles that a cluster is to have."""

    profiles: Choices
    """All profiles that the cluster is to have; those that are absent are taken away."""


class ProfileVersionView(View):
    """A version of a profile."""

    version: str
    """The number of the version."""
    digest: str
    """The SHA-256 of what the version says."""
    created_at: CreatedAt
    created_by: str
    """Who made the version."""
    rights: str
    """``admin`` where an administrator has made the version, and so allows what it says; else ``operator``."""


class ClusterProfileView(View):
    """A cluster profile, and what one of its versions says."""

    id: str
    """The id of the profile."""
    name: str
    """The name of the profile, unique in the tenant."""
    description: str
    """Free text for people."""
    cloud: str
    """The cloud that the profile is for, or ``all``."""
    version: str
    """The number of the version that is shown."""
    versions: list[ProfileVersionView]
    """All versions, the oldest first."""
    variables: list[dict[str, Any]] | None
    """The variables of the version that is shown; null in lists."""
    packs: list[dict[str, Any]] | None
    """The packs of the version that is shown; null in lists."""
    created_at: CreatedAt
    updated_at: UpdatedAt


class ClusterProfileDocument(RootModel[ClusterProfileView | ManifestView]):
    """A cluster profile, or with ``form=manifest`` a version of it as a document that can be applied."""


class PackStatusView(View):
    """A pack of a cluster, and how it is."""

    profile: str
    """The name of the profile that has the pack."""
    layer: str
    """The layer of the pack."""
    name: str
    """The name of the pack."""
    tag: str
    """The version of the pack."""
    condition: str
    """``Pending``, ``Applying``, ``Ready`` or ``Failed``."""
    message: str
    """What goes on, or why it failed."""
    started_at: str | None
    """When it was begun to apply the pack; null before."""
    ended_at: str | None
    """When that had ended; null before."""


class ClusterProfilesView(View):
    """The profiles of a cluster, how their packs are, and what has drifted."""

    profiles: list[dict[str, Any]]
    """The profiles of the cluster, as they were chosen."""
    packs: list[PackStatusView]
    """All packs of these profiles and how they are."""
    objects: int
    """How many objects stand in the cluster by these packs."""
    drift: list[str]
    """Objects that were not as they were applied when somebody looked last; nothing changes them by itself."""
    compared_at: str | None
    """When somebody looked last; null for never."""
