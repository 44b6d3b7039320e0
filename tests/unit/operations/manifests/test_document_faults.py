"""Faults of several documents name the document."""

from __future__ import annotations

from typing import Any

import pytest

from stockyard.errors import FieldProblem, InUse, InvalidInput
from stockyard.operations.manifests.document_faults import told_by_document

DOCUMENTS: list[dict[str, Any]] = [
    {"kind": "NodeProvider", "metadata": {"name": "lab"}},
    {"kind": 7, "metadata": []},
    {"privateNodes": {}},
    {"kind": "NodeClaim", "metadata": {"name": "listed"}},
]
PLACES = [(0,), (1,), (2,), (4, "items", 1)]


def faults(error: Any) -> Any:
    with pytest.raises(type(error)) as caught, told_by_document(DOCUMENTS, PLACES):
        raise error
    return caught.value


def test_a_fault_has_number_kind_and_name_of_its_document() -> None:
    refused = faults(InvalidInput.of([FieldProblem("/0/spec/x", "unknown field"), FieldProblem("/2/a", "is needed")]))
    assert refused.detail == "2 fields are not valid."
    assert [(fault.index, fault.kind, fault.name) for fault in refused.errors] == [
        (0, "NodeProvider", "lab"),
        (2, "", ""),
    ]


def test_the_text_of_one_fault_names_its_document() -> None:
    single = faults(InvalidInput.at("/0/spec/x", "unknown field"))
    assert single.detail == "NodeProvider lab: /spec/x: unknown field"
    listed = faults(InvalidInput.at("/4/items/1/spec/x", "unknown field"))
    assert (listed.detail, listed.errors[0].index) == ("NodeClaim listed: /spec/x: unknown field", 4)
    assert faults(InUse("taken", errors=[FieldProblem("/1/kind", "is odd")])).detail == "taken"


@pytest.mark.parametrize("pointer", ["", "/3/a", "/x/0", "/4/items/11"])
def test_what_is_of_no_document_stays(pointer: str) -> None:
    error = faults(InvalidInput.at(pointer, "is odd"))
    assert (error.detail, error.errors[0].index) == ("is odd", None)
