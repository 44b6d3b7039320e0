"""``--set path=value``: fields of a merge patch from the command line."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Annotated, Any

import typer

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.field_sources import FieldSource

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="A field by its path, such as tags.team=core; =null removes it; may be repeated.",
    ),
]
_STEP = re.compile(r"((?:\\.|[^.\[\]\\])+)|\[([^\]]*)\]")
_TEXTS = frozenset({"tags", "labels", "annotations", "properties"})
"""Fields whose values are texts, so that `tags.version=1` is no number."""
_SINGLE_TEXTS = frozenset({"name", "description", "display_name", "kubernetes_version"})


def patch_of(assignments: Sequence[str], record: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that sets these fields of ``record``.

    A value is JSON where it can be read so, and a text otherwise; ``null`` removes the field. ``[0]`` and ``[name]``
    choose an item of a list, which the patch then holds as a whole. Raises :class:`BadInput`.
    """
    patch: dict[str, Any] = {}
    for text in assignments:
        path, sign, value = text.partition("=")
        steps = _steps(path)
        if not sign or not steps:
            raise BadInput(f"{text!r} is not PATH=VALUE, such as tags.team=core")
        _assign(patch, record, steps, _value(steps, value), path)
    return patch


def source_of(assignments: Sequence[str]) -> FieldSource:
    """The option behind each field of the request, for the text of a refusal."""
    options: dict[str, str] = {}
    for text in assignments:
        path = text.partition("=")[0]
        # of an item only the list is known before the record is read
        keys = takewhile(lambda step: isinstance(step, str), _steps(path))
        options["".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)] = f"--set {path}"
    return FieldSource(options=options)


def _steps(path: str) -> list[str | tuple[str]]:
    """Keys as texts, items of lists as tuples. A backslash before a dot makes it part of the key."""
    steps: list[str | tuple[str]] = []
    remaining = path
    while remaining:
        match = _STEP.match(remaining)
        if match is None:
            return []
        key, item = match.groups()
        steps.append(re.sub(r"\\(.)", r"\1", key) if key is not None else (item,))
        remaining = remaining[match.end() :].removeprefix(".")
    return steps if steps and isinstance(steps[0], str) else []


def _value(steps: Sequence[str | tuple[str]], text: str) -> Any:
    parent = steps[-2] if len(steps) > 1 else None
    if parent in _TEXTS or steps[-1] in _SINGLE_TEXTS:
        return None if text == "null" else text.removeprefix('"').removesuffix('"') if text.startswith('"') else text
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except ValueError:
        # neither is NaN, nor a number that is too large, which JSON cannot send
        return text
    return value


def _assign(patch: dict[str, Any], record: Any, steps: Sequence[str | tuple[str]], value: Any, path: str) -> None:
    """Sets the field in ``patch``; below a list in a copy of the record's list."""
    target: Any = patch
    for position, step in enumerate(steps):
        last, key = position == len(steps) - 1, _key(target, step, path)
        if last:
            target[key] = value
            return
        current = record.get(step) if isinstance(step, str) and isinstance(record, Mapping) else None
        follows_item = isinstance(steps[position + 1], tuple)
        if isinstance(step, tuple):
            record = target[key]
        else:
            if follows_item and not isinstance(target.get(key), list):
                if not isinstance(current, list):
                    raise BadInput(f"--set {path}: there is no list {step}; {_near_list(step, record)}")
                target[key] = copy.deepcopy(current)
            elif not isinstance(target.get(key), (dict, list)):
                target[key] = {}
            record = current
        target = target[key]
        if not isinstance(target, (dict, list)):
            raise BadInput(f"--set {path}: what it leads through holds no fields")


def _key(target: Any, step: str | tuple[str], path: str) -> Any:
    """The key of an object, or the number of an item that is chosen by number or name."""
    if isinstance(step, str):
        if not isinstance(target, dict):
            raise BadInput(f"--set {path}: an item of the list is chosen by [0] or [name]")
        return step
    (item,) = step
    if item.isdecimal() and int(item) < len(target):
        return int(item)
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in target]
    if item in names:
        return names.index(item)
    listed = ", ".join(str(name) for name in names if name) or f"its items are 0 to {len(names) - 1}"
    raise BadInput(f"--set {path}: the list has no item {item}: {listed if names else 'it is empty'}")


def _near_list(step: str | tuple[str], record: Any) -> str:
    """The list that was probably meant, else all fields that there are."""
    fields = [str(name) for name in record] if isinstance(record, Mapping) else []
    lists = [name for name in fields if isinstance(record[name], list)]
    # clusters on EC2 call autoscaler_node_groups what those on EKS call node_groups
    near = [name for name in lists if name.endswith(f"_{step}")] or get_close_matches(str(step), lists, 1)
    if near:
        return f"did you mean {near[0]}?"
    return f"there is {', '.join(fields) or 'nothing at that place'}"
