"""Plain words: no participle or pronoun alone is the name of a variable, function or type, and the first sentence of a
docstring has few pronouns."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUNDLES = ROOT / "layers" / "vendor" / "build"
"""Packages of others, as `make synth` installs them for the layer."""
ROOMS = ("functions", "layers", "stacks", "local", "agent", "client", "benchmarks", "tests", "app.py")
BARE = frozenset(
    {
        *("another", "asked", "begun", "brought", "chosen", "ended", "found", "given", "gone", "got", "held", "it"),
        *("kept", "known", "left", "made", "meant", "mine", "one", "others", "ours", "rest", "said", "same", "seen"),
        *("shown", "some", "struck", "taken", "theirs", "them", "told", "wanted", "what", "which", "who"),
    }
)
EXEMPT = {
    "chosen": "a field of the API: what an explanation says was selected",
    "asked": "a field of stored launch groups",
    "made": "a state of the ledger and of launch groups, and the method that records it",
    "gone": "a state of the ledger, and the method that records it",
}
"""Names that callers or stored records know, where they stand in ``KEEPERS``."""
PRONOUNS = frozenset(
    {
        *("it", "its", "itself", "that", "their", "theirs", "them", "themselves", "these", "they", "this", "those"),
        *("what", "which", "who", "whom", "whose"),
    }
)
MOST_PRONOUNS = 3
"""In the first sentence of a docstring; more have to be read twice."""
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
KEEPERS = frozenset(
    {
        "client/stockyard_client/node_models.py",
        "layers/common/python/stockyard/domain/models/nodes/node_claims.py",
        "layers/common/python/stockyard/domain/nodes/records.py",
        "layers/common/python/stockyard/domain/nodes/launch_groups.py",
        "layers/common/python/stockyard/operations/engine/ledger.py",
        "layers/common/python/stockyard/operations/node_claims/launch_groups.py",
        "layers/common/python/stockyard/ports/clusters.py",
        "layers/common/python/stockyard/ports/nodes.py",
        "tests/unit/providers/conftest.py",
    }
)


def _names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


def bare_names(tree: ast.AST) -> list[tuple[str, int]]:
    """Each bare participle or pronoun that is a name in ``tree``, with its line."""
    return [(name, line) for name, line in _names(tree) if name.strip("_").lower() in BARE]


def long_winded(tree: ast.AST) -> list[tuple[int, str]]:
    """First sentences of docstrings with more than ``MOST_PRONOUNS`` pronouns, each with its line."""
    documented = [node for node in ast.walk(tree) if isinstance(node, Documented)]
    firsts = [
        (node.body[0].lineno, re.split(r"(?<=[.:;])\s", text)[0])
        for node in documented
        if (text := ast.get_docstring(node))
    ]
    return [
        (line, first)
        for line, first in firsts
        if sum(word in PRONOUNS for word in re.findall(r"[a-z']+", first.lower())) > MOST_PRONOUNS
    ]


@functools.cache
def faults() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The bare names, and the long first sentences, of all modules of ours; each module is parsed once."""
    files = (path for room in ROOMS for path in ((ROOT / room).rglob("*.py") if "." not in room else [ROOT / room]))
    names, sentences = list[str](), list[str]()
    for file in files:
        if BUNDLES in file.parents:
            continue
        path, tree = str(file.relative_to(ROOT)), ast.parse(file.read_text())
        names += [
            f"{path}:{line} {name}"
            for name, line in bare_names(tree)
            if not (name.lower() in EXEMPT and path in KEEPERS)
        ]
        sentences += [f"{path}:{line} {first}" for line, first in long_winded(tree)]
    return tuple(names), tuple(sentences)


def test_no_name_is_a_bare_participle_or_pronoun() -> None:
    assert not faults()[0], "\n".join(faults()[0])


def test_docstrings_begin_with_a_sentence_of_few_pronouns() -> None:
    assert not faults()[1], "\n".join(faults()[1])


def test_check_counts_pronouns_of_the_first_sentence_alone() -> None:
    sentence = "What it is that they have of those."
    assert long_winded(ast.parse(f'"""{sentence}"""')) == [(1, sentence)]
    assert not long_winded(ast.parse(f'"""A list. {sentence}"""'))


def test_check_sees_each_kind_of_name() -> None:
    source = "def found(told, *, one=1):\n    for given in told:\n        wanted = [x for x in given]\nclass Made: ..."
    assert sorted(name for name, _ in bare_names(ast.parse(source))) == [
        "Made",
        "found",
        "given",
        "one",
        "told",
        "wanted",
    ]
