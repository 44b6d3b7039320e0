"""Body of a person's request to resume: other settings for a creation that has failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from stockyard.domain import cloud_kinds
from stockyard.domain.models.base import Input, read
from stockyard.domain.models.clusters.clusters import ClusterSettings
from stockyard.domain.models.clusters.patch import Minor
from stockyard.domain.nodes.provider_kinds import loaded
from stockyard.domain.records import Cluster, Resource
from stockyard.domain.values.pointers import pointer
from stockyard.errors import FieldProblem, InvalidInput

_VERSION_PHASES = frozenset({"control_plane"})


class ClusterResume(Input):
    """A JSON merge patch for a creation that has failed. Every setting may change but those by which something has been
    made that is still there."""

    settings: Annotated[dict[str, Any], Field(json_schema_extra={"additionalProperties": True})] = Field(
        default_factory=dict
    )
    """The settings that change; those that are absent stay."""
    kubernetes_version: Minor | None = None
    """Another minor of Kubernetes; the cluster's where none is given."""


def other_settings(cluster: Cluster, body: ClusterResume, lines: Sequence[Resource]) -> dict[str, Any]:
    """The settings of the cluster as its record is to keep them. ``lines`` are what stands.

    ``InvalidInput`` for what they then would be, and for each that something has been made with, which is named.
    """
    model: type[ClusterSettings] = loaded(
        cloud_kinds.cluster_kind(cluster.provider, cluster.cluster_type, cluster.driver).settings
    )
    settings: ClusterSettings = read(model, model.patched(cluster.settings, body.settings), at=("settings",))
    after = {**cluster.settings, **settings.normal()}
    faults = [
        FieldProblem(pointer("settings", name), _fault(line))
        for name in sorted(after)
        if after[name] != cluster.settings.get(name) and (line := _fixed_by(model, name, lines)) is not None
    ]
    if (fault := settings.name_fault(cluster.name)) is not None:
        faults.append(FieldProblem(pointer("settings"), f"do not go with the name {cluster.name}: {fault}"))
    version = body.kubernetes_version
    if version not in (None, cluster.kubernetes_version):
        line = next((line for line in lines if line.phase in _VERSION_PHASES), None)
        faults += [FieldProblem("/kubernetes_version", _fault(line))] if line is not None else []
    if faults:
        raise InvalidInput.of(faults)
    return after


def _fixed_by(model: type[ClusterSettings], name: str, lines: Sequence[Resource]) -> Resource | None:
    """Resource that has been made with the setting, and stays as it is."""
    if name in ClusterSettings.model_fields:
        return None
    phases = model.MADE_WITH.get(name, frozenset() if name in model.CHANGEABLE else None)
    return next((line for line in lines if phases is None or line.phase in phases), None)


def _fault(line: Resource) -> str:
    thing = f"{line.kind} {line.vendor_id or line.key}"
    return f"cannot be changed any more: {thing} has been made with it. Delete the cluster and create it with another."
