"""Single faults at their worst moment: each would leave something behind if the handler trusted in answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from local.cloudformation import StackFailed
from local.cloudformation.requests import Requests
from stockyard.domain.records import Cluster
from stockyard.operations.listing import every
from stockyard_stack_resources.api import Exchange, Reply
from tests.constructs.documents import CLUSTER, cluster
from tests.harness.stacks.product import Product
from tests.harness.stacks.rig import Rig, rig, template

ELSEWHERE = cluster(settings={**CLUSTER["settings"], "region_name": "eu-west-1"})


def clusters(region: Rig) -> list[str]:
    return [record.name for record in every(region.product.world.services.store, Cluster)]


@contextmanager
def nothing_left(region: Rig) -> Iterator[None]:
    """After the block the tenant has what it had before, even hours later."""
    before = region.product.things()
    yield
    region.settle()
    assert region.product.things() == before


def in_the(region: Rig, kind: str, step: str, times: int) -> Callable[[str], bool]:
    """A fault that strikes so often, in requests of that type."""
    remaining = [times]

    def fault(name: str) -> bool:
        sent = region.runner.requests.sent
        if name != step or not sent or sent[-1].request["RequestType"] != kind or remaining[0] == 0:
            return False
        if step == "invocation" and region.runner.provider.invocations[-1][0] != "isComplete":
            return False
        remaining[0] -= 1
        return True

    return fault


def strike(region: Rig, fault: Callable[[str], bool]) -> None:
    region.runner.provider.fault = fault


@pytest.mark.parametrize("notes_failed_ids", [True, False])
def test_a_replacement_that_was_made_and_not_answered_is_removed(notes_failed_ids: bool) -> None:
    with rig(notes_failed_ids=notes_failed_ids) as region, nothing_left(region):
        stack = region.runner.create("platform", cluster())
        first = clusters(region)
        strike(region, in_the(region, "Update", "invocation", 2))
        with pytest.raises(StackFailed, match="did not answer"):
            region.runner.update(stack, ELSEWHERE)
        assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
        assert clusters(region) == first
        region.runner.delete(stack)


def test_a_creation_under_way_while_its_stack_is_rolled_back_is_found() -> None:
    late: list[Callable[[], Reply]] = []

    def through(send: Exchange) -> Exchange:
        def exchange(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
            if method == "POST" and url.endswith("/v1/clusters") and not late:
                late.append(lambda: send(method, url, headers, body))
                region.timeline.after(15, late[0])
                raise RuntimeError("the function has ended")
            return send(method, url, headers, body)

        return exchange

    with rig(through=through) as region, nothing_left(region):
        with pytest.raises(StackFailed, match="the function has ended"):
            region.runner.create("platform", cluster())
        assert late


def test_a_request_that_comes_when_nobody_waits_any_more_makes_nothing() -> None:
    with rig() as region, nothing_left(region):
        requests = region.runner.requests
        requests.fault = lambda step: step == "request too late" and len(requests.sent) == 1
        with pytest.raises(StackFailed, match="did not receive a response") as failure:
            region.runner.create("platform", cluster())
        assert failure.value.status == "ROLLBACK_COMPLETE"


def test_what_was_made_and_never_answered_is_found_without_its_physical_id() -> None:
    with rig() as region, nothing_left(region):
        strike(region, in_the(region, "Create", "answer", 1_000))
        with pytest.raises(StackFailed, match="did not receive a response"):
            region.runner.create("platform", cluster())
        create, delete = region.runner.requests.sent
        assert delete.request["PhysicalResourceId"].startswith("platform-Cluster-")
        assert create.answer is None
        assert delete.answer is not None


def test_a_creation_that_is_delivered_again_and_then_called_failed_takes_back_what_it_made() -> None:
    with rig() as region, nothing_left(region):
        provider = region.runner.provider
        region.runner.requests.fault = lambda step: step == "request twice"

        def second_is_lost(step: str) -> bool:
            functions = [name for name, _ in provider.invocations]
            return step == "invocation" and functions[-1] == "onEvent" and functions.count("onEvent") > 1

        strike(region, second_is_lost)
        with pytest.raises(StackFailed, match="did not answer"):
            region.runner.create("platform", cluster())
        (_, deletion) = region.runner.requests.sent
        assert deletion.request["PhysicalResourceId"].endswith("CREATE_FAILED"), "the framework answers this one itself"


def test_a_deletion_that_is_delivered_again_spares_what_was_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with rig() as region, nothing_left(region):
        stack = region.runner.create("platform", cluster())
        first = clusters(region)
        region.runner.update(stack, ELSEWHERE)
        deletion = region.runner.requests.sent[-1]
        assert deletion.request["RequestType"] == "Delete"
        region.runner.update(stack, cluster())
        assert clusters(region) == first, "what is as before is called as before"
        region.runner.provider.deliver(deletion.request, deletion.put)
        region.settle()
        assert clusters(region) == first
        region.runner.delete(stack)


def test_an_update_that_is_delivered_again_during_its_rollback_changes_nothing() -> None:
    more = template(Cluster=("Cluster", {**CLUSTER, "description": "Other"}), Lab=("NodeProvider", {"kind": "no"}))
    with rig() as region, nothing_left(region):
        stack = region.runner.create("platform", cluster())
        requests, send = region.runner.requests, Requests.send

        def again(self: Requests, kind: str, properties: Mapping[str, Any], **fields: Any) -> Any:
            if kind == "Update" and len(self.sent) > 2:
                self.timeline.after(5, lambda: self.provider.deliver(self.sent[1].request, self.sent[1].put))
                region.timeline.run(lambda: False, 60)
            return send(self, kind, properties, **fields)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Requests, "send", again)
            with pytest.raises(StackFailed, match="/kind"):
                region.runner.update(stack, more)
        assert requests.sent[1].request["RequestType"] == "Update"
        region.settle()
        (record,) = every(region.product.world.services.store, Cluster)
        assert record.description == "Made by a stack"
        region.runner.delete(stack)


class Slow:
    """A Stockyard that begins to work when a time has passed."""

    def __init__(self, after: timedelta) -> None:
        self.after = after
        self.region: Rig | None = None

    def __call__(self, product: Product) -> None:
        if self.region is not None and self.region.timeline.now() - self.begin > self.after:
            product.work()

    def watch(self, region: Rig) -> None:
        self.region, self.begin = region, region.timeline.now()


def waits(count: int) -> dict[str, Any]:
    """A cluster with resources that wait on for it, as the construct writes them."""
    resources = template(Cluster=("Cluster", CLUSTER, {"AtLimit": "Continue"}))["Resources"]
    name: Any = {"Fn::Join": ["", ['{"cluster": "', {"Fn::GetAtt": ["Cluster", "Name"]}, '"}']]}
    for number in range(2, count + 1):
        more = {"AtLimit": "Continue"} if number < count else {}
        wait = template(Wait=("ClusterWait", name, more))["Resources"]["Wait"]
        before = "Cluster" if number == 2 else f"Wait{number - 1}"
        resources[f"Wait{number}"] = {**wait, "DependsOn": [before]}
    return {"Resources": resources}


def test_what_takes_longer_than_the_stack_waits_is_said_and_removed() -> None:
    slow = Slow(timedelta(hours=1, minutes=50))
    with rig(at_work=slow) as region, nothing_left(region):
        slow.watch(region)
        with pytest.raises(StackFailed, match="after 53 minutes it is not ready yet") as failure:
            region.runner.create("platform", cluster())
        # its deletion goes on for as long as the creation would have, and is told again
        assert failure.value.status == "ROLLBACK_FAILED"
        (stack,) = region.runner.stacks.values()
        region.runner.delete(stack)


def test_a_row_of_waiting_resources_takes_as_long_as_it_takes() -> None:
    slow = Slow(timedelta(hours=2, minutes=10))
    with rig(at_work=slow) as region, nothing_left(region):
        slow.watch(region)
        stack = region.runner.create("platform", waits(4))
        assert stack.resources["Wait4"].data["Endpoint"] == "nlb.example"
        assert stack.resources["Cluster"].data["Status"] == "preparing"
        region.runner.delete(stack)
