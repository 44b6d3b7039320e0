"""Documents of people, JSON or YAML, with the line of each field, so that an error can name it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import yaml

from stockyard_client.cli.documents.bad_input import BadInput
from stockyard_client.cli.documents.pointers import dotted
from stockyard_client.cli.documents.sources import Source

_NAME = re.compile(r"[\w.@-]{1,253}")
_QUOTING = re.compile(r"alias|anchor|tag|directive")
"""Faults whose description quotes the text, which may be a secret."""


class _Parsed:
    """One text with the nodes that say where things stand in it; they are looked for when an error asks."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def nodes(self) -> list[yaml.Node]:
        """The trees of the documents in the text; none where YAML does not read what JSON does."""
        # a tab between the parts of JSON is a blank; YAML refuses it
        text = self.source.text.replace("\t", " ") if _is_json(self.source.text) else self.source.text
        try:
            return list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        except yaml.YAMLError:
            return []


@dataclass(frozen=True, slots=True)
class Document:
    """An object of a file. ``path`` leads to it in the text: its number in a list, or below the items of one."""

    value: dict[str, Any] = field(repr=False)
    parsed: _Parsed = field(repr=False)
    number: int = 0
    path: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The file, as messages name it."""
        return self.parsed.source.name

    @property
    def name(self) -> str:
        """The name that the document gives; empty without a readable one."""
        metadata = self.value.get("metadata") if "apiVersion" in self.value else self.value
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) and _NAME.fullmatch(name) else ""

    @property
    def kind(self) -> str:
        """The kind of a manifest; empty for a request's body."""
        kind = self.value.get("kind")
        return kind if "apiVersion" in self.value and isinstance(kind, str) and _NAME.fullmatch(kind) else ""

    def line(self, tokens: Sequence[str] = ()) -> int | None:
        """The line of a field, from 1; of one that is not there, that of what should hold it."""
        nodes = self.parsed.nodes
        if self.number >= len(nodes):
            return None
        node, line = nodes[self.number], nodes[self.number].start_mark.line
        for token in (*self.path, *tokens):
            inner = _inner(node, token)
            if inner is None:
                break
            node, line = inner
        return line + 1

    def location(self, tokens: Sequence[str] = (), noun: str = "") -> str:
        """``file:line Kind name path`` of a field. ``noun`` is what a body without a kind is called."""
        line = self.line(tokens)
        where = self.source if line is None else f"{self.source}:{line}"
        return " ".join(part for part in (where, self.kind or noun, self.name, dotted(tokens)) if part)


def documents_of(sources: Iterable[Source]) -> list[Document]:
    """All objects in the texts; the items of a list that is a whole document count as well.

    Files without any are passed over while another has one. Raises :class:`BadInput` with the line of a fault, never
    with the text there: it may be a secret.
    """
    all_sources = list(sources)
    documents = [document for source in all_sources for document in _documents(source)]
    if not documents:
        names = [source.name for source in all_sources]
        files = ", ".join(names[:3]) + (" ..." if names[3:] else "")
        raise BadInput(f"{files} {'hold' if names[1:] else 'holds'} no document")
    return documents


def document_of(source: Source) -> Document:
    """The one object in a text. Raises :class:`BadInput`."""
    documents = _documents(source)
    if len(documents) != 1:
        count = f"{len(documents)} documents" if documents else "no document"
        raise BadInput(f"{source.name} holds {count}, and one is needed here")
    return documents[0]


def _documents(source: Source) -> list[Document]:
    parsed = _Parsed(source)
    return [
        document
        for number, value in enumerate(_sendable(source, _values(source)))
        if value is not None
        for document in _objects(Document(value, parsed, number))
    ]


def _objects(document: Document) -> Iterator[Document]:
    """The object itself, or those of a list: of JSON or YAML, or a ``List`` as ``kubectl get -o yaml`` writes it. Items
    of a list of one kind, such as a ``NodePoolList``, need not repeat version and kind."""
    value: Any = document.value
    of_kind: dict[str, Any] = {}
    if isinstance(value, dict) and _is_list(value):
        kind = value["kind"].removesuffix("List")
        of_kind = {"apiVersion": value["apiVersion"], "kind": kind} if kind else {}
        value, path = value.get("items"), (*document.path, "items")
        if not isinstance(value, list):
            raise BadInput(f"{document.location(['items'])}: a list of manifests is needed")
    elif isinstance(value, list):
        path = document.path
    elif isinstance(value, dict):
        yield document
        return
    else:
        raise BadInput(f"{document.source} holds something else than objects")
    for item, entry in enumerate(value):
        if isinstance(entry, list):
            raise BadInput(f"{document.source} holds a list in a list")
        named = {**of_kind, **entry} if isinstance(entry, dict) else entry
        yield from _objects(replace(document, value=named, path=(*path, str(item))))


def _is_list(value: Mapping[str, Any]) -> bool:
    version, kind = value.get("apiVersion"), value.get("kind")
    if kind == "List":
        return bool(version == "v1")
    return isinstance(version, str) and isinstance(kind, str) and kind.endswith("List") and "items" in value


def _is_json(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _values(source: Source) -> list[Any]:
    if _is_json(source.text):
        try:
            return [json.loads(source.text, object_pairs_hook=_unique)]
        except json.JSONDecodeError as error:
            fault = f"{source.name}:{error.lineno}:{error.colno}: not JSON: {error.msg}"
            # a flow mapping of YAML starts with a brace, too
            return _yaml(source, fault)
        except _Twice as twice:
            raise BadInput(f"{source.name}: the key {twice} stands twice in one object") from None
        except RecursionError:
            raise BadInput(f"{source.name} is nested too deeply") from None
        except ValueError:
            raise BadInput(f"{source.name} holds a number of too many digits") from None
    return _yaml(source, None)


def _yaml(source: Source, json_fault: str | None) -> list[Any]:
    try:
        return list(yaml.load_all(source.text, Loader=_Plain))
    except _TwiceInYaml as twice:
        raise BadInput(f"{source.name}:{twice.line}: the key {twice} stands twice in one object") from None
    except yaml.MarkedYAMLError as error:
        position, problem = error.problem_mark, error.problem or ""
        position_text = f":{position.line + 1}:{position.column + 1}" if position else ""
        reason = f": {problem}" if problem and not _QUOTING.search(problem) else ""
        raise BadInput(json_fault or f"{source.name}{position_text}: neither JSON nor YAML{reason}") from None
    except (yaml.YAMLError, ValueError):
        raise BadInput(json_fault or f"{source.name} is neither JSON nor YAML") from None
    except RecursionError:
        raise BadInput(f"{source.name} is nested too deeply") from None


class _Twice(Exception):
    """A key that an object has twice."""


class _TwiceInYaml(_Twice):
    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.line = line


def _unique(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(entries)
    if len(value) < len(entries):
        keys = [key for key, _ in entries]
        raise _Twice(next(key for key in keys if keys.count(key) > 1))
    return value


class _Plain(yaml.SafeLoader):
    """Safe loader with the types of YAML 1.2: ``On``, ``17:00``, ``010`` and dates are texts. No key stands twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """The mapping as it stands there. What ``<<`` brings in may be given again: that is what it is for."""
        node = super().compose_mapping_node(anchor)
        seen_keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                if key.value in seen_keys:
                    raise _TwiceInYaml(key.value, key.start_mark.line + 1)
                seen_keys.add(key.value)
        return node


def _sendable(source: Source, values: list[Any]) -> list[Any]:
    """The values, which a request can hold as JSON. Raises :class:`BadInput` for what only YAML or Python can say."""
    try:
        json.dumps(values, allow_nan=False, ensure_ascii=False).encode()
    except TypeError:
        fault = "a value of a type that JSON has not"
    except UnicodeEncodeError:
        fault = "half of a character"
    except ValueError as error:
        is_circle = "Circular" in str(error)
        fault = "an alias that leads back to what it stands in" if is_circle else "a number that is not finite"
    except RecursionError:
        raise BadInput(f"{source.name} is nested too deeply") from None
    else:
        return values
    raise BadInput(f"{source.name} holds {fault}")


_TAG = "tag:yaml.org,2002:"
_CORE: tuple[tuple[str, str, str], ...] = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
)
"""Types of plain texts by YAML 1.2, as the API has them: name, form, first characters."""
_Plain.yaml_implicit_resolvers = {}
for _name, _form, _starts in _CORE:
    _Plain.add_implicit_resolver(f"{_TAG}{_name}", re.compile(f"^(?:{_form})$"), list(_starts.replace("\0", "")))
_Plain.yaml_implicit_resolvers.setdefault("", []).append((f"{_TAG}null", re.compile("^$")))


def _inner(node: yaml.Node, token: str) -> tuple[yaml.Node, int] | None:
    """Node below a key or a number, and the line of the key or the entry (from 0)."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == token:
                return value, key.start_mark.line
    if isinstance(node, yaml.SequenceNode) and token.isdecimal() and int(token) < len(node.value):
        item = node.value[int(token)]
        return item, item.start_mark.line
    return None
