"""The tenant's template grants every call that is written out in the code: a call without its permission works in the
local cloud and fails in a tenant's account."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session

import stockyard.providers
from local.aws.permissions import buckets, table
from stockyard.providers.clouds.aws.policies import tenant_template
from stockyard.providers.clouds.aws.runs import template as run_template
from tests.harness import tenant_stack
from tests.harness.worlds.stage import Stage


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
            actions.add(buckets.action_of(name) if service == "s3" else f"{table.prefix(service)}:{name}")
    return actions


def test_the_templates_grant_every_call_that_the_code_makes(yard: Any) -> None:
    template = tenant_template.render(yard.account, "inst-1", Stage())
    statements = tenant_stack.every_statement(template, without=["EksBoundary"])
    statements += run_template.statements(yard.account, "vantage")
    granted = {action for statement in statements for action in statement["Action"]}
    written = _written_actions()
    assert len(written) > 90, "the calls are found"
    assert written - granted - set(table.NOTHING) == set()
