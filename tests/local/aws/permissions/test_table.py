"""Each operation that a provider calls in a tenant's account has a row in the table, or asks nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from botocore import xform_name

import stockyard.providers
from local.aws.corrections.rest_services import service_model
from local.aws.permissions import table
from local.aws.permissions.account import Account
from local.aws.permissions.calls import Call

SERVICES = (
    "autoscaling", "codebuild", "dlm", "ec2", "efs", "eks", "elb", "elbv2", "iam", "logs", "s3", "service-quotas",
    "ssm", "sts",
)  # fmt: skip
"""Services of boto3 that the providers call."""
FOLDERS = ("clouds/aws", "clusters/ec2", "clusters/eks", "nodes")
SPELLED: dict[str, tuple[tuple[str, str], ...]] = {
    "authorize_security_group_{}": (
        ("ec2", "AuthorizeSecurityGroupEgress"),
        ("ec2", "AuthorizeSecurityGroupIngress"),
    ),
    "list_{}s": (("iam", "ListInstanceProfiles"), ("iam", "ListRoles")),
    "un{}": (("iam", "UntagInstanceProfile"), ("iam", "UntagRole")),
}
"""Operation that a provider puts together of parts -> what comes of it."""
PRESIGNED = {("s3", "GetObject"), ("s3", "PutObject")}
"""Calls by URLs that a session signs for somebody else."""


@cache
def operations(service: str) -> dict[str, str]:
    """Name in Python -> name in the API."""
    return {xform_name(name): name for name in service_model(service).operation_names}


def called(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Service and operation of each call that a module may make: those written out, and each text that is the name of
    an operation of a service that the module names, for calls whose operation is in a variable."""
    written: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"call", "pages"}:
            service, operation = cast(Any, (*node.args, ast.Constant(None), ast.Constant(None))[:2])
            if isinstance(operation, ast.JoinedStr):
                yield from SPELLED[_spelled(operation)]
            elif _are_texts(service, operation):
                written.add(operation.value)
                yield str(service.value), operations(service.value)[operation.value]
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for service in SERVICES:
        for text in texts - written:
            if text in operations(service) and (service in texts or not texts & set(SERVICES)):
                yield service, operations(service)[text]


def _are_texts(service: Any, operation: Any) -> bool:
    both = isinstance(service, ast.Constant) and isinstance(operation, ast.Constant)
    return both and service.value in SERVICES and operation.value is not None


def _spelled(text: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in text.values)


@pytest.fixture(scope="module")
def calls() -> set[tuple[str, str]]:
    """(prefix of the actions, operation) of all calls of the providers."""
    (root,) = stockyard.providers.__path__
    paths = [path for folder in FOLDERS for path in (Path(root) / folder).rglob("*.py")]
    operations_called = {call for path in paths for call in called(ast.parse(path.read_text(encoding="utf-8")))}
    return {(table.prefix(service), operation) for service, operation in operations_called}


def test_each_operation_has_a_row_or_asks_nothing(calls: set[tuple[str, str]]) -> None:
    assert len(calls) > 120, "the calls are found"
    rows = {(service, operation) for service, by_operation in table.TABLE.items() for operation in by_operation}
    nothing = {(service, operation) for service, _, operation in (name.partition(":") for name in table.NOTHING)}
    assert sorted(calls - rows - nothing) == []
    of_clusters = {tuple(name.split(":")) for name in table.OF_CLUSTERS}
    assert of_clusters <= rows
    assert sorted(rows - calls - PRESIGNED - of_clusters) == [], "rows that nobody needs"
    assert rows & nothing == set()
    assert all(table.NOTHING.values()), "without a reason"


def test_call_without_row_is_found() -> None:
    names = ("reboot_nothing", "modify_volume", "create_fleet")
    source = "".join(f'self.calls.call("ec2", "{name}", A=1)\n' for name in names[1:])
    source += 'OPERATIONS = ("ec2", "modify_hosts")\n'
    operations_called = set(called(ast.parse(source)))
    assert operations_called == {("ec2", "ModifyVolume"), ("ec2", "CreateFleet"), ("ec2", "ModifyHosts")}
    with pytest.raises(KeyError):
        list(called(ast.parse('calls.call("ec2", f"describe_{kind}")')))
    with pytest.raises(table.NoRow, match=re.escape("ec2:ModifyHosts")):
        table.asks(Call("ec2", "ModifyHosts", {}, "222222222222", "us-east-1"), Account("222222222222", "us-east-1"))


def test_table_reads_empty_parameters_of_reads() -> None:
    """Calls that only tell have a check without a resource."""
    account = Account("222222222222", "us-east-1")
    for service, operation in (("ec2", "DescribeVpcs"), ("elasticloadbalancing", "DescribeTags"), ("iam", "ListRoles")):
        parameters: dict[str, Any] = {}
        (ask,) = table.asks(Call(service, operation, parameters, account.number, account.region), account)
        assert (ask.action, ask.resource) == (f"{service}:{operation}", "*")
