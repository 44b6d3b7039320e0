"""Values and manifests of packs: variables are put in, and YAML becomes Kubernetes objects. Pure.

A placeholder takes the place of a value, never of YAML: a variable cannot add a field or an object. One that is all of
a value keeps the type of what it stands for; one within a longer text becomes text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from stockyard.domain.values.frozen import dataclass
from stockyard.domain.values.patterns import pattern
from stockyard.domain.values.yaml_documents import YamlFault, read_documents

Object = dict[str, Any]
PLACEHOLDER = pattern(r"\{\{-?\s*\.(profile\.var|values)\.([A-Za-z0-9_.-]+?)\s*-?\}\}")
"""``{{ .profile.var.NAME }}``, and in manifests ``{{ .values.path.to.value }}``. What else stands in braces is left."""
VARIABLE, VALUE = "profile.var", "values"
MAX_OBJECTS = 500
"""Of one manifest."""
MAX_FILLED = 4 * 1024 * 1024
"""Characters that may be put in for the placeholders of all packs of a profile: each stands for a value as often as it
is written, and values have placeholders too."""
_PLACEHOLDER = "stockyard-place-{}-holder"
_MARKED = pattern(r"stockyard-place-(\d+)-holder")


class TemplateFault(ValueError):
    """Fault of a template, in words."""


@dataclass(slots=True)
class _Room:
    characters: int = MAX_FILLED


@dataclass(frozen=True, slots=True)
class Terms:
    """Values of placeholders, by ``VARIABLE`` or ``VALUE`` and the name or path. Terms that come of one another share
    the room for what is put in."""

    values: Mapping[tuple[str, str], Any]
    _room: _Room = field(default_factory=_Room)

    def with_values(self, more: Iterable[tuple[str, Any]]) -> Terms:
        """Add the values of a pack by their paths."""
        return Terms({**self.values, **{(VALUE, path): value for path, value in more}}, self._room)

    def check(self, kind: str, name: str) -> None:
        """Raises ``TemplateFault`` where nothing is known of the name."""
        if (kind, name) not in self.values:
            noun = "variable" if kind == VARIABLE else "value"
            raise TemplateFault(f"refers to the {noun} {name}, which there is not")

    def take(self, kind: str, name: str) -> Any:
        """Take the value of a placeholder. ``TemplateFault`` where there is none, or no room for it."""
        self.check(kind, name)
        value = self.values[kind, name]
        self._room.characters -= len(value) if isinstance(value, str) else len(json.dumps(value))
        if self._room.characters < 0:
            raise TemplateFault(f"has more than {MAX_FILLED} characters once its placeholders are filled in")
        return value


def placeholders(text: str) -> Iterator[tuple[str, str]]:
    """References of the text to variables and values: ``VARIABLE`` or ``VALUE``, and the name or path."""
    return ((match[1], match[2]) for match in PLACEHOLDER.finditer(text))


def fill(tree: Any, terms: Terms) -> Any:
    """The tree with each placeholder of its texts and names replaced. ``TemplateFault`` for one that there is not,
    or where they become too long."""
    if isinstance(tree, Mapping):
        return {str(fill(name, terms)): fill(value, terms) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [fill(value, terms) for value in tree]
    if not isinstance(tree, str):
        return tree
    whole = PLACEHOLDER.fullmatch(tree.strip())
    if whole:
        return terms.take(whole[1], whole[2])
    return PLACEHOLDER.sub(lambda match: _text(terms.take(match[1], match[2])), tree)


def paths(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Each value below ``values`` with its dotted path, objects among them."""
    for name, value in values.items():
        yield f"{before}{name}", value
        if isinstance(value, Mapping):
            yield from paths(value, f"{before}{name}.")


def documents(text: str, terms: Terms) -> list[Object]:
    """The Kubernetes objects of a manifest, lists taken apart. ``TemplateFault`` with what is wrong with the text."""
    hidden: list[tuple[str, str]] = []

    def hide(match: re.Match[str]) -> str:
        terms.check(match[1], match[2])
        hidden.append((match[1], match[2]))
        return _PLACEHOLDER.format(len(hidden) - 1)

    if _MARKED.search(text):
        raise TemplateFault("has a text that Stockyard uses itself")
    trees = load_yaml(PLACEHOLDER.sub(hide, text))
    flat = [item for tree in trees if tree is not None for item in _items(_unmarked(tree, hidden, terms))]
    if len(flat) > MAX_OBJECTS:
        raise TemplateFault(f"has more than {MAX_OBJECTS} objects")
    for number, item in enumerate(flat):
        check_object(item, number)
    return flat


def check_object(item: Any, number: int) -> None:
    """``TemplateFault`` unless it can be a Kubernetes object."""
    meta = item.get("metadata") if isinstance(item, dict) else None
    subject = f"document {number + 1}"
    if not isinstance(item, dict) or not isinstance(meta, dict):
        raise TemplateFault(f"{subject} is no Kubernetes object with metadata")
    texts = (item.get("apiVersion"), item.get("kind"), meta.get("name"))
    for name, text in zip(("apiVersion", "kind", "metadata.name"), texts, strict=True):
        if not isinstance(text, str) or not text or "|" in text:
            raise TemplateFault(f"{subject} has no {name}")
    if not isinstance(meta.get("namespace", ""), str):
        raise TemplateFault(f"{subject} has a namespace that is no text")


def load_yaml(text: str) -> list[Any]:
    """The documents of a YAML text, with the types that JSON has, as Kubernetes reads it. ``TemplateFault`` where it is
    none."""
    try:
        return read_documents(text, texts_of_names=True)
    except YamlFault as fault:
        raise TemplateFault(f"{fault.detail}{f', line {fault.line}' if fault.line else ''}") from None


def _items(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict) and str(tree.get("kind", "")).endswith("List") and isinstance(tree.get("items"), list):
        yield from tree["items"]
    else:
        yield tree


def _unmarked(tree: Any, hidden: list[tuple[str, str]], terms: Terms) -> Any:
    if isinstance(tree, dict):
        return {_unmarked_name(name, hidden, terms): _unmarked(value, hidden, terms) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_unmarked(value, hidden, terms) for value in tree]
    if not isinstance(tree, str):
        return tree
    whole = _MARKED.fullmatch(tree)
    if whole:
        return terms.take(*hidden[int(whole[1])])
    return _MARKED.sub(lambda match: _text(terms.take(*hidden[int(match[1])])), tree)


def _unmarked_name(name: Any, hidden: list[tuple[str, str]], terms: Terms) -> str:
    return _text(_unmarked(name, hidden, terms))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
