"""The measures of the code, on a small tree."""

from __future__ import annotations

import pytest

from tests.measure.imports import Counts, counted
from tests.measure.names import Names
from tests.measure.source import module_name, parsed
from tests.measure.walk import begin, walk

LAYER = "layers/common/python/stockyard"
SOURCES = {
    "functions/clusters/__init__.py": "",
    "functions/clusters/handler.py": """
from stockyard.operations.clusters import make
from stockyard.domain.records import Cluster

def create_cluster(request):
    from stockyard.domain.names import checked as check

    return answer(make.make(check(request)), key=Cluster(request).name)

def answer(value, key): return sorted(value, key=key)

def delete_cluster(request): return make.unmake()
""",
    f"{LAYER}/__init__.py": "",
    f"{LAYER}/domain/__init__.py": "",
    f"{LAYER}/domain/names.py": "def checked(name): return name",
    f"{LAYER}/domain/records.py": "class Cluster:\n    def __init__(self, name): kept(name)\n\ndef kept(name): ...",
    f"{LAYER}/operations/__init__.py": "",
    f"{LAYER}/operations/clusters/__init__.py": "from .make import make",
    f"{LAYER}/operations/clusters/make.py": """
from stockyard.operations.clusters.order import by_age
from stockyard.domain.names import checked

def make(name):
    checked(name)
    return sorted([name], key=by_age) if name else make(name)

def unmake(): ...
""",
    f"{LAYER}/operations/clusters/order.py": "def by_age(each): ...",
    "tests/harness/walk.py": "import stockyard.domain.names",
}


@pytest.fixture(scope="module")
def names() -> Names:
    return Names(parsed(SOURCES))


def test_walk_follows_functions_that_are_called_or_handed_over(names: Names) -> None:
    walked = walk(names, begin(names, "functions.clusters", "create_cluster"))
    assert walked.visits == (
        "functions.clusters.handler",
        "stockyard.domain.names",
        "stockyard.operations.clusters.make",
        "stockyard.operations.clusters.order",
        "functions.clusters.handler",
    )
    assert len(walked.modules) == 4
    assert walked.packages == ["functions.clusters", "stockyard.domain", "stockyard.operations.clusters"]


def test_walk_begins_in_one_function(names: Names) -> None:
    with pytest.raises(LookupError, match="0 functions called make"):
        begin(names, "stockyard.domain", "make")


def test_imports_are_counted_across_packages_and_rooms(names: Names) -> None:
    assert counted(names.trees) == Counts(
        modules=10, packages=5, imports=6, across_packages=4, past_a_face=4, across_rooms=4
    )


def test_only_files_of_ours_are_modules() -> None:
    assert module_name("client/stockyard_client/cli/__init__.py") == "stockyard_client.cli"
    assert [module_name(path) for path in ("tests/harness/walk.py", "functions/clusters/note.md")] == [None, None]
