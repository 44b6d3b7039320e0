"""A provider is a folder: a new node source or cluster driver is that, a line in the registry, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.new_provider import PROVIDERS, main

ROOT = Path(__file__).resolve().parents[2]
TOY_CLUSTER = Path(__file__).with_name("toy_cluster")
NODE_SOURCES, CLUSTER_DRIVERS = "tests/contracts/test_node_source.py", "tests/contracts/test_cluster_driver.py"
CODE = ("layers/common/python", "local", "agent", NODE_SOURCES, CLUSTER_DRIVERS, "tests/harness")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the conformance suites need, with its bytecode: the times of files are copied, too."""
    for name in CODE:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    (tmp_path / "conftest.py").write_text("from stockyard.providers import registry\nregistry.introduce()\n")
    return tmp_path


@contextmanager
def only_a_folder_and_a_line(tree: Path, room: str) -> Iterator[None]:
    """Check that the block writes the folder ``toy`` of the room and its line in the registry, nothing else."""
    before = files(tree)
    yield
    after = files(tree)
    changed = {path for path in after if before.get(path) != after[path]}
    registry = PROVIDERS / "registry.py"
    assert {path for path in changed if PROVIDERS / room / "toy" not in path.parents} == {registry}
    assert after[registry].replace(f'    "{room}.toy",\n', "") == before[registry]


def files(root: Path) -> dict[Path, str]:
    return {
        path.relative_to(root): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and path.suffix in (".py", ".md")
    }


def conformance(root: Path, suite: str) -> subprocess.CompletedProcess[str]:
    """The suite in that tree, for the toy."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "toy", suite]
    path = os.pathsep.join((str(root), str(root / "layers/common/python")))
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "300", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def passed(run: subprocess.CompletedProcess[str]) -> int:
    """Number of cases of the suite that passed, of which none was skipped."""
    assert "skipped" not in run.stdout, run.stdout
    count = re.search(r"\b(\d+) passed", run.stdout)
    assert count is not None, run.stdout
    return int(count[1])


def test_skeleton_of_node_source_fails_only_where_it_says_so(tree: Path) -> None:
    with only_a_folder_and_a_line(tree, "nodes"):
        main(tree, "toy")
    run = conformance(tree, NODE_SOURCES)
    errors = re.findall(r"^FAILED \S+ - (.*)$", run.stdout, re.MULTILINE)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "passed" in run.stdout
    assert errors
    assert not [error for error in errors if not re.search(r"toy: Machines\.\w+ is not written yet", error)], run.stdout


def test_folder_and_line_make_a_node_source_that_conforms(tree: Path) -> None:
    nodes = tree / PROVIDERS / "nodes"
    with only_a_folder_and_a_line(tree, "nodes"):
        main(tree, "toy")
        shutil.copy(nodes / "simulated/machines.py", nodes / "toy/machines.py")
    run = conformance(tree, NODE_SOURCES)
    assert run.returncode == 0, run.stdout + run.stderr
    assert passed(run) >= 14


def test_folder_and_line_make_a_cluster_driver_that_conforms(tree: Path) -> None:
    registry, line = tree / PROVIDERS / "registry.py", '    "clusters.ec2",\n'
    with only_a_folder_and_a_line(tree, "clusters"):
        shutil.copytree(TOY_CLUSTER, tree / PROVIDERS / "clusters/toy", ignore=shutil.ignore_patterns("__pycache__"))
        registry.write_text(registry.read_text().replace(line, f'{line}    "clusters.toy",\n'))
    run = conformance(tree, CLUSTER_DRIVERS)
    assert run.returncode == 0, run.stdout + run.stderr
    assert passed(run) >= 13


@pytest.mark.parametrize(
    ("name", "reason"),
    [("simulated", "such a provider already"), *((name, "a name has") for name in ("Toy", "a-b", "a b", "../x", ""))],
)
def test_a_name_that_is_taken_or_is_none_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    shutil.copytree(ROOT / PROVIDERS, tmp_path / PROVIDERS, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.raises(ValueError, match=f"NAME={re.escape(name)}: .*{reason}"):
        main(tmp_path, name)
