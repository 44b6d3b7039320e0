"""Law 6: no vendor's word stands in the generic rooms, as a name or as a text. Docstrings may give examples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

STOCKYARD = Path(__file__).resolve().parents[2] / "layers/common/python/stockyard"
ROOMS = ("domain", "scheduling", "lifecycle", "ports", "operations", "edge")
VENDORS = frozenset(
    [
        "ami",
        "amazon",
        "arn",
        "aws",
        "bcm",
        "boto3",
        "botocore",
        "cloudformation",
        "cudo",
        "dynamodb",
        "ec2",
        "eks",
        "elb",
        "iam",
        "kubevirt",
        "metal3",
        "nlb",
        "s3",
        "sts",
        "terraform",
        "vpc",
    ]
)
_OF_LAMBDA = re.compile(r"\baws_(lambda_powertools|request_id)\b")
"""The library that the edge is built on, and an attribute of the context that Lambda gives."""
_BOUNDARY = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


def texts(tree: ast.AST) -> Iterator[str]:
    """Every name and every text of a module, without its docstrings."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in documentation:
                yield node.value
            continue
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value


def vendors(source: str) -> set[str]:
    """The vendors' words of a module."""
    parts = (part.lower() for text in texts(ast.parse(source)) for part in _BOUNDARY.split(_OF_LAMBDA.sub("", text)))
    return VENDORS.intersection(parts)


def test_the_generic_rooms_name_no_vendor() -> None:
    spoken = {
        str(path.relative_to(STOCKYARD)): frozenset(words)
        for room in ROOMS
        for path in sorted((STOCKYARD / room).rglob("*.py"))
        if (words := vendors(path.read_text()))
    }
    assert spoken == {}, "a vendor's word in a generic room"


@pytest.mark.parametrize(
    "source",
    [
        "kind = 'ec2'",
        "def is_aws(): ...",
        "x.role_arn",
        "f(vpc=1)",
        "class AwsThing: ...",
        "f'arn:{x}'",
        "import boto3",
    ],
)
def test_names_texts_and_imports_are_read(source: str) -> None:
    assert vendors(source)


def test_docstrings_and_other_words_are_not_meant() -> None:
    assert vendors('"""Such as ec2."""\nlaws = "a list of claws"\n') == set()
