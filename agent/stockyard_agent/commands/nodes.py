"""Commands on one node: cordon, uncordon, taint, label, delete."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..kubernetes import MERGE, Object, Refused, path_of
from .commands import DONE, NAME, RUNNING, CommandContext, InvalidCommand, Result

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_ATTEMPTS = 4


def cordon(context: CommandContext) -> Result:
    """Mark the node as unschedulable: it gets no new pods."""
    name = context.text("node", NAME)
    patch(context, name, {"spec": {"unschedulable": True}})
    return Result(DONE, f"The node {name} is cordoned.")


def uncordon(context: CommandContext) -> Result:
    """Mark the node as schedulable again."""
    name = context.text("node", NAME)
    patch(context, name, {"spec": {"unschedulable": None}})
    return Result(DONE, f"The node {name} takes pods.")


def label(context: CommandContext) -> Result:
    """Set labels. The value null removes a label."""
    name, labels = context.text("node", NAME), context.command.arguments.get("labels")
    if not isinstance(labels, dict):
        raise InvalidCommand("/labels: an object is needed")
    for key, value in labels.items():
        if not _KEY.fullmatch(key) or not (value is None or (isinstance(value, str) and _VALUE.fullmatch(value))):
            raise InvalidCommand(f"/labels/{_escaped(key)}: no label of Kubernetes, nor null")
    patch(context, name, {"metadata": {"labels": labels}})
    return Result(DONE, f"The node {name} has the labels.")


def taint(context: CommandContext) -> Result:
    """Remove the taints whose key is in ``remove``, then set ``taints``. Key and effect identify a taint.

    A patch replaces the whole list, so it requires the resource version that was read.
    """
    name, desired, removed = context.text("node", NAME), _taints(context), _keys(context)
    for attempt in range(_ATTEMPTS):
        node = read(context, name)
        old = (node.get("spec") or {}).get("taints") or []
        new = _changed(old, desired, removed)
        if new == old:
            break
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            patch(context, name, {"metadata": version, "spec": {"taints": new}})
            break
        except Refused as refused:
            if refused.status != 409 or attempt == _ATTEMPTS - 1:
                raise
    return Result(DONE, f"The node {name} has the taints.")


def keep_out(context: CommandContext, node: Object, taint: Mapping[str, str]) -> None:
    """Give the node the taint and cordon it, in one step. ``Refused`` 409 when somebody has just changed it: again."""
    spec = node.get("spec") or {}
    old = spec.get("taints") or []
    new = _changed(old, [dict(taint)], frozenset())
    if new != old or not spec.get("unschedulable"):
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        patch(context, node["metadata"]["name"], {"metadata": version, "spec": {"unschedulable": True, "taints": new}})


def delete_node(context: CommandContext) -> Result:
    """Delete the node object. The command is done as well when the node is gone or has another ``uid``."""
    name, uid = context.text("node", NAME), context.optional("uid")
    options = {"preconditions": {"uid": uid}} if uid else {}
    try:
        response = context.kube.call("DELETE", path_of("nodes", name), options)
    except Refused as refused:
        if refused.status == 404:
            return Result(DONE, f"There is no node {name}.")
        if refused.status == 409 and uid and _is_another(context, name, uid):
            return Result(DONE, f"The node {name} is another machine's; it stays.")
        raise
    waits = (response.get("metadata") or {}).get("finalizers") if response.get("kind") == "Node" else None
    if waits:
        return Result(RUNNING, f"The node {name} waits for its finalizers: {', '.join(map(str, waits))}.")
    return Result(DONE, f"The node {name} is deleted.")


def read(context: CommandContext, name: str) -> Object:
    """The node. Raises ``Refused``, ``Unreachable``."""
    return context.kube.call("GET", path_of("nodes", name))


def patch(context: CommandContext, name: str, change: Mapping[str, Any]) -> None:
    """Apply a merge patch to the node. Raises ``Refused``, ``Unreachable``."""
    context.kube.call("PATCH", path_of("nodes", name), change, content_type=MERGE)


def _is_another(context: CommandContext, name: str, uid: str) -> bool:
    try:
        return bool(read(context, name)["metadata"]["uid"] != uid)
    except Refused as refused:
        if refused.status == 404:
            return True
        raise


def _changed(old: list[Any], desired: list[dict[str, str]], removed: frozenset[str]) -> list[Any]:
    """The new list of taints. Taints that stay keep their position and, when unchanged, their time."""
    by_key = {(taint["key"], taint["effect"]): taint for taint in desired}
    new: list[Any] = []
    for taint in old:
        ordered = by_key.pop((taint["key"], taint["effect"]), None)
        if ordered is not None:
            new.append(taint if taint.get("value", "") == ordered.get("value", "") else ordered)
        elif taint["key"] not in removed:
            new.append(taint)
    return [*new, *by_key.values()]


def _taints(context: CommandContext) -> list[dict[str, str]]:
    taints: list[dict[str, str]] = []
    for position, item in enumerate(context.objects("taints", needed=False)):
        key, value, effect = item.get("key"), item.get("value") or "", item.get("effect")
        fits = isinstance(key, str) and _KEY.fullmatch(key) and isinstance(value, str) and _VALUE.fullmatch(value)
        if not fits or effect not in _EFFECTS:
            raise InvalidCommand(
                f"/taints/{position}: key, value and effect ({', '.join(_EFFECTS)}) of a taint are needed"
            )
        taints.append({"key": str(key), "effect": str(effect), **({"value": value} if value else {})})
    return taints


def _keys(context: CommandContext) -> frozenset[str]:
    keys = context.command.arguments.get("remove") or []
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise InvalidCommand("/remove: a list of keys is needed")
    return frozenset(keys)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
