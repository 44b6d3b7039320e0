"""Claims from documents."""

from __future__ import annotations

import pytest

from stockyard.domain.nodes.defaults import DEFAULTS
from stockyard.domain.values.requirements import Requirement
from stockyard.scheduling.match import SchedulingRequest
from stockyard.scheduling.reading import Reader

ENTRY = {"key": "size", "operator": "Gt", "values": ["4"]}


def test_reader_reads_claim():
    request = Reader().request([ENTRY], {"cpu": "120m", "memory": "1Ki", "pods": 2}, "p", ["p.*"])
    assert dict(request.requirements) == {"size": Requirement(True, frozenset(), 5)}
    assert (request.resources, request.provider, request.allowed) == (
        {"cpu": 120, "memory": 1024000, "pods": 2000},
        "p",
        ("p.*",),
    )


def test_reader_reads_claim_without_requirements():
    assert Reader().request() == SchedulingRequest(defaults=DEFAULTS)
    assert Reader().request(allowed=[]).allowed == ()


def test_reader_shares_equal_requirements():
    reader = Reader()
    first, second = (reader.request([dict(ENTRY)], {"cpu": "1"}) for _ in range(2))
    assert first.requirements["size"] is second.requirements["size"]
    assert Reader().request([ENTRY]).requirements["size"] is not first.requirements["size"]


def test_reader_intersects_entries_of_one_key_once():
    reader, two = Reader(), [ENTRY, {"key": "size", "operator": "Lt", "values": ["9"]}]
    first, second = reader.request(two).requirements["size"], reader.request(two).requirements["size"]
    assert first is second
    assert first == Requirement(True, frozenset(), 5, 8)


@pytest.mark.parametrize(
    ("entries", "resources", "words"),
    [
        ([], {"cpu": "a lot"}, "^cpu: 'a lot' is not a quantity"),
        ([{"key": "a", "operator": "Is"}], {}, "^a: the operator 'Is'"),
    ],
)
def test_reader_error_names_key(entries, resources, words):
    with pytest.raises(ValueError, match=words):
        Reader().request(entries, resources)
