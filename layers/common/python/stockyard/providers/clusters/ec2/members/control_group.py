"""The size and the types of a control plane, which stand in settings of their own and in the control group.

A record keeps both. A patch names one of them, and the other follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUPS, SIZE, TYPE, TYPES = (
    "autoscaler_node_groups",
    "control_plane_size",
    "control_plane_instance_type",
    "control_plane_instance_types",
)
AGREEING = frozenset({GROUPS, SIZE, TYPE, TYPES})


def brought_to_agree(merged: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The ``merged`` settings, in which what the patch says wins over what the record said in another field."""
    settings = dict(merged)
    if {TYPE, TYPES} & patch.keys():
        for name in {TYPE, TYPES} - patch.keys():
            settings.pop(name, None)
    groups = settings.get(GROUPS) or []
    control = _control(groups)
    if control is None:
        return settings
    if GROUPS in patch:
        for name in {SIZE, TYPE, TYPES} - patch.keys():
            settings.pop(name, None)
        return settings
    changed = dict(control)
    if (size := patch.get(SIZE)) is not None:
        changed |= {"min_size": size, "max_size": size}
    single = patch.get(TYPE)
    if types := patch.get(TYPES) or ([single] if single else None):
        changed["instance_types"] = types
    return {**settings, GROUPS: [changed if group is control else group for group in groups]}


def said_once(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in which the size and the types stand once: in the control group, or else beside it."""
    repeated = {SIZE, TYPE, TYPES} if _control(settings.get(GROUPS) or []) is not None else {TYPE}
    return {name: value for name, value in settings.items() if name not in repeated}


def _control(groups: object) -> Mapping[str, Any] | None:
    listed = groups if isinstance(groups, list) else []
    return next((group for group in listed if isinstance(group, dict) and group.get("role") == "control"), None)
