"""Typed properties of a ClusterProfile, written of the contract by ``local.cloudformation.properties``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict


class ClusterProfileProperties(TypedDict, total=False):
    """Properties of a ClusterProfile."""

    version: Required[str]
    """The number of the version, such as `1.0.0`; once in the profile."""
    variables: Sequence[Variable]
    """What differs from cluster to cluster."""
    packs: Required[Sequence[Pack]]
    """What a cluster with the profile has, in the order of the layers."""
    name: str
    """The name of the profile, unique in the tenant."""
    description: str
    """Free text for people."""
    cloud: Literal["aws", "eks", "any"]
    """The cloud that the profile is for, or `all`."""


class Variable(TypedDict, total=False):
    """Value that differs from cluster to cluster."""

    name: Required[str]
    """The name of the variable."""
    type: Literal["string", "number", "boolean"]
    """What values it takes."""
    default: str | int | float | bool | None
    """The value where a cluster gives none."""
    required: bool
    """Whether a cluster has to give a value."""
    regex: str | None
    """A regular expression of RE2 that a text has to match as a whole."""
    description: str
    """What the variable is for."""


class Pack(TypedDict, total=False):
    """One thing that a cluster has."""

    layer: Required[Literal["os", "k8s", "cni", "csi", "addon"]]
    """The layer that the pack is of; packs stand in the order of their layers."""
    name: Required[str]
    """The name of the pack; of `os` the image family."""
    tag: Required[str]
    """The version of the pack; of `k8s` the minor of Kubernetes."""
    namespace: str | None
    """Of objects that name none, where their kind has one."""
    values: Mapping[str, Any] | str
    """What the templates of the manifests are filled in with: an object, or its YAML."""
    manifests: Sequence[Manifest]
    """What the pack applies, in this order."""


class Manifest(TypedDict, total=False):
    """Kubernetes objects: ``content`` is their YAML, or ``url`` where it is, with the ``digest`` that it must have."""

    name: Required[str]
    """The name of the manifest within its pack."""
    content: str | None
    """The objects as YAML."""
    url: str | None
    """Where the YAML is fetched from when the version is made."""
    digest: str | None
    """The SHA-256 that what is fetched must have."""
