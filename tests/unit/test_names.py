"""Plain words: no participle or pronoun alone is the name of a variable, function or type, and the first sentence of a
docstring begins with a noun or a verb and has few pronouns."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUNDLES = ROOT / "layers" / "vendor" / "build"
"""Packages of others, as `make synth` installs them for the layer."""
ROOMS = ("functions", "layers", "stacks", "local", "agent", "client", "constructs", "benchmarks", "tests", "app.py")
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
OPENINGS = frozenset(
    {
        *("What", "How", "Why", "Which", "Where", "When", "Who", "Whom", "Whose", "Of", "By"),
        *("That", "Those", "This", "These", "It", "Its", "They", "Their"),
    }
)
"""Words with which a docstring does not begin: a reader has to wait for the noun that the thing is."""
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
PRODUCT = ("functions", "layers", "stacks", "client", "agent", "local")
STRUCK_WORDS = frozenset(
    {
        *("fulfilment", "hindrance", "hindrances", "loss", "losses", "maker", "makers", "picture", "pictures"),
        *("standing", "way", "ways", "wish", "wishes"),
    }
)
"""Words that are no part of a name of the product: those that people of the field search for are used instead."""
ONE_MEANING = frozenset({"cure", "look", "mark", "origin", "place", "sheet", "turn"})
"""Words that have exactly one row of the glossary, and stand in names for that alone."""
FOREIGN = frozenset({"local/cudo/api.py"})
"""Modules whose names are those of a vendor's interface."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
KEEPERS = frozenset(
    {
        "client/stockyard_client/node_models.py",
        "layers/common/python/stockyard/domain/models/nodes/explanations.py",
        "layers/common/python/stockyard/domain/nodes/records.py",
        "layers/common/python/stockyard/domain/nodes/launch_groups.py",
        "layers/common/python/stockyard/operations/engine/ledger.py",
        "layers/common/python/stockyard/operations/node_claims/launch_groups.py",
        "layers/common/python/stockyard/ports/cloud_work.py",
        "layers/common/python/stockyard/ports/clusters.py",
        "layers/common/python/stockyard/ports/node_work.py",
        "tests/unit/providers/conftest.py",
    }
)


def _names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


def words(name: str) -> frozenset[str]:
    """Words of a name, in small letters."""
    return frozenset(part.lower() for part in _PARTS.findall(name))


def explained_words(glossary: str) -> list[str]:
    """Words that the rows of a glossary explain."""
    return [
        word.strip()
        for line in glossary.splitlines()
        if line.startswith("| ") and not line.startswith(("| --", "| word", "| ours"))
        for word in line.split("|")[1].split(",")
    ]


def bare_names(names: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Each bare participle or pronoun among names, with its line."""
    return [(name, line) for name, line in names if name.strip("_").lower() in BARE]


def _first_sentences(nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """First sentence of each docstring, with its line."""
    return [
        (node.body[0].lineno, re.split(r"(?<=[.:;])\s", text)[0])
        for node in nodes
        if isinstance(node, Documented) and (text := ast.get_docstring(node))
    ]


def _nodes(source: str) -> list[ast.AST]:
    """All nodes of the tree of a module."""
    return list(ast.walk(ast.parse(source)))


def long_winded(sentences: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """First sentences with more than ``MOST_PRONOUNS`` pronouns, each with its line."""
    return [
        (line, first)
        for line, first in sentences
        if sum(word in PRONOUNS for word in re.findall(r"[a-z']+", first.lower())) > MOST_PRONOUNS
    ]


def without_noun(sentences: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """First sentences that begin with one of the ``OPENINGS``, each with its line."""
    return [(line, first) for line, first in sentences if re.split(r"\W", first, maxsplit=1)[0] in OPENINGS]


@functools.cache
def faults() -> tuple[tuple[str, ...], ...]:
    """The bare names, the long first sentences, those without a noun, and names with words that are gone, of all
    modules; each is parsed once."""
    files = (path for room in ROOMS for path in ((ROOT / room).rglob("*.py") if "." not in room else [ROOT / room]))
    names, long_sentences, openings, gone_words = list[str](), list[str](), list[str](), list[str]()
    for file in files:
        if BUNDLES in file.parents:
            continue
        path, nodes = str(file.relative_to(ROOT)), _nodes(file.read_text())
        own_names = list(_names(nodes))
        names += [
            f"{path}:{line} {name}"
            for name, line in bare_names(own_names)
            if not (name.lower() in EXEMPT and path in KEEPERS)
        ]
        if path.startswith(PRODUCT) and path not in FOREIGN:
            named_here = [(file.stem, 0), *own_names]
            gone_words += [f"{path}:{line} {name}" for name, line in named_here if words(name) & STRUCK_WORDS]
        sentences = _first_sentences(nodes)
        long_sentences += [f"{path}:{line} {first}" for line, first in long_winded(sentences)]
        openings += [f"{path}:{line} {first}" for line, first in without_noun(sentences)]
    return tuple(names), tuple(long_sentences), tuple(openings), tuple(gone_words)


def test_no_name_is_a_bare_participle_or_pronoun() -> None:
    assert not faults()[0], "\n".join(faults()[0])


def test_docstrings_begin_with_a_sentence_of_few_pronouns() -> None:
    assert not faults()[1], "\n".join(faults()[1])


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    assert not faults()[2], "\n".join(faults()[2])


def test_words_that_are_gone_are_in_no_name() -> None:
    assert not faults()[3], "\n".join(faults()[3])


def test_words_with_one_meaning_have_one_row_of_the_glossary() -> None:
    explained = explained_words((ROOT / "docs" / "glossary.md").read_text())
    counts = {word: explained.count(word) for word in ONE_MEANING | STRUCK_WORDS}
    assert counts == {**dict.fromkeys(STRUCK_WORDS, 0), **dict.fromkeys(ONE_MEANING, 1)}


def test_check_sees_each_word_of_a_name_and_of_a_row() -> None:
    source = "class NodeMaker:\n    def wish_of(self, the_loss):\n        standing = 1\n"
    refused_names = [name for name, _ in _names(_nodes(source)) if words(name) & STRUCK_WORDS]
    assert sorted(refused_names) == ["NodeMaker", "standing", "the_loss", "wish_of"]
    assert not words("glossary") & STRUCK_WORDS
    assert explained_words("| word | meaning |\n| -- | -- |\n| wait, turn | a request |\n") == ["wait", "turn"]


def test_check_counts_pronouns_of_the_first_sentence_alone() -> None:
    sentence = "What it is that they have of those."
    assert long_winded(_first_sentences(_nodes(f'"""{sentence}"""'))) == [(1, sentence)]
    assert not long_winded(_first_sentences(_nodes(f'"""A list. {sentence}"""')))


def test_check_sees_docstrings_that_begin_without_a_noun() -> None:
    source = '''"""Nodes of a pool. What they cost."""
class Pool:
    """Which nodes it has."""
    def size(self):
        """How many."""
    def price(self):
        """It, in USD: of all."""
    def whole(self):
        """Whether all nodes are there."""
    async def load(self):
        """
        Of which cluster.
        """
'''
    assert sorted(without_noun(_first_sentences(_nodes(source)))) == [
        (3, "Which nodes it has."),
        (5, "How many."),
        (7, "It, in USD:"),
        (11, "Of which cluster."),
    ]


def test_check_sees_each_kind_of_name() -> None:
    source = "def found(told, *, one=1):\n    for given in told:\n        wanted = [x for x in given]\nclass Made: ..."
    assert sorted(name for name, _ in bare_names(_names(_nodes(source)))) == [
        "Made",
        "found",
        "given",
        "one",
        "told",
        "wanted",
    ]
