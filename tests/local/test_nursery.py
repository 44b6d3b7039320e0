"""Children of the nursery: their ends are told, their environment is their own, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.nursery import Child, Nursery


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    found = Nursery()
    yield found
    found.close()
    found.close()
    assert found._process is None or found._process.returncode == 0


def child(nursery: Nursery, folder: Path, program: str, **environment: str) -> Child:
    """A child whose handler's module is this text; it never gets as far as to ask for work."""
    (folder / "sample.py").write_text(program, encoding="utf-8")
    (folder / "sitecustomize.py").write_text(f"import os, sys\nsys.path.insert(0, {str(folder)!r})\nimport sample\n")
    told = {"PYTHONPATH": str(folder), "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9", **environment}
    return nursery.child("sample.handler", told, folder, str(folder / "log"))


@pytest.mark.parametrize(("program", "code"), [("os._exit(3)", 3), ("raise SystemExit(4)", 4), ("1 / 0", 1)])
def test_the_end_is_told(nursery: Nursery, tmp_path: Path, program: str, code: int) -> None:
    one = child(nursery, tmp_path, f"import os\n{program}")
    assert one.ended.wait(30)
    assert one.code == code
    assert ("ZeroDivisionError" in (tmp_path / "log").read_text()) == (code == 1)


def test_a_child_that_is_killed_is_gone(nursery: Nursery, tmp_path: Path) -> None:
    one = child(nursery, tmp_path, "import threading\nthreading.Event().wait()")
    one.kill()
    one.kill()
    assert one.code == -9


def test_the_environment_is_the_childs_own(nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_PARENT", "secret")
    one = child(nursery, tmp_path, "import os\nprint(sorted(os.environ), os.getcwd(), flush=True)\nos._exit(0)", A="b")
    assert one.ended.wait(30)
    names = sorted(["A", "AWS_LAMBDA_RUNTIME_API", "PYTHONPATH"])
    assert (tmp_path / "log").read_text().strip() == f"{names} {tmp_path}"
