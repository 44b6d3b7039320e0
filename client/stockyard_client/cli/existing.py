"""``create`` refuses what exists, also where a manifest would be applied to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stockyard_client.errors import ApiError


def named(manifest: Mapping[str, Any]) -> str:
    """The name in a manifest's metadata; empty where there is none, which the API refuses."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""


def refuse_existing(noun: str, name: str, read: Callable[[str], object]) -> None:
    """Raises a conflict when ``read`` finds a resource of that name: applying the manifest would change it."""
    if not name:
        return
    try:
        read(name)
    except ApiError as error:
        if error.status == 404:
            return
        raise
    raise ApiError(409, "AlreadyExists", f"There is a {noun} {name}; `stockyard apply -f` changes it.")
