"""Manifests that are broken in any way are refused as the caller's fault: none ends as a fault of ours.

Valid manifests of every kind and form are changed at random, as documents and as YAML text, and applied. Anything but
an error with a status below 500 would be answered as 500 by the edge. ``STOCKYARD_SOAK`` raises the count to 20,000.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import yaml

from stockyard.domain.models.base import read
from stockyard.domain.models.manifests.manifest_list import Manifests
from stockyard.edge.http.body import MAX_DEPTH
from stockyard.edge.http.body import parse as parse_json
from stockyard.edge.http.yaml_body import parse as parse_yaml
from stockyard.errors import StockyardError
from stockyard.operations.manifests.apply import plan_manifests
from stockyard.operations.manifests.desired import read_desired
from tests.unit.domain.models.manifests.test_manifests import ROUND
from tests.unit.operations.conftest import make_world
from tests.unit.operations.nodes import Nodes

MANIFESTS, MANY = 600, 20_000
VALUES: tuple[Any, ...] = (
    True,
    None,
    0,
    -1,
    2**70,
    1e308,
    "",
    " ",
    "\x00",
    "é" * 300,
    "x" * 5000,
    "1e999999",
    "*",
    "a.b",
    "NaN",
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    {"key": None},
    {"name": "a", "values": ["b"]},
    [1, "1", True],
)
"""What takes the place of a part."""
KINDS = {
    "stockyard/v1": ("NodeProvider", "NodeClaim", "Pool"),
    "management.loft.sh/v1": ("NodeProvider", "NodeClaim"),
    "karpenter.sh/v1": ("NodeClaim", "NodePool"),
}
"""What is applied: the kinds that docs/objects.md lists."""
TEXTS = ("!!bool ", "!!int ", "&a ", "*a", "? ", "- ", "\t", "---\n", "'", '"', "{", "]", ": ", "~", "\x07", "%TAG x\n")
"""What comes into the text of a manifest."""


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all parts of a document."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner_path for key, part in below for inner_path in paths_of(part, (*path, key)))]


def with_one_change(document: Any, chance: Random) -> Any:
    """The document with one part replaced, removed, repeated, or one name more."""
    path = chance.choice(paths_of(document))
    if not path:
        return chance.choice(VALUES)
    whole = deepcopy(document)
    parent = whole
    for step in path[:-1]:
        parent = parent[step]
    act = chance.randrange(5)
    if act == 0:
        del parent[path[-1]]
    elif act == 1 and isinstance(parent, dict):
        parent[f"{path[-1]}{chance.choice('xX /.')}"] = parent.pop(path[-1])
    elif act == 2:
        parent[path[-1]] = [deepcopy(parent[path[-1]]) for _ in range(2)]
    elif act == 3:
        other = chance.choice(paths_of(document)[1:])
        part: Any = document
        for step in other:
            part = part[step]
        parent[path[-1]] = deepcopy(part)
    else:
        parent[path[-1]] = chance.choice(VALUES)
    return whole


def broken_text(document: Any, chance: Random) -> bytes:
    """The document as YAML with something in it that does not belong there."""
    text = yaml.safe_dump(document, allow_unicode=True)
    index = chance.randrange(len(text))
    return (text[:index] + chance.choice(TEXTS) + text[index:]).encode(errors="surrogatepass")


def outcome(nodes: Nodes, parse: Callable[[], Any]) -> str:
    """``planned``, or the name of the refusal."""
    try:
        manifests = read(Manifests, parse()).root
        desired = read_desired(nodes.services, manifests, "user:ann", admin=True)
        plan_manifests(nodes.services, desired)
    except StockyardError as refused:
        if refused.status >= 500:
            raise
        return refused.error_type
    return "planned"


def test_no_manifest_is_a_fault_of_ours(
    seed: int, soaking: bool, record_property: Callable[[str, object], None]
) -> None:
    world, chance = make_world(), Random(seed)
    nodes = Nodes.of(world.registry, world.services, world.clock)
    outcomes: Counter[str] = Counter()
    names, yaml_texts = sorted(ROUND), Counter[tuple[str, str]]()
    for number in range(MANY if soaking else MANIFESTS):
        # Each in turn, so that every kind comes in both forms, whatever the seed.
        document = deepcopy(ROUND[names[number // 3 % len(names)]])
        yaml_texts[(document["apiVersion"], document["kind"])] += number % 3 == 0
        for _ in range(chance.randrange(4)):
            document = with_one_change(document, chance)
        if number % 3 == 0:
            raw = broken_text(document, chance)
            outcomes[outcome(nodes, lambda raw=raw: parse_yaml(raw, MAX_DEPTH))] += 1
        else:
            raw = json.dumps([document]).encode()
            outcomes[outcome(nodes, lambda raw=raw: parse_json(raw))] += 1
    record_property("figure:mutated_manifests", {"seed": seed, "outcomes": dict(outcomes)})
    assert set(yaml_texts) == {(group, kind) for group, kinds in KINDS.items() for kind in kinds}
    assert min(yaml_texts.values()) >= (500 if soaking else 15), "of every kind as YAML text"
    assert outcomes["planned"] > 10
    assert outcomes["InvalidInput"] > 100
    assert outcomes["MalformedBody"] > 10
