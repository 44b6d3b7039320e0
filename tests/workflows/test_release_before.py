"""Questions of the calls in workflow documents are understood by today's handlers (law 14).

An execution keeps the document that it was started with. From the first release on the documents of the last one are
kept in ``release_before``, by the names of their state machines, and are read here like today's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stockyard.lifecycle.phases import PROCEDURES
from stockyard.lifecycle.procedure import Procedure
from tests.harness import walk

RELEASE_BEFORE = Path(__file__).parent / "release_before"
ACTIONS = {"run", "await", "compensate", "fail", "block"}


def documents(folder: Path = RELEASE_BEFORE) -> Iterator[tuple[Procedure, str]]:
    """The documents of today, and those that a folder keeps. ``KeyError`` for one of no workflow."""
    by_name = {procedure.workflow: procedure for procedure in PROCEDURES.values()}
    for procedure in by_name.values():
        yield procedure, walk.document(procedure)
    for path in sorted(folder.glob("*.asl.json")):
        yield by_name[path.name.removesuffix(".asl.json")], path.read_text(encoding="utf-8")


def check_understood(procedure: Procedure, document: str) -> None:
    """Fail where a call of the document names no subject, or an action or a phase that today's handlers lack."""
    calls = [state for state in json.loads(document)["States"].values() if state["Type"] == "Task"]
    assert calls
    for payload in (call["Parameters"]["Payload"] for call in calls):
        assert f"{procedure.subject}_id.$" in payload, payload
        assert payload["action"] in ACTIONS, payload
        assert payload.get("phase", procedure.names[0]) in procedure.names, payload


def test_every_call_of_a_document_is_understood() -> None:
    for procedure, document in documents():
        check_understood(procedure, document)


def test_the_check_finds_calls_that_are_not_understood() -> None:
    procedure, document = next(documents())
    for part in (f'"{procedure.subject}_id.$"', '"run"', f'"{procedure.names[0]}"'):
        assert part in document, part
        with pytest.raises(AssertionError):
            check_understood(procedure, document.replace(part, '"unknown"'))


def test_a_kept_document_is_read_by_its_name(tmp_path: Path) -> None:
    procedure, document = next(documents())
    (tmp_path / f"{procedure.workflow}.asl.json").write_text(document, encoding="utf-8")
    assert list(documents(tmp_path))[-1] == (procedure, document)
    (tmp_path / "zzz.asl.json").write_text(document, encoding="utf-8")
    with pytest.raises(KeyError, match="zzz"):
        list(documents(tmp_path))
