"""A wrong import in any package breaks a contract of ``.importlinter``.

The graph of all imports is built once. Wrong imports are added to copies of it, one at a time, and the contract
that forbids them is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.domain.contract import Contract
from importlinter.domain.helpers import module_expressions_to_modules

ROOT = Path(__file__).parents[2]
TYPES: Mapping[str, type[Contract]] = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
    "layers": LayersContract,
}
GENERAL = {"benchmarks", "laptop", "siblings", "tests"}
"""Contracts of whole trees: a package needs another one that says which rooms it may know."""

Graph = grimp.ImportGraph
Wrong = tuple[str, str]


def rules() -> dict[str, Contract]:
    """The contracts by their id."""
    read = read_configuration(str(ROOT / ".importlinter"))
    return {
        options["id"]: TYPES[options["type"]](options["name"], read["session_options"], options)
        for options in read["contracts_options"]
    }


RULES = rules()


@pytest.fixture(scope="module")
def graph() -> Graph:
    roots = next(iter(RULES.values())).session_options["root_packages"]
    return grimp.build_graph(*roots, include_external_packages=True, cache_dir=None)


def is_kept(contract: Contract, graph: Graph, *wrong: Wrong) -> bool:
    """Whether the contract is kept by the graph with these imports added."""
    changed = deepcopy(graph)
    for importer, imported in wrong:
        if imported not in changed.modules:
            changed.add_module(imported, is_squashed="." not in imported)
        changed.add_import(importer=importer, imported=imported)
    return contract.check(changed, verbose=False).kept


def packages_of(graph: Graph) -> list[str]:
    """The packages of our own in the graph."""
    internal = (name for name in graph.modules if not graph.is_module_squashed(name))
    return sorted(name for name in internal if graph.find_children(name))


def own(graph: Graph, module: str) -> list[str]:
    """A module with all that is below it."""
    return [module] if graph.is_module_squashed(module) else sorted({module} | graph.find_descendants(module))


def matched(graph: Graph, expressions: Any) -> list[str]:
    """The modules that a field of a contract names."""
    return sorted(module.name for module in module_expressions_to_modules(graph, expressions))


def layers_of(contract: Contract) -> Iterator[list[list[str]]]:
    """The layers of each container, the highest first."""
    for container in contract.containers:  # type: ignore[attr-defined]
        yield [
            [f"{container.expression}.{tail.name}" for tail in sorted(layer.module_tails, key=lambda tail: tail.name)]
            for layer in contract.layers  # type: ignore[attr-defined]
        ]


def sources_of(contract: Contract, graph: Graph) -> list[str]:
    """The packages and modules whose imports the contract restricts."""
    if isinstance(contract, ForbiddenContract):
        return matched(graph, contract.source_modules)
    if isinstance(contract, IndependenceContract):
        return matched(graph, contract.modules)
    if isinstance(contract, LayersContract):
        lower = [module for layers in layers_of(contract) for layer in layers[1:] for module in layer]
        top = [module for layers in layers_of(contract) for module in layers[0] if len(layers[0]) > 1]
        return lower + top
    return [package for package in packages_of(graph) if not is_skipped(contract, package)]


def is_skipped(contract: Contract, package: str) -> bool:
    """Whether a contract about circles leaves a package out."""
    skipped = (each.expression for each in contract.skip_descendants or ())  # type: ignore[attr-defined]
    return any(f"{package}.".startswith(f"{name}.") for name in skipped)


def wrong_imports(contract: Contract, graph: Graph) -> Iterator[Wrong]:
    """An import by each source of a contract, and by each package below it, that the contract forbids."""
    for source, forbidden in wrong_pairs(contract, graph):
        target = own(graph, forbidden)[-1] if forbidden in graph.modules else forbidden
        inner = [each for each in own(graph, source) if graph.find_children(each)]
        yield from ((own(graph, each)[-1], target) for each in inner or [source])


def wrong_pairs(contract: Contract, graph: Graph) -> Iterator[Wrong]:
    """Imports that are forbidden, by the fields of a contract."""
    if isinstance(contract, ForbiddenContract):
        forbidden = sorted(each.expression for each in contract.forbidden_modules)  # type: ignore[attr-defined]
        yield from ((source, each) for source in sources_of(contract, graph) for each in forbidden)
    elif isinstance(contract, IndependenceContract):
        modules = sources_of(contract, graph)
        yield from pairwise([*modules, modules[0]])
    elif isinstance(contract, LayersContract):
        for layers in layers_of(contract):
            for higher, lower in pairwise(layers):
                yield from ((each, higher[0]) for each in lower)
            yield from (pair for layer in layers if len(layer) > 1 for pair in pairwise([*layer, layer[0]]))


def circles(contract: Contract, graph: Graph) -> Iterator[Wrong]:
    """For each package whose children import each other, one import turned round."""
    for package in sources_of(contract, graph):
        home = {each: child for child in graph.find_children(package) for each in own(graph, child)}
        yield from [
            (imported, importer)
            for importer in sorted(home)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if home.get(imported, home[importer]) != home[importer]
        ][:1]


def test_each_contract_catches_a_wrong_import_of_each_package(graph: Graph) -> None:
    for name, contract in RULES.items():
        assert is_kept(contract, graph), name
        wrong = list(circles(contract, graph) if name == "siblings" else wrong_imports(contract, graph))
        assert wrong, name
        missed = [each for each in wrong if is_kept(contract, graph, each)]
        assert missed == [], name


def test_each_package_has_a_contract_of_its_own(graph: Graph) -> None:
    own_rules = [contract for name, contract in RULES.items() if name not in GENERAL]
    wide = [each for each in own_rules if not getattr(each, "allow_indirect_imports", False)]
    named = {each for contract in wide for each in sources_of(contract, graph)}
    free = [
        package
        for package in packages_of(graph)
        if not any(f"{package}.".startswith(f"{each}.") or each.startswith(f"{package}.") for each in named)
    ]
    assert free == [
        "benchmarks",
        "benchmarks.costs",
        "benchmarks.hostility",
        "benchmarks.large_tenant",
        "benchmarks.virtual_fleet",
        "benchmarks.virtual_time",
    ]


def test_package_of_use_cases_that_is_not_listed_is_found(graph: Graph) -> None:
    changed = deepcopy(graph)
    changed.add_module("stockyard.operations.unlisted")
    assert is_kept(RULES["packages"], graph)
    assert not is_kept(RULES["packages"], changed)
    left_out = RULES["packages"].exhaustive_ignores  # type: ignore[attr-defined]
    assert [each for each in left_out if graph.find_children(f"stockyard.operations.{each}")] == []


def test_each_tree_of_code_is_in_the_graph(graph: Graph) -> None:
    trees = [ROOT, ROOT / "client", ROOT / "layers" / "common" / "python"]
    on_disk = {file.parent.name for tree in trees for file in tree.glob("*/__init__.py")}
    assert on_disk - {"tests"} <= graph.modules
