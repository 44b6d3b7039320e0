"""The tenant's template grants every call that is written out in the code: a call without its permission works in the
local cloud and fails in a tenant's account."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session

import stockyard.providers
from stockyard.providers.clouds.aws import tenant_template
from tests.harness import s3_actions
from tests.harness.stage import Stage

NEEDS_NO_PERMISSION = {"sts:GetCallerIdentity": "AWS answers it to everybody who has keys"}
PREFIXES = {"elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing", "efs": "elasticfilesystem"}
"""Service of boto3 -> its name in policies, where botocore does not sign with that."""


def _calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Service and operation of each ``call("ec2", "run_instances", ...)`` and ``pages(...)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"call", "pages"}:
            texts = [argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant)]
            if len(texts) == 2:
                yield str(texts[0]), str(texts[1])


def _written_actions() -> set[str]:
    session = botocore.session.get_session()
    (root,) = stockyard.providers.__path__
    actions = set()
    for path in Path(root).rglob("*.py"):
        for service, operation in _calls(ast.parse(path.read_text())):
            model = session.get_service_model(service)
            name = next(name for name in model.operation_names if botocore.xform_name(name) == operation)
            named = (
                s3_actions.action_of(name) if service == "s3" else f"{PREFIXES.get(service, model.signing_name)}:{name}"
            )
            actions.add(named)
    return actions


def test_the_template_grants_every_call_that_the_code_makes(yard: Any) -> None:
    template = tenant_template.render(yard.account, "inst-1", Stage())
    policies = [
        resource["Properties"]["PolicyDocument"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy" and name != "EksBoundary"
    ]
    granted = {action for policy in policies for statement in policy["Statement"] for action in statement["Action"]}
    written = _written_actions()
    assert len(written) > 90, "the calls are found"
    assert written - granted - set(NEEDS_NO_PERMISSION) == set()
