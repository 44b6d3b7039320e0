"""Parts of the soak: what each reads, and when it has a record of now."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.soak.__main__ import current
from tests.soak.inputs import Inputs, tracked
from tests.soak.parts import digest, parts
from tests.soak.recording import Recorder
from tests.soak.records import Record, Records

ROOT = Path(__file__).parents[3]
MATRIX, OTHER = "tests/workflows/test_matrix.py", "tests/unit/test_other.py"
FILES = {
    "layers/common/python/stockyard/__init__.py": "",
    "layers/common/python/stockyard/product.py": "from stockyard.registry import NAMES",
    "layers/common/python/stockyard/registry.py": "NAMES = ('clouds.aws',)\nTABLE = 'prices.json'",
    "layers/common/python/stockyard/clouds/aws.py": "",
    "layers/common/python/stockyard/prices.json": "{}",
    "layers/common/python/stockyard/unused.py": "",
    "local/__init__.py": "",
    "local/serve.py": "",
    "console/index.html": "",
    "docs/page.md": "",
    "docs/settings.md": "",
    "pyproject.toml": "",
    "tests/conftest.py": "",
    "tests/harness/helper.py": "from stockyard import product",
    MATRIX: "from tests.harness.helper import product\ndef test_cells(soaking): ...",
    OTHER: "import sys\nROOT / 'console'\nPAGE = 'docs/page.md'\nCOMMAND = [sys.executable, '-m', 'local']",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def inputs_of(root: Path) -> Inputs:
    return Inputs(root, tuple(tracked(root)))


def test_a_file_reads_what_it_imports_and_names(repository: Path) -> None:
    product = {path for path in FILES if path.startswith("layers/") and "unused" not in path}
    assert set(inputs_of(repository).of([MATRIX])) == {MATRIX, "tests/harness/helper.py", *product}
    local = {"local/__init__.py", "local/serve.py"}
    assert set(inputs_of(repository).of([OTHER])) == {OTHER, "console/index.html", "docs/page.md", *local}


def test_a_part_is_a_matrix_or_a_folder(repository: Path) -> None:
    assert parts(inputs_of(repository)) == {"tests/unit": [OTHER], MATRIX: [MATRIX]}


def test_a_part_is_touched_by_what_it_reads_alone(repository: Path) -> None:
    def digests() -> dict[str, str]:
        inputs = inputs_of(repository)
        return {part: digest(inputs, files) for part, files in parts(inputs).items()}

    before = digests()
    touched = {}
    for path, text in FILES.items():
        (repository / path).write_text(f"{text}\n")
        touched[path] = {part for part, each in digests().items() if each != before[part]}
        (repository / path).write_text(text)
    both = {"tests/unit", MATRIX}
    assert touched.pop("pyproject.toml") == touched.pop("tests/conftest.py") == both
    assert touched.pop("docs/settings.md") == touched.pop("layers/common/python/stockyard/unused.py") == set()
    assert {path for path, names in touched.items() if names == {"tests/unit"}} == {
        OTHER, "console/index.html", "docs/page.md", "local/__init__.py", "local/serve.py",
    }  # fmt: skip
    assert all(names in ({MATRIX}, {"tests/unit"}) for names in touched.values())


def report(test: str, outcome: str = "passed", when: str = "call") -> pytest.TestReport:
    figures = [("figure:cells", 7), ("other", 1)]
    return pytest.TestReport(test, (test, 1, test), {}, outcome, None, when, user_properties=figures, duration=1.5)


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_part_has_its_record_when_its_last_test_has_ended(repository: Path, outcome: str) -> None:
    first, second, unit = f"{MATRIX}::test_one", f"{MATRIX}::test_two", f"{OTHER}::test_unit"
    records, by_part = Records(repository / "records"), parts(inputs_of(repository))

    def now(part: str) -> str:
        return digest(inputs_of(repository), by_part[part])

    def part_of(test: str) -> str:
        return MATRIX if MATRIX in test else "tests/unit"

    recorder = Recorder(records, "c0ffee", 7, part_of, now, {part: now(part) for part in by_part})
    for _ in range(2):
        recorder.pytest_xdist_node_collection_finished([first, second, unit])
    recorder.pytest_runtest_logreport(report(first))
    recorder.pytest_runtest_logreport(report(first, when="teardown"))
    assert records.get(MATRIX) is None
    recorder.pytest_runtest_logreport(report(second, outcome))
    recorder.pytest_runtest_logreport(report(second, when="teardown"))
    failed = outcome == "failed"
    record = records.get(MATRIX)
    assert record == Record(
        MATRIX, "c0ffee", now(MATRIX), 7, 6.0, {"passed": 1, "failed": 1} if failed else {"passed": 2},
        [second] if failed else [], {"cells": 7},
    )  # fmt: skip
    assert current(inputs_of(repository), by_part, records) == ({} if failed else {MATRIX: record})
    (repository / "local/serve.py").write_text("changed while it ran")
    recorder.pytest_runtest_logreport(report(unit, when="teardown"))
    assert records.get("tests/unit") is None
    (repository / MATRIX).write_text("changed after it")
    assert current(inputs_of(repository), by_part, records) == {}


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for text in ("", "{}", json.dumps({"part": "tests/unit"})):
        records.path("tests/unit").write_text(text)
        assert records.get("tests/unit") is None


def test_each_test_is_in_one_part() -> None:
    inputs = inputs_of(ROOT)
    files = [file for each in parts(inputs).values() for file in each]
    own = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(files) == sorted(own)
