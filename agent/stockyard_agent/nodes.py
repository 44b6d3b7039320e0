"""Commands on one node: cordon, uncordon, taint, label, delete."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .kubernetes import MERGE, Object, Refused, path_of
from .work import DONE, NAME, RUNNING, Result, Unfit, Work

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_ATTEMPTS = 4


def cordon(work: Work) -> Result:
    """Nothing new is placed on the node."""
    name = work.text("node", NAME)
    patch(work, name, {"spec": {"unschedulable": True}})
    return Result(DONE, f"The node {name} is cordoned.")


def uncordon(work: Work) -> Result:
    """The node takes pods again."""
    name = work.text("node", NAME)
    patch(work, name, {"spec": {"unschedulable": None}})
    return Result(DONE, f"The node {name} takes pods.")


def label(work: Work) -> Result:
    """Set labels; null takes one away."""
    name, labels = work.text("node", NAME), work.command.arguments.get("labels")
    if not isinstance(labels, dict):
        raise Unfit("/labels: an object is needed")
    for key, value in labels.items():
        if not _KEY.fullmatch(key) or not (value is None or (isinstance(value, str) and _VALUE.fullmatch(value))):
            raise Unfit(f"/labels/{_escaped(key)}: no label of Kubernetes, nor null")
    patch(work, name, {"metadata": {"labels": labels}})
    return Result(DONE, f"The node {name} has the labels.")


def taint(work: Work) -> Result:
    """Take away the taints whose key is in ``remove``, then set ``taints``, each by key and effect.

    The list is one value for the API, so it is written only onto the version that was read.
    """
    name, wanted, removed = work.text("node", NAME), _taints(work), _keys(work)
    for attempt in range(_ATTEMPTS):
        node = read(work, name)
        old = (node.get("spec") or {}).get("taints") or []
        new = _changed(old, wanted, removed)
        if new == old:
            break
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            patch(work, name, {"metadata": version, "spec": {"taints": new}})
            break
        except Refused as refused:
            if refused.status != 409 or attempt == _ATTEMPTS - 1:
                raise
    return Result(DONE, f"The node {name} has the taints.")


def delete_node(work: Work) -> Result:
    """Delete the node object. One that is gone, or that is another machine's by now (``uid``), is done."""
    name, uid = work.text("node", NAME), work.optional("uid")
    options = {"preconditions": {"uid": uid}} if uid else {}
    try:
        left = work.kube.call("DELETE", path_of("nodes", name), options)
    except Refused as refused:
        if refused.status == 404:
            return Result(DONE, f"There is no node {name}.")
        if refused.status == 409 and uid and _is_another(work, name, uid):
            return Result(DONE, f"The node {name} is another machine's; it stays.")
        raise
    waits = (left.get("metadata") or {}).get("finalizers") if left.get("kind") == "Node" else None
    if waits:
        return Result(RUNNING, f"The node {name} waits for its finalizers: {', '.join(map(str, waits))}.")
    return Result(DONE, f"The node {name} is deleted.")


def read(work: Work, name: str) -> Object:
    """The node. Raises ``Refused``, ``Unreachable``."""
    return work.kube.call("GET", path_of("nodes", name))


def patch(work: Work, name: str, change: Mapping[str, Any]) -> None:
    """A merge patch of the node. Raises ``Refused``, ``Unreachable``."""
    work.kube.call("PATCH", path_of("nodes", name), change, content_type=MERGE)


def _is_another(work: Work, name: str, uid: str) -> bool:
    try:
        return bool(read(work, name)["metadata"]["uid"] != uid)
    except Refused as refused:
        if refused.status == 404:
            return True
        raise


def _changed(old: list[Any], wanted: list[dict[str, str]], removed: frozenset[str]) -> list[Any]:
    """The new list: what stays keeps its place and, unchanged, its time."""
    by_place = {(one["key"], one["effect"]): one for one in wanted}
    new: list[Any] = []
    for one in old:
        ordered = by_place.pop((one["key"], one["effect"]), None)
        if ordered is not None:
            new.append(one if one.get("value", "") == ordered.get("value", "") else ordered)
        elif one["key"] not in removed:
            new.append(one)
    return [*new, *by_place.values()]


def _taints(work: Work) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for position, one in enumerate(work.objects("taints", needed=False)):
        key, value, effect = one.get("key"), one.get("value") or "", one.get("effect")
        fits = isinstance(key, str) and _KEY.fullmatch(key) and isinstance(value, str) and _VALUE.fullmatch(value)
        if not fits or effect not in _EFFECTS:
            raise Unfit(f"/taints/{position}: key, value and effect ({', '.join(_EFFECTS)}) of a taint are needed")
        found.append({"key": str(key), "effect": str(effect), **({"value": value} if value else {})})
    return found


def _keys(work: Work) -> frozenset[str]:
    keys = work.command.arguments.get("remove") or []
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Unfit("/remove: a list of keys is needed")
    return frozenset(keys)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
