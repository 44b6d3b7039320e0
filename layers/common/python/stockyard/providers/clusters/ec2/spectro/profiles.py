"""Cluster profiles in the create body of Palette: ``spec.profiles`` as choices of profiles here, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stockyard.domain.values.pointers import pointer
from stockyard.providers.clusters.ec2.spectro.models import ProfileReference, SpectroSpec

PROFILES = ("spec", "profiles")
_PATHS: Mapping[str, str] = {"name": "uid", "version": "uid", "variables": "variables", "pack_values": "packValues"}


def choices(spec: SpectroSpec) -> tuple[dict[str, Any], ...] | None:
    """The profiles that the body names; None where it says nothing of profiles."""
    if "profiles" not in spec.model_fields_set:
        return None
    return tuple(_choice(reference) for reference in spec.profiles)


def _choice(reference: ProfileReference) -> dict[str, Any]:
    name, _, version = reference.uid.partition("@")
    return {
        "name": name,
        "version": version or None,
        "variables": dict(reference.variables),
        "pack_values": {pack.name: pack.values for pack in reference.pack_values},
        "pack_tags": {pack.name: pack.tag for pack in reference.pack_values if pack.tag},
    }


def references(profiles: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The profiles of a cluster as the body names them, each with its version."""
    return [_reference(profile) for profile in profiles]


def _reference(profile: Mapping[str, Any]) -> dict[str, Any]:
    import yaml  # only where a cluster is shown in this form

    body: dict[str, Any] = {"uid": f"{profile['name']}@{profile['version']}"}
    if profile["variables"]:
        body["variables"] = [{"name": name, "value": _text(value)} for name, value in profile["variables"].items()]
    if profile["pack_values"]:
        body["packValues"] = [
            {"name": name, "values": yaml.safe_dump(values, sort_keys=False)}
            for name, values in profile["pack_values"].items()
        ]
    return body


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_of(parts: Sequence[str]) -> str:
    """Place in the body that a pointer into a request names. What only packs have is below the profiles."""
    if parts[0] != "profiles":
        return pointer(*PROFILES, *parts)
    below = list(parts[1:])
    if len(below) > 1:
        below[1] = _PATHS.get(below[1], below[1])
    return pointer(*PROFILES, *below)
