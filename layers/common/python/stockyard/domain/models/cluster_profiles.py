"""Cluster profiles as callers send and see them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, RootModel, StringConstraints, model_validator

from stockyard import kubernetes_versions
from stockyard.domain import cloud_kinds
from stockyard.domain.cluster_profiles import K8S, LAYERS, OS, value_fault
from stockyard.domain.models import fields
from stockyard.domain.models.base import Fault, Input, View, check, refuse, repeated
from stockyard.domain.models.manifest_views import ManifestView
from stockyard.domain.models.patterns import worded
from stockyard.domain.pack_templates import TemplateFault, load_yaml

SEMANTIC = r"^(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})(-[0-9A-Za-z.-]{1,32})?$"
_DIGEST = r"^sha256:[0-9a-f]{64}$"
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
_TEXT = 512 * 1024

Semantic = Annotated[str, StringConstraints(max_length=64, pattern=worded(SEMANTIC, "a version, such as 1.0.0"))]
PackName = Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(fields.subdomain)]
Scalar = str | int | float | bool


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error:
        raise ValueError("is no regular expression") from None
    if re.search(r"[*+}]\)?[*+{]", text):
        raise ValueError("has a repetition of a repetition, which may take for ever")
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
Values = Annotated[dict[str, Any] | str, AfterValidator(_values)]


class Variable(Input):
    """What differs from cluster to cluster. ``{{ .profile.var.NAME }}`` in values and manifests stands for it."""

    name: Annotated[str, StringConstraints(pattern=_VARIABLE)]
    type: Literal["string", "number", "boolean"] = "string"
    default: Scalar | None = None
    required: bool = False
    regex: Annotated[str, StringConstraints(max_length=256), AfterValidator(_regex)] | None = None
    description: fields.Description = ""

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        if self.default is not None and (fault := value_fault(self.model_dump(), self.default)):
            raise refuse((("default",), fault))
        return self


class Manifest(Input):
    """Kubernetes objects: ``content`` is their YAML, or ``url`` where it is, with the ``digest`` that it must have."""

    name: PackName
    content: Annotated[str, StringConstraints(min_length=1, max_length=_TEXT), AfterValidator(fields.no_nul)] | None = (
        None
    )
    url: Annotated[str, StringConstraints(max_length=1024, pattern=r"^https://[^\s@]+$")] | None = None
    digest: Annotated[str, StringConstraints(pattern=_DIGEST)] | None = None

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
    name: PackName
    tag: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    namespace: PackName | None = None
    """Of objects that name none, where their kind has one."""
    values: Values = Field(default_factory=dict)
    manifests: Annotated[list[Manifest], Field(max_length=40)] = Field(default_factory=list)

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
        faults += [
            (("manifests", *place), text) for place, text in repeated(names, "is the name of another one", "name")
        ]
        check(faults)
        return self


class ProfileContent(Input):
    """What a version of a profile says, and its number."""

    version: Semantic
    variables: Annotated[list[Variable], Field(max_length=64)] = Field(default_factory=list)
    packs: Annotated[list[Pack], Field(min_length=1, max_length=40)]

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
            faults += [((field, *place), text) for place, text in repeated(names, "is the name of another one", "name")]
        check(faults)
        return self

    def content(self) -> dict[str, Any]:
        """What the version's parts hold, without what is null."""
        document = self.model_dump(include={"variables", "packs"}, exclude_none=True)
        return {"variables": document["variables"], "packs": document["packs"]}


class ClusterProfileCreate(ProfileContent):
    """A cluster profile to make, with its first version."""

    name: PackName
    description: fields.Description = ""
    cloud: Cloud = cloud_kinds.ANY_CLOUD


class ClusterProfilePut(ProfileContent):
    """A further version of a profile. The earlier ones stay."""

    description: fields.Description | None = None


class ProfileChoice(Input):
    """A profile of a cluster: which, in which version, and what is different there. Without a version the newest."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    version: Semantic | None = None
    variables: Annotated[dict[str, Scalar], Field(max_length=64)] = Field(default_factory=dict)
    pack_values: Annotated[dict[str, Values], Field(max_length=40)] = Field(default_factory=dict)


MAX_PROFILES = 5
"""Of a cluster."""
Choices = Annotated[list[ProfileChoice], Field(max_length=MAX_PROFILES)]


def choice_documents(choices: list[ProfileChoice]) -> tuple[dict[str, Any], ...]:
    """The choices as plain documents."""
    return tuple(choice.model_dump() for choice in choices)


class ClusterProfilesPut(Input):
    """All profiles that a cluster is to have."""

    profiles: Choices


class ProfileVersionView(View):
    """A version of a profile."""

    version: str
    digest: str
    created_at: str
    created_by: str


class ClusterProfileView(View):
    """A cluster profile. ``variables`` and ``packs`` are those of one version, and null in lists."""

    id: str
    name: str
    description: str
    cloud: str
    version: str
    versions: list[ProfileVersionView]
    variables: list[dict[str, Any]] | None
    packs: list[dict[str, Any]] | None
    created_at: str
    updated_at: str


class ClusterProfileDocument(RootModel[ClusterProfileView | ManifestView]):
    """A cluster profile, or with ``form=manifest`` a version of it as a document that can be applied."""


class PackStatusView(View):
    """A pack of a cluster. ``condition`` is ``Pending``, ``Applying``, ``Ready`` or ``Failed``."""

    profile: str
    layer: str
    name: str
    tag: str
    condition: str
    message: str
    started_at: str | None
    ended_at: str | None


class ClusterProfilesView(View):
    """The profiles of a cluster and how their packs are. ``drift`` names objects that were not as they were applied
    when somebody looked last, at ``compared_at``; nothing changes them by itself."""

    profiles: list[dict[str, Any]]
    packs: list[PackStatusView]
    objects: int
    drift: list[str]
    compared_at: str | None
