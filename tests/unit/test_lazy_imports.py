"""Importing a function is cheap: pydantic and the vendors' packages are loaded by the calls that need them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from stockyard import ports

ROOT = Path(__file__).parents[2]
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))
HEAVY = ("boto3", "pydantic", "keycloak", "requests", "httpx", "stamina", "kubernetes", "aws_xray_sdk", "yaml", "moto")

WHOLE_CLASSES = 18
"""Frozen classes of which the standard library may make something while a function is imported: those that have a value
there. See ``domain.values.frozen`` for what the others do."""
COUNT_OF_CLASSES = """
import dataclasses
made = []
def counted(cls, init, repr, eq, order, unsafe_hash, frozen, *more, _made=dataclasses._process_class):
    made.append(f"{cls.__module__}.{cls.__qualname__}") if frozen and init else None
    return _made(cls, init, repr, eq, order, unsafe_hash, frozen, *more)
dataclasses._process_class = counted
"""
PATTERNS_OF_OURS = """
import re, sys
compiled = []
def noted(pattern, flags=0, _compile=re.compile):
    caller = sys._getframe(1).f_globals["__name__"]
    compiled.append((caller, pattern)) if caller.split(".")[0] in ("stockyard", "functions") else None
    return _compile(pattern, flags)
re.compile = noted
"""


def loaded_after(code: str) -> str:
    """Heavy packages that a fresh interpreter has loaded after this code."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint([one for one in {HEAVY!r} if one in sys.modules])"],
        env={"PYTHONPATH": ":".join(sys.path), "STOCKYARD_TABLE": "t", "POWERTOOLS_SERVICE_NAME": "test"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_importing_a_function_loads_nothing_heavy(name: str):
    code = f"{COUNT_OF_CLASSES}{PATTERNS_OF_OURS}\nimport functions.{name}.handler"
    code += f"\nassert len(made) <= {WHOLE_CLASSES}, made"
    assert loaded_after(f"{code}\nassert not compiled, compiled") == "[]"


def test_the_client_of_the_table_loads_nothing_heavy():
    assert loaded_after("from stockyard.adapters.dynamodb.calls import client\nclient('us-east-1')") == "[]"


def test_what_all_tests_share_loads_nothing_heavy():
    """A file of pure tests is run again and again while somebody writes: it must not wait for the local cloud."""
    assert loaded_after("import tests.conftest") == "[]"


def test_every_listed_port_is_there():
    """The list is for type checkers; a module that ``_MODULES`` lacks would be missed only when a name is used."""
    tree = ast.parse(Path(ports.__file__).read_text())
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    listed = [name for name in names if name not in ("annotations", "import_module", "TYPE_CHECKING", "Any")]
    assert len(listed) > 25
    assert [name for name in listed if not hasattr(ports, name)] == []


def test_naming_a_port_in_a_type_loads_no_port():
    code = (
        "from stockyard import wiring\nassert not [name for name in sys.modules if name.startswith('stockyard.ports.')]"
    )
    assert loaded_after(code) == "[]"


@pytest.mark.parametrize("name", ["fleet.disruption.disruptor", "fleet.pools.autoscaler", "scheduler.wake"])
def test_a_run_of_the_schedule_that_finds_nothing_due_loads_nothing_that_packs(name: str):
    """Passes over clusters are invocations of their own."""
    code = f"import stockyard.operations.{name}\npacking = 'stockyard.scheduling.packing'"
    assert loaded_after(f"{code}\nassert packing not in sys.modules, packing") == "[]"
