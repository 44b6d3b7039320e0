"""``edit``: a record's changeable fields in the person's editor, and the merge patch that comes of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import typer
import yaml

from stockyard_client.base_models import Resource
from stockyard_client.cli.context import Context
from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.documents import document_of
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.documents.sources import source_of
from stockyard_client.cli.input.confirmations import confirm
from stockyard_client.cli.output import differences
from stockyard_client.errors import ApiError

R = TypeVar("R", bound=Resource)
_EDITOR = "vi"


@dataclass(frozen=True, slots=True)
class Editable(Generic[R]):
    """Record that can be edited: ``noun`` and ``name`` for people, how the record is read, which of its fields may
    change (or all but the ``fixed`` ones), and what sends a merge patch with the record's ETag."""

    noun: str
    name: str
    fields: Sequence[str]
    read: Callable[[], R]
    send: Callable[[R, dict[str, Any]], R]
    fixed: Collection[str] = ()


def edit(context: Context, target: Editable[R], *, yes: bool) -> tuple[R, R] | None:
    """The record before and after; None when nothing was changed.

    The diff is shown, and on a terminal asked about. What was written is kept, and its file named, when it is not sent.
    Raises :class:`BadInput` for what cannot be read, and what ``send`` raises.
    """
    _editor(context)
    record = target.read()
    before = _changeable(record, target)
    path = _written(target, record, before)
    try:
        _open(context, path)
        document = document_of(source_of(str(path)))
        patch = differences.merge_patch(before, document.value)
        if not patch:
            path.unlink()
            context.say(f"Nothing was changed in {target.noun} {target.name}.")
            return None
        differences.show(context, differences.differences(before, document.value))
        confirm(context, (), yes=yes, question=f"Change {target.noun} {target.name}?")
        context.field_sources.append(FieldSource(document, noun=target.noun))
        after = _sent(target, record, before, patch)
    except (BadInput, ApiError, typer.Exit, KeyboardInterrupt) as error:
        if isinstance(error, ApiError) and error.status == 412:
            context.say(f"{target.noun.capitalize()} {target.name} was changed by someone else meanwhile.", "yellow")
        if path.exists():
            context.say(f"What you wrote is kept in {path}.")
        raise
    path.unlink()
    context.field_sources.pop()  # What is warned of has no line in a file that is gone.
    return record, after


def _changeable(record: R, target: Editable[R]) -> dict[str, Any]:
    document = record.document()
    names = target.fields or [name for name in document if name not in target.fixed]
    return {name: document[name] for name in names if name in document}


def _sent(target: Editable[R], record: R, before: dict[str, Any], patch: dict[str, Any]) -> R:
    """The changed record. Where only other fields than those shown have moved on, the patch is sent once more."""
    try:
        return target.send(record, patch)
    except ApiError as error:
        if error.status != 412:
            raise
        current = target.read()
        if _changeable(current, target) != before:
            raise
        return target.send(current, patch)


def _written(target: Editable[R], record: R, before: dict[str, Any]) -> Path:
    handle, name = tempfile.mkstemp(prefix=f"stockyard-{target.noun}-", suffix=".yaml")  # of mode 0600
    text = (
        f"# {target.noun.capitalize()} {target.name}, version {record.etag.strip(chr(34))}. Save and close to go on.\n"
        "# A field that is removed goes back to nothing or its default; an unchanged file changes nothing.\n"
        + yaml.safe_dump(before, sort_keys=False, allow_unicode=True, width=120)
    )
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)


def _editor(context: Context) -> str:
    """The person's editor. Raises :class:`BadInput` where none is named and nobody sits there to use the usual one."""
    editor = context.environment.get("VISUAL") or context.environment.get("EDITOR")
    if not editor and not context.asks:
        raise BadInput("there is no terminal for an editor: use update --set or --file, or name a program by EDITOR")
    return editor or _EDITOR


def _open(context: Context, path: Path) -> None:
    """Opens the editor of ``VISUAL`` or ``EDITOR`` and waits for its end."""
    editor = _editor(context)
    try:
        code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode  # noqa: S603 - their editor
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it cannot be read as a command"
        raise BadInput(f"the editor {editor} does not start: {reason}; EDITOR names another") from None
    if code:
        raise BadInput(f"the editor {editor} ended with {code}, so nothing is sent")
