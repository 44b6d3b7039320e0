"""Readers of input: documents from files or standard input, durations, pairs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.bodies import check_body, check_kind, check_manifest, is_manifest
from stockyard_client.cli.documents.field_sources import FieldSource
from stockyard_client.cli.documents.sources import source_of, sources_of

if TYPE_CHECKING:
    from stockyard_client.cli.context import Context
    from stockyard_client.cli.documents.documents import Document

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")


def read_document(path: str) -> Document:
    """The one object in the file ``path``, or on standard input for ``-``.

    Raises :class:`BadInput` with the place of a fault, never with the text there: it may be a secret.
    """
    # YAML is read here alone: most commands read no document
    from stockyard_client.cli.documents.documents import document_of

    return document_of(source_of(path))


def read_body(context: Context, path: str, noun: str) -> dict[str, Any]:
    """The body of a request for ``noun`` in the file ``path``, or on standard input for ``-``. Refusals name its lines.

    Raises as :func:`read_document`; for another kind of document it names the command that takes it.
    """
    document = read_document(path)
    check_body(document, noun)
    context.field_sources.append(FieldSource(document, noun=noun))
    return dict(document.value)


def read_either(context: Context, path: str, noun: str, kinds: Collection[str]) -> tuple[dict[str, Any], bool]:
    """The body of a request, or a manifest of one of these kinds, in a file; and whether it is a manifest.

    Raises as :func:`read_body`.
    """
    document = read_document(path)
    manifest = is_manifest(document.value)
    if manifest:
        check_kind(document, kinds)
    else:
        check_body(document, noun)
    context.field_sources.append(FieldSource(document, at="/0" if manifest else "", noun=noun))
    return dict(document.value), manifest


def read_patch(context: Context, path: str, noun: str) -> dict[str, Any]:
    """A merge patch in a file, or on standard input for ``-``. Raises :class:`BadInput`."""
    document = read_document(path)
    if is_manifest(document.value):
        check_body(document, noun)
    context.field_sources.append(FieldSource(document, noun=noun))
    return dict(document.value)


def read_manifests(
    context: Context, paths: Sequence[str], *, at: str = "", recursive: bool = False, own: bool = True
) -> list[dict[str, Any]]:
    """The manifests in files, folders and standard input, as they stand in a list at the pointer ``at`` of a request.

    Raises :class:`BadInput`; with ``own``, where they are resources of the product, also for the body of a request.
    """
    from stockyard_client.cli.documents.documents import documents_of

    documents = documents_of(sources_of(paths, recursive=recursive))
    for number, document in enumerate(documents):
        if own:
            check_manifest(document)
        context.field_sources.append(FieldSource(document, at=f"{at}/{number}"))
    return [document.value for document in documents]


def seconds(text: str) -> float:
    """``90``, ``90s``, ``15m``, ``1h30m`` or ``2d`` as seconds. Raises ``ValueError``."""
    match = _DURATION.fullmatch(text.strip())
    if not match or not any(match.groups()):
        raise ValueError(f"{text!r} is no duration: write 90s, 15m, 1h30m or 2d")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return days * 86_400 + hours * 3600 + minutes * 60 + seconds


def pairs(texts: list[str]) -> dict[str, str]:
    """``key=value`` texts as a mapping."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadInput(f"{text!r} is not key=value")
        values[key] = value
    return values


def requirement(text: str) -> dict[str, Any]:
    """``key=v1,v2`` In, ``key!=v1,v2`` NotIn, ``key>5`` Gt, ``key<5`` Lt, ``key`` Exists, ``!key`` DoesNotExist."""
    for sign, operator in (("!=", "NotIn"), ("=", "In"), (">", "Gt"), ("<", "Lt")):
        key, separator, values = text.partition(sign)
        if separator:
            if not key or not values:
                raise BadInput(f"{text!r} is not key{sign}value")
            return {"key": key, "operator": operator, "values": values.split(",")}
    absent = text.startswith("!")
    key = text.removeprefix("!")
    if not key:
        raise BadInput("a requirement needs a key")
    return {"key": key, "operator": "DoesNotExist" if absent else "Exists"}
