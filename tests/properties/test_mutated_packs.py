"""Profiles whose packs, values or manifests are broken in any way are refused as the caller's fault, or kept: none is a
fault of ours, and what is kept is JSON.

A profile that has everything is changed at each of its places by odd values; the YAML texts in it are cut, or have odd
pieces put in. ``STOCKYARD_SOAK`` does it 20,000 times; otherwise some hundreds are drawn.
"""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any

from stockyard.domain.models.base import read
from stockyard.domain.models.clusters.profiles import ClusterProfileCreate
from stockyard.errors import StockyardError
from stockyard.operations.profiles import profiles
from stockyard.operations.services import Services
from tests.properties.test_mutated_pods import VALUES, changed, paths_of
from tests.unit.operations.conftest import make_world

FEW, MANY = 500, 20_000
SERVER_FAULT = 500
VALUES_TEXT = "text: hello\nreplicas: 2\nlist: [1, two, {three: 3}]\nref: '{{ .variables.size }}'\n"
CONTENT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hello\n  namespace: default\ndata:\n"
    "  text: '{{ .values.text }}'\n  size: '{{ .variables.size }}'\n"
)
PROFILE: dict[str, Any] = {
    "name": "base",
    "description": "What all our clusters have",
    "version": "1.0.0",
    "variables": [
        {"name": "size", "type": "number", "default": 2},
        {"name": "word", "type": "string", "default": "abc", "regex": "[a-c]+", "required": True},
    ],
    "packs": [
        {"layer": "k8s", "name": "kubernetes", "tag": "1.35"},
        {
            "layer": "addon",
            "name": "hello",
            "tag": "1.0",
            "namespace": "default",
            "values": VALUES_TEXT,
            "manifests": [{"name": "text", "content": CONTENT}],
        },
    ],
}
TEXTS = (("packs", 1, "values"), ("packs", 1, "manifests", 0, "content"))
"""The places of YAML in it."""
PIECES = (
    "!!bool zzz",
    "!!timestamp 2001-01-01",
    "!!binary aGk=",
    "!!set {x: }",
    "&a [*a]",
    "*b",
    "[" * 200,
    "{a: " * 50,
    "0x" + "f" * 5000,
    ".nan",
    ".inf",
    "1e999",
    "17:00",
    "=",
    "<<: {a: 1}",
    "---\n",
    "{{",
    "{{ .variables.none }}",
    "{{ .values }}",
    "{{ .variables.size }}" * 500,
    "\t",
    "\x00",
    "\x85\u2028\ufeff",
    "\ud800",
    "? [a, b]\n: c",
    "|2\n x",
    "%YAML 9.9\n---\n",
)


def broken(chance: Random) -> dict[str, Any]:
    """The profile with one or two faults."""
    document = deepcopy(PROFILE)
    for _ in range(chance.choice((1, 1, 2))):
        at: tuple[str | int, ...] = chance.choice(TEXTS)
        if chance.random() < 0.5:
            at = chance.choice(list(paths_of(document)))
            changed(document, at, chance.choice((*VALUES, *PIECES)))
            continue
        text = "" if document["packs"] == PROFILE["packs"] else "x: 1"
        try:
            text = document["packs"][1]["values"] if at == TEXTS[0] else document["packs"][1]["manifests"][0]["content"]
            begin = chance.randrange(len(text))
            end = min(len(text), begin + chance.choice((0, 0, 1, 9)))
            changed(document, at, text[:begin] + chance.choice(PIECES) + text[end:])
        except (KeyError, IndexError, TypeError, ValueError):
            continue  # an earlier fault has taken the text away
    return document


def stored(services: Services, document: dict[str, Any]) -> str:
    """The profile as it would be stored. Raises ``StockyardError``."""
    body = read(ClusterProfileCreate, document)
    return json.dumps(profiles.complete_content(services, body.content()), allow_nan=False)


def test_broken_profiles_are_refused_or_kept(seed: int, soaking: bool) -> None:
    services = make_world().services
    stored(services, deepcopy(PROFILE))  # what is broken below is whole before
    chance, outcomes, statuses = Random(seed), Counter[str](), set[int]()
    for _ in range(MANY if soaking else FEW):
        document = broken(chance)
        try:
            stored(services, document)
            outcomes["kept"] += 1
        except StockyardError as refusal:
            statuses.add(refusal.status)
            outcomes["refused"] += 1
    assert max(statuses) < SERVER_FAULT
    assert min(outcomes["kept"], outcomes["refused"]) > FEW // 10, outcomes
