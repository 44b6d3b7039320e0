"""Claims from documents."""

from __future__ import annotations

import pytest

from stockyard.domain.requirements import Requirement
from stockyard.scheduling.match import Wanted
from stockyard.scheduling.reading import Reader

ENTRY = {"key": "size", "operator": "Gt", "values": ["4"]}


def test_a_claim():
    found = Reader().wanted([ENTRY], {"cpu": "120m", "memory": "1Ki", "pods": 2}, "p", ["p.*"])
    assert dict(found.requirements) == {"size": Requirement(True, frozenset(), 5)}
    assert (found.resources, found.provider, found.allowed) == (
        {"cpu": 120, "memory": 1024000, "pods": 2000},
        "p",
        ("p.*",),
    )


def test_nothing_asked_is_a_claim_too():
    assert Reader().wanted() == Wanted()
    assert Reader().wanted(allowed=[]).allowed == ()


def test_what_is_shared_is_read_once():
    reader = Reader()
    first, second = (reader.wanted([dict(ENTRY)], {"cpu": "1"}) for _ in range(2))
    assert first.requirements["size"] is second.requirements["size"]
    assert Reader().wanted([ENTRY]).requirements["size"] is not first.requirements["size"]


def test_two_entries_of_one_key_are_joined_once():
    reader, two = Reader(), [ENTRY, {"key": "size", "operator": "Lt", "values": ["9"]}]
    first, second = reader.wanted(two).requirements["size"], reader.wanted(two).requirements["size"]
    assert first is second
    assert first == Requirement(True, frozenset(), 5, 8)


@pytest.mark.parametrize(
    ("entries", "resources", "words"),
    [
        ([], {"cpu": "a lot"}, "^cpu: 'a lot' is not a quantity"),
        ([{"key": "a", "operator": "Is"}], {}, "^a: the operator 'Is'"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_key(entries, resources, words):
    with pytest.raises(ValueError, match=words):
        Reader().wanted(entries, resources)
