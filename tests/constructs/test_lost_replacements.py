"""Replacements of which nobody ever knew: the answer was lost, the request of the rollback too, and then the stack is
deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.cloudformation import StackFailed
from local.cloudformation.runner import Deployed
from tests.constructs.documents import ACCOUNT, CLUSTER, LAB, PROFILE, joined
from tests.harness.stacks.rig import Rig, rig, template

POOL = '{"cluster": "<cluster>", "provider": "lab", "name": "NAME", "quantity": 1}'
LAB_OF_POOL = ("NodeProvider", {**LAB, "name": "lab"})


def template_of(kind: str, name: str, more: Mapping[str, str]) -> dict[str, Any]:
    """A template with a resource of that kind and name; another name is another resource."""
    if kind == "NodePool":
        document = joined(POOL.replace("NAME", name), cluster=("Cluster", "Name"))
        return template(Lab=LAB_OF_POOL, Cluster=("Cluster", CLUSTER), It=(kind, document, more))
    documents = {"Cluster": CLUSTER, "NodeProvider": LAB, "ClusterProfile": PROFILE, "CloudAccount": ACCOUNT}
    return template(It=(kind, {**documents[kind], "name": name}, more))


def unanswered(region: Rig, before: dict[str, Any], after: dict[str, Any]) -> Deployed:
    """A stack in which ``It`` was replaced: the answer was lost, and the rollback's request too."""
    stack = region.runner.create("platform", before)

    def fault(step: str) -> bool:
        request = region.runner.requests.sent[-1].request
        if (request["RequestType"], request["LogicalResourceId"]) != ("Update", "It"):
            return False
        if stack.status == "UPDATE_ROLLBACK_IN_PROGRESS":
            return step == "request lost"
        return step == "invocation" and region.runner.provider.invocations[-1][0] == "isComplete"

    sent = len(region.runner.requests.sent)
    region.runner.provider.fault = fault
    region.runner.requests.fault = lambda step: len(region.runner.requests.sent) > sent and fault(step)
    with pytest.raises(StackFailed, match="did not receive a response"):
        region.runner.update(stack, after)
    assert stack.status == "UPDATE_ROLLBACK_FAILED"
    region.runner.provider.fault = region.runner.requests.fault = lambda _: False
    return stack


@pytest.mark.parametrize("kind", ["Cluster", "NodePool", "NodeProvider", "ClusterProfile", "CloudAccount"])
def test_they_go_with_their_stack(kind: str) -> None:
    with rig() as region:
        before = region.product.things()
        stack = unanswered(region, template_of(kind, "first", {}), template_of(kind, "second", {}))
        assert any("second" in names for names in region.product.things().values())
        region.runner.delete(stack)
        region.settle()
        assert region.product.things() == before


def test_they_stay_where_the_template_keeps_what_is_replaced() -> None:
    with rig() as region:
        keep = {"Retains": "true"}
        stack = unanswered(
            region, template_of("NodeProvider", "first", keep), template_of("NodeProvider", "second", keep)
        )
        region.runner.delete(stack)
        assert region.product.things()["NodeProvider"] == ["second"]


def test_what_replaced_the_stacks_resource_stays_while_it_is_the_stacks() -> None:
    with rig() as region:
        before = region.product.things()
        first, second = (template_of("NodeProvider", name, {}) for name in ("first", "second"))
        stack = region.runner.create("platform", first)
        for changed in (second, first, second):
            region.runner.update(stack, changed)
        deletion = next(each for each in region.runner.requests.sent if each.request["RequestType"] == "Delete")
        assert json.loads(deletion.request["ResourceProperties"]["Document"])["name"] == "first"
        region.runner.provider.deliver(deletion.request, deletion.put)
        region.settle()
        assert region.product.things()["NodeProvider"] == ["second"]
        region.runner.delete(stack)
        assert region.product.things() == before
